"""Scripts that want to run, to grow without an end, or to be no script at all: one clear line, the right code, in bounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_shell import ROOT, run
from tests.stages.inputs.reading import reading, verdict, verl

LAUNCH = "python3 -m verl.trainer.main_ppo trainer.balance_batch=True "
BOUNDED = (
    "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)); sys.argv = sys.argv[1:]; "
)


def bounded(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """``probepatch inputs …`` in 1 GB of memory and a minute."""
    program = (
        BOUNDED + "sys.path.insert(0, sys.argv[0]); runpy.run_module('probepatch', run_name='__main__', alter_sys=True)"
    )
    return subprocess.run(
        [sys.executable, "-c", program, str(ROOT), "inputs", *map(str, arguments)],
        cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


GROWING = {
    "array": "A=(a b)\n" + 'A+=("${A[@]}")\n' * 40 + LAUNCH + '"${A[@]}"\n',
    "string": "A=aaaaaaaa\n" + 'A="$A$A"\n' * 40 + LAUNCH + 'x="$A"\n',
    "replaced": "A=aaaaaaaa\n" + 'A="${A//a/aa}"\n' * 40 + LAUNCH + 'x="$A"\n',
    "many elements": "A=(" + "a " * 200_000 + ")\n" + LAUNCH + ' "${A[@]}"\n',
    "elements many times": "A=(" + "a " * 20_000 + ")\n" + LAUNCH + ' "${A[@]}"' * 500 + "\n",
    "one after another": "A=1\n" + 'A="$A"\n' * 5_000 + LAUNCH + 'x="$A"\n',
    "pattern": "x=" + "a" * 200_000 + "\ny=${x%%" + "*a" * 20 + "b}\n" + LAUNCH + " z=$y\n",
    "document": "cat <<EOF\n" + "$x y\n" * 100_000 + "EOF\n" + LAUNCH,
    "dollars": LAUNCH + "$" * 500_000 + "\n",
}


@pytest.mark.parametrize("name", GROWING)
def test_what_grows_is_unknown_or_refused(name, tmp_path):
    (tmp_path / "x.sh").write_text(GROWING[name])
    for arguments in (("check", "x.sh"), ("fix", "x.sh", "--dry-run")):
        done = bounded(*arguments, "--json", cwd=tmp_path)
        assert done.returncode == 1, done.stdout[-600:] + done.stderr[-600:]
        json.loads(done.stdout)
        assert "Traceback" not in done.stderr


ENDLESS = {
    "evaluated": 'x=\'eval "$x"\'; eval "$x"\n' + LAUNCH,
    "bash -c": 'x=\'bash -c "$x"\'; bash -c "$x"\n' + LAUNCH,
    "function": "f() { f; }\nf\n" + LAUNCH,
    "fork bomb": "b() { b | b & }; b\n" + LAUNCH,
    "itself": "source x.sh\n" + LAUNCH,
    "ten times ten": "source a0.sh\n" + LAUNCH,
    "launches": (LAUNCH + "\n") * 101,
}


@pytest.mark.parametrize("name", ENDLESS)
def test_what_has_no_end_is_told(name, tmp_path):
    for number in range(12):
        (tmp_path / f"a{number}.sh").write_text(f"source a{number + 1}.sh\n" * 10)
    (tmp_path / "x.sh").write_text(ENDLESS[name])
    done = bounded("check", "x.sh", "--json", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert json.loads(done.stdout)["error"]["kind"] in ("too-long", "finding")


def test_what_is_no_regular_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.sh")
    (tmp_path / "zero.sh").symlink_to("/dev/zero")
    (tmp_path / "nul.sh").write_bytes(b"a\0b")
    (tmp_path / "long.sh").write_bytes(b"#" * ((1 << 19) + 1))
    for name in ("pipe.sh", "zero.sh", "nul.sh", "long.sh"):
        for command in ("check", "fix"):
            done = bounded(command, name, cwd=tmp_path)
            assert done.returncode == 3, done.stdout + done.stderr
            assert done.stderr.startswith("error: ")
    (tmp_path / "loop.sh").symlink_to("loop.sh")
    for name in ("loop.sh", "x" * 5000, "."):
        assert bounded("check", name, cwd=tmp_path).returncode == 2


def test_nothing_in_a_script_ever_runs(tmp_path):
    ran = tmp_path / "ran"
    text = "\n".join(
        [
            f"x=$(rm -rf {tmp_path}; touch {ran})",
            f"`touch {ran}`",
            f"eval 'touch {ran}'",
            f"source <(touch {ran})",
            f"bash -c 'touch {ran}'",
            f"trap 'touch {ran}' EXIT",
            f"a=${{b:-$(touch {ran})}} c=$((d[$(touch {ran})]))",
            f"PROMPT_COMMAND='touch {ran}' BASH_ENV=<(touch {ran})",
            LAUNCH + f"y=$(touch {ran}) z=<(touch {ran}) w=`touch {ran}`",
        ]
    )
    (tmp_path / "x.sh").write_text("#!/bin/bash\n" + text + "\n")
    for arguments in (("check", "x.sh"), ("fix", "x.sh"), ("check", "x.sh", "--baseline", "x.sh")):
        assert run("inputs", *arguments, cwd=tmp_path).returncode == 1
    assert not ran.exists()


def test_an_unknown_because_it_is_too_long_says_so():
    found = verdict("A=x\n" + 'A="$A$A$A$A"\n' * 12 + verl("trainer.balance_batch=$A"), "balance-batch")
    assert found.state == "UNKNOWN"
    assert "too long" in found.reason
    assert len(reading("A=1\n" + 'A="$A"\n' * 2_000 + "vllm serve $A\n").commands) == 1


def test_fix_and_revert_twice_with_the_user_s_edits_between(tmp_path):
    script = tmp_path / "x.sh"
    script.write_bytes(b"#!/bin/bash\n# caf\xe9\n" + LAUNCH.encode() + b"\\\n    x=1\n")
    original = script.read_bytes()
    for number in (1, 2):
        run("inputs", "fix", "x.sh", cwd=tmp_path)
        assert script.read_bytes() != original
        mine = b"# mine %d\n" % number
        script.write_bytes(script.read_bytes() + mine)
        original += mine
        run("inputs", "fix", "x.sh", cwd=tmp_path)
        assert run("revert", tmp_path).returncode == 0
        assert script.read_bytes() == original


def test_two_at_once_and_one_killed(tmp_path):
    script = tmp_path / "x.sh"
    script.write_text("#!/bin/bash\n" + LAUNCH + "x=1\n")
    original = script.read_bytes()
    command = [sys.executable, "-m", "probepatch", "inputs", "fix", "x.sh"]
    for wait in (None, 0.05, 0.12, 0.2, 0.3):
        both = [
            subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE,
                             stdout=subprocess.DEVNULL)
            for _number in range(2)
        ]  # fmt: skip
        if wait is not None:
            try:
                both[0].wait(wait)
            except subprocess.TimeoutExpired:
                both[0].kill()
        ends = [process.communicate()[1] for process in both]
        assert all(process.returncode in (0, 1, 3, -9) for process in both), ends
        run("inputs", "fix", "x.sh", cwd=tmp_path)
        assert b"balance_batch=False" in script.read_bytes()
        assert run("revert", tmp_path).returncode == 0
        assert script.read_bytes() == original
