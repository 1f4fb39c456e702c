"""The command line around the commands: help, errors for people and for programs, exit codes, foreign modules."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import cli
from codemods.errors import FindingError, InvalidError, ProbePatchError, RefusedError, UsageError
from tests.conftest import write

ROOT = Path(cli.__file__).parent


def run(*arguments: str | Path, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """A real process with its output captured."""
    return subprocess.run(
        [sys.executable, "-m", "probepatch", *map(str, arguments)],
        cwd=cwd or ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
    )


def test_help_names_every_command_and_every_exit_code():
    done = run("--help")
    assert done.returncode == 0
    for name in cli.COMMANDS:
        assert f"\n  {name} " in done.stdout
    for code in (0, 1, 2, 3, 4, 70, 130, 141):
        assert f"\n    {code} " in done.stdout
    assert run("-h").stdout == done.stdout
    assert run("--version").stdout == f"probepatch, version {cli.__version__}\n"


@pytest.mark.parametrize("arguments", [["nope"], ["diff"], ["diff", "--nope"], ["diff", "a", "b"], []])
def test_a_wrong_call_is_exit_2(arguments):
    done = run(*arguments)
    assert done.returncode == 2
    if arguments:
        assert done.stderr.startswith("error: ")
        assert "Traceback" not in done.stderr
        answer = run(*arguments, "--json")
        assert answer.returncode == 2
        assert json.loads(answer.stdout)["error"]["kind"] == "usage"


@pytest.mark.parametrize(("kind", "code"), [(FindingError, 1), (UsageError, 2), (RefusedError, 3), (InvalidError, 4)])
def test_exit_codes(monkeypatch, capsys, kind, code):
    error = kind("what\x1b[31m", where="file.py:3", why="why", todo="todo", details=("one", "two"))
    monkeypatch.setattr(cli, "_run", lambda args: (_ for _ in ()).throw(error))
    assert cli.main([]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "error: what^[[31m",
        "  where  file.py:3",
        "  why    why",
        "  do     todo",
        "    one",
        "    two",
    ]
    assert cli.main(["--json"]) == code
    assert json.loads(capsys.readouterr().out) == {"error": error.as_json()}


def test_a_fault_of_ours_is_one_clear_line(monkeypatch, capsys):
    monkeypatch.setattr(cli, "_run", lambda args: {}["missing"])
    assert cli.main([]) == 70
    printed = capsys.readouterr().err
    assert printed.startswith("error: probepatch itself failed: KeyError: 'missing'")
    assert "Traceback" not in printed
    monkeypatch.setenv("PROBEPATCH_TRACEBACK", "1")
    assert cli.main([]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_interrupted(monkeypatch):
    monkeypatch.setattr(cli, "_run", lambda args: signal.raise_signal(signal.SIGINT))
    assert cli.main([]) == 130


@pytest.mark.parametrize("later", [ValueError("node dump"), ProbePatchError("not parsed")])
def test_an_interrupt_that_a_library_turned_into_an_error(monkeypatch, later):
    def interrupted(args):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise later from None

    monkeypatch.setattr(cli, "_run", interrupted)
    assert cli.main([]) == 130
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_long_error_of_a_library_is_cut(monkeypatch, capsys):
    monkeypatch.setattr(cli, "_run", lambda args: int("many\nlines " * 1000))
    assert cli.main([]) == 70
    printed = capsys.readouterr().err
    assert len(printed) < 1000
    assert len(printed.splitlines()) == 3


def on_full_disk(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A shell command with ``$P`` for the program."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "P": f"{sys.executable} -m probepatch", **environment}
    return subprocess.run(["bash", "-c", command], cwd=ROOT, env=env, capture_output=True, text=True)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", ["recipes", "recipes --json", "status /nowhere --json", "--help"])
def test_an_output_that_cannot_be_written_is_one_line(command, unbuffered):
    done = on_full_disk(f"$P {command} >/dev/full", PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 141
    assert len(done.stderr.splitlines()) == 1
    assert "No space left on device" in done.stderr


def test_the_other_streams_that_are_not_there():
    done = on_full_disk("$P recipes >&-")
    assert (done.returncode, done.stderr) == (141, "error: standard output is closed; nothing was done\n")
    for stderr in ("/dev/full", "&-"):
        assert on_full_disk(f"$P status /nowhere 2>{stderr}").returncode == 2
        assert on_full_disk(f"$P recipes 2>{stderr}").returncode == 0


def test_a_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -m probepatch --help | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) in ((141, ""), (0, ""))


@pytest.mark.parametrize("how", ["PYTHONPATH", "cwd"])
def test_foreign_modules_of_our_names_do_not_win(tmp_path, how):
    trap = "raise SystemExit('a foreign module was imported')\n"
    write(tmp_path, {"cli.py": trap, "commands/__init__.py": trap, "codemods/__init__.py": trap, "click.py": trap})
    start = f"""
import sys
sys.path.append({str(ROOT)!r})
sys.argv = ["probepatch", "--version"]
import probepatch
probepatch.main()
"""
    script = tmp_path / "start.py" if how == "cwd" else tmp_path.parent / f"{tmp_path.name}.py"
    script.write_text(start)
    path = str(tmp_path) if how == "PYTHONPATH" else ""
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.stdout == f"probepatch, version {cli.__version__}\n", done.stderr


def test_children_still_get_the_users_pythonpath(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setattr(sys, "path", list(sys.path))
    import probepatch

    monkeypatch.setattr(sys, "argv", ["probepatch", "--version"])
    with pytest.raises(SystemExit):
        probepatch.main()
    assert os.environ["PYTHONPATH"] == "/somewhere"


def test_an_error_is_a_probepatch_error_with_a_kind():
    class NoSuchThingError(ProbePatchError):
        pass

    assert NoSuchThingError("x").as_json()["kind"] == "no-such-thing"
