"""How a side is reached: prefixes that parse the words again, keep standard input for themselves, hang, or talk."""

from __future__ import annotations

import shlex
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from stages import sides
from stages.card.store import read_card
from stages.sides import Side, SideError
from tests.cli.test_commands import answer
from tests.stages.task.reach import fakes

ODD = ["two words", "a;b", "$HOME", "it's", 'q"q', "*", "", "a\\b", "{x,y}", "-n", "ünï"]
PREFIXES = [
    "",
    "env A=1",
    "ssh node7",
    "ssh -p 2222 -o BatchMode=yes -n me@node7",
    "ssh ssh",
    "docker exec c1",
    "docker exec -i c1",
    "docker exec -i -u 0 c1 bash -c",
    "ssh node7 docker exec -i c1",
    "ssh node7 docker exec c1",
    "ssh bastion ssh node7",
    "ssh node7 bash -c",
    "ssh bastion ssh node7 docker exec -i c1 bash -c",
    "conda run -n train",
    "ssh node7 conda run -n train",
    "docker exec c1 conda run -n train",
    "sh -c 'echo a banner; exec \"$@\"' --",
    'bash -c \'echo "{"; echo; exec "$@"; echo more\' --',
]


@pytest.fixture
def reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The fakes come first on PATH."""
    for name, value in fakes(tmp_path / "fakes").items():
        monkeypatch.setenv(name, value)
    return tmp_path


@pytest.fixture
def python(tmp_path: Path) -> str:
    """An interpreter whose path has to be quoted."""
    venv.create(tmp_path / "an env's $1", symlinks=True)
    return str(tmp_path / "an env's $1/bin/python")


@pytest.mark.parametrize("prefix", PREFIXES)
def test_words_and_questions_arrive_as_they_are(reached, python, prefix):
    side = Side("train", tuple(shlex.split(prefix)), python)
    assert side.ask("import sys\nanswer([GIVEN, sys.executable])", ODD) == [ODD, python]
    done = side.run(python, "-c", "import sys; print(ascii(sys.argv[1:]))", *ODD)
    assert ascii(ODD) in done.stdout.decode(), done


@pytest.mark.parametrize("prefix", ["ssh node7 docker exec c1", "conda run -n train", "docker exec -i c1 bash -c"])
def test_a_prefix_is_tried_and_who_answered_is_stored(reached, python, prefix):
    answer("task-init", "task", "init", reached / "task")
    facts = [f"train.prefix={prefix}", f"train.python={python}"]
    done = answer("task-set", "task", "set", *facts, "--task", reached / "task")
    assert done["answered"]["train"]["executable"] == python
    assert read_card(reached / "task/task_card.json").words("train.prefix") == tuple(prefix.split())


def test_a_terminal_that_is_not_there_is_told(reached):
    with pytest.raises(SideError) as found:
        Side("train", ("docker", "exec", "-it", "c1"), sys.executable).ask("answer(1)")
    assert "not a TTY" in found.value.why


def test_a_prefix_that_hangs_is_ended_with_its_children(tmp_path):
    side = Side("train", ("sh", "-c", f"echo $$ > {tmp_path}/pid; sleep 1000; true"), sys.executable)
    with pytest.raises(SideError) as found:
        side.ask("answer(1)", limit=1)
    assert "gave no answer" in found.value.what
    group = int((tmp_path / "pid").read_text())
    rest = subprocess.run(["ps", "-o", "stat=", "-g", str(group)], capture_output=True, text=True).stdout.split()
    assert all(state.startswith("Z") for state in rest)


def test_a_prefix_that_talks_without_end_is_ended(monkeypatch):
    monkeypatch.setattr(sides, "_LARGEST", 1 << 20)
    with pytest.raises(SideError) as found:
        Side("train", ("yes",), sys.executable).ask("answer(1)")
    assert "says more than" in found.value.what


def test_who_keeps_the_output_open_is_not_waited_for(tmp_path):
    (tmp_path / "reach").write_text('#!/bin/sh\nsetsid sleep 1000 & echo $! > "$0.pid"\n"$@"\n')
    (tmp_path / "reach").chmod(0o755)
    side = Side("train", (str(tmp_path / "reach"),), sys.executable)
    try:
        assert side.ask("answer(GIVEN)", {"a": [1]}, limit=60) == {"a": [1]}
    finally:
        subprocess.run(["kill", (tmp_path / "reach.pid").read_text().strip()], check=True)


@pytest.mark.parametrize(
    ("prefix", "says"),
    [
        ("false", "exit code 1"),
        ("true", "exit code 0"),
        ("/nowhere/ssh node7", "No such file"),
        ("sh -c 'echo password: hunter22 >&2; exit 1'", "***"),
        ("sh -c 'printf \"\\033[31mno\\007\" >&2; exit 3'", "?[31mno?"),
        ("echo", "-"),
    ],
)
def test_no_answer_is_one_clear_line(prefix, says):
    with pytest.raises(SideError) as found:
        Side("infer", tuple(shlex.split(prefix)), sys.executable).ask("answer(1)")
    assert says in (found.value.why or "")
    assert "hunter22" not in str(vars(found.value))
    assert (found.value.why or "").isprintable()


def test_an_old_python_or_a_program_that_is_none(reached):
    for program in ("cat", "bash", "/dev/null", "node-that-is-not-there"):
        with pytest.raises(SideError):
            Side("infer", (), program).ask("answer(1)")
