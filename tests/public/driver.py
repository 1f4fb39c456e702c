"""How the tests of this folder drive the command line: the folders of the cases, real processes, and processes that stop or
die at a chosen write."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.ledger.trees import snapshot

ROOT = Path(__file__).resolve().parents[2]
CASES = sorted(path for path in Path(__file__).parent.iterdir() if path.name[:2].isdigit())
FUNCTION = b"def f(x):\n    return x\n"
PATCHED = b"def f(x):\n    tap(x)\n    return x\n"


def case(number: int) -> Path:
    """The folder of a case."""
    (found,) = (path for path in CASES if path.name.startswith(f"{number:02}-"))
    return found


def inputs(folder: Path) -> list[Path]:
    """A case's input files, by its list of digests."""
    sums = folder / "SHA256SUMS"
    return [folder / line.split()[1] for line in sums.read_text().splitlines()] if sums.exists() else []


def lay_out(folder: Path, root: Path) -> Path:
    """A new checkout that holds a case's inputs."""
    root.mkdir()
    for path in inputs(folder):
        (root / path.name).write_bytes(path.read_bytes())
    return root


def recipes(*files: Path) -> list[str]:
    """The options for recipe files."""
    return [part for file in files for part in ("--recipe-file", str(file))]


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    """The command line as a process of its own."""
    command = [sys.executable, "-m", "probepatch", *map(str, arguments), "--json"]
    return subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def end(process: subprocess.Popen[str]) -> tuple[int, dict[str, Any]]:
    """Its exit code and its answer."""
    out, err = process.communicate()
    assert process.returncode >= 0, err
    return process.returncode, json.loads(out)


def probepatch(*arguments: str | Path, code: int = 0) -> dict[str, Any]:
    """The answer of one command that has to end with ``code``."""
    found, answer = end(start(*arguments))
    assert found == code, answer
    return answer


def refusal(*arguments: str | Path, code: int, kind: str) -> str:
    """Everything that an error of a ``kind`` says, a plan's findings included."""
    error = probepatch(*arguments, code=code)["error"]
    said = [error, *error.get("findings", ())]
    assert kind in [one["kind"] for one in said], said
    return "\n".join(str(part) for one in said for part in (*one.values(), *one["details"]))


def printed_patch(root: Path, *arguments: str) -> bytes:
    """What ``diff --patch`` prints."""
    command = [sys.executable, "-m", "probepatch", "diff", str(root), "--patch", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout


def states(root: Path, code: int = 0) -> set[str]:
    """The states of all edits of a tree."""
    return {edit["state"] for edit in probepatch("status", root, code=code)["edits"]}


def everything(root: Path) -> dict[str, tuple[int, bytes | str]]:
    """Each path with mode and bytes, and whether there is a ledger; git's own folder is left out."""
    return snapshot(root) | {".probepatch": (0, str((root / ".probepatch").exists()))}


def sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def interpreters() -> Iterator[str]:
    """Other Pythons of this machine, newest first: those of pyenv, then those on the PATH."""
    pyenv = Path(sys.base_prefix).parent
    yield from map(str, sorted(pyenv.glob("3.*/bin/python"), key=lambda path: -int(path.parts[-3].split(".")[1])))
    yield from filter(None, (shutil.which(f"python3.{minor}") for minor in range(20, 7, -1)))


def compiles(python: str, source: Path) -> bool | None:
    """Whether an interpreter can compile a file; None when it does not run at all."""
    code = "import sys\ntry: compile(sys.stdin.buffer.read(), 'x', 'exec')\nexcept SyntaxError: print('no')\nelse: print('yes')"
    done = subprocess.run(
        [python, "-I", "-c", code], input=source.read_bytes(), capture_output=True, timeout=60, check=False
    )
    return {b"yes\n": True, b"no\n": False}.get(done.stdout)


class Forks:
    """A process that has everything imported and forks a child for each command: hundreds of them are cheap.

    A child can be made to do a deed at its n-th write: a signal (KILL, TERM, INT, STOP) or ``append:PATH``.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def run(
        self,
        *arguments: str | Path,
        at: int = 0,
        deed: str = "none",
        below: Path | None = None,
        user: int | None = None,
    ) -> dict[str, Any]:
        """``code`` as :mod:`subprocess` gives it, ``hit`` whether the deed was done, ``pid``, ``answer``; a child that was stopped
        has no code yet. With ``below`` reading a file of that folder counts as well as writing."""
        return self._ask(
            {
                "arguments": [*map(str, arguments), "--json"],
                "at": at,
                "deed": deed,
                "below": below and str(below),
                "user": user,
            }
        )

    def go_on(self, stopped: dict[str, Any], signal: str = "CONT") -> dict[str, Any]:
        """Wake up, or end, a child that was stopped."""
        return self._ask({"wake": stopped["pid"], "signal": signal})

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(question), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        assert line, "the process that forks has died"
        reply: dict[str, Any] = json.loads(line)
        reply["answer"] = json.loads(reply["out"]) if reply["out"] else {}
        return reply


@contextmanager
def forks() -> Iterator[Forks]:
    command = [sys.executable, "-m", "tests.public.forking"]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(command, cwd=ROOT, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        yield Forks(process)
        assert process.stdin is not None
        process.stdin.close()
