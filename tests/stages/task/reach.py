"""Executables that reach a side as the real ones do: what they do to words, and to standard input."""

from __future__ import annotations

import sys
from pathlib import Path

_SSH = """
args, flags = sys.argv[1:], ""
while args and args[0].startswith("-"):
    flag = args.pop(0)
    flags += flag
    if len(flag) == 2 and flag[1] in "BbcDEeFIiJLlmOoPpQRSWw":
        args.pop(0)
args.pop(0)  # the host
if "n" in flags:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
print("Welcome to node7!\\nLast login: today", file=sys.stderr, flush=True)
os.execv("/bin/sh", ["sh", "-c", " ".join(args)])
"""
_DOCKER = """
args, keep = sys.argv[1:], False
assert args.pop(0) == "exec"
while args[0].startswith("-"):
    flag = args.pop(0)
    keep = keep or "i" in flag
    if flag in ("-u", "-w", "-e"):
        args.pop(0)
    if "t" in flag and not os.isatty(0):
        sys.exit("the input device is not a TTY")
args.pop(0)  # the container
if not keep:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.execvp(args[0], args)
"""
_CONDA = """
import shlex, subprocess, tempfile
args = sys.argv[1:]
assert args[:2] == ["run", "-n"], args
words = args[3:]
if any("\\n" in word for word in words):
    sys.exit("Support for scripts where arguments contain newlines not implemented.")
with tempfile.NamedTemporaryFile("w", suffix=".sh") as script:
    script.write("echo activated\\n" + shlex.join(words) + "\\n")
    script.flush()
    done = subprocess.run(["bash", script.name], stdin=subprocess.DEVNULL, capture_output=True)
sys.stdout.buffer.write(done.stdout)
sys.stderr.buffer.write(done.stderr)
sys.exit(done.returncode)
"""


def fakes(folder: Path) -> dict[str, str]:
    """``ssh``, ``docker`` and ``conda`` in a folder; the variables that put them first."""
    folder.mkdir(exist_ok=True)
    for name, text in (("ssh", _SSH), ("docker", _DOCKER), ("conda", _CONDA)):
        (folder / name).write_text(f"#!{sys.executable}\nimport os, sys\n{text}")
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}
