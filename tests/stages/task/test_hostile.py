"""Cards that are hostile, damaged, linked, read-only or written by two; processes that are killed; names that are no text."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stages.card.card import Card
from stages.card.evidence import record
from stages.card.permissions import NotPermittedError, demand, permit
from stages.card.store import ChangedCardError, changing, make_card, read_card
from tests.cli.test_commands import answer
from tests.cli.test_shell import ROOT, run
from tests.stages.task.test_task import BASIS

EVERY = (["status"], ["show"], ["log"], ["set", "usage=dump"], ["permit", "--all"], ["permit"])


@pytest.fixture
def card(tmp_path: Path) -> Path:
    path = make_card(tmp_path / "task")
    answer("task-set", "task", "set", *BASIS, "--task", path)
    return path


def nested(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


@pytest.mark.parametrize(
    "value",
    [b"1e999", b"-1e999", b"1" * 5000, nested(60), nested(400), nested(900), b"[" * 900 + b"]" * 900, b'"\\ud800"'],
    ids=["inf", "-inf", "digits", "deep", "deeper", "deepest", "list", "surrogate"],
)
def test_values_that_json_takes_and_we_do_not(card, value):
    data = json.loads(card.read_text())
    data["stages"]["4"] = {"state": "done", "summary": "s", "at": "2026-01-01T00:00:00Z", "files": {}, "facts": {}}
    data["stages"]["4"]["result"] = {"value": "HERE"}
    text = json.dumps(data).encode().replace(b'"HERE"', value)
    card.write_bytes(text)
    for words in EVERY:
        done = run("task", *words, "--task", card, "--json")
        assert done.returncode in (0, 4), done.stdout
        json.loads(done.stdout, parse_constant=lambda text: pytest.fail(text))
        assert done.stderr == ""
    if value != b'"\\ud800"':
        assert card.read_bytes() == text


def test_a_card_that_is_too_large(card):
    card.write_bytes(card.read_bytes() + b" " * (16 << 20))
    for words in EVERY:
        assert answer("error", "task", *words, "--task", card, code=4)["error"]["kind"] == "card"


def test_a_card_does_not_grow_until_it_cannot_be_read(card):
    before = card.read_bytes()
    with pytest.raises(Exception, match="larger than"), changing(card) as it:
        it.data["log"] = [{"at": "2026-01-01T00:00:00Z", "what": "a" * 1000}] * 17_000
    assert card.read_bytes() == before


@pytest.mark.parametrize("name", ["/m/\udcff\udcfe", "/m/模型", "/m/\x1b[2J\x07", "/m/a\nb", "/m/‮x", "~nobody-here/x"])
def test_names_that_are_no_plain_text(card, name):
    answer("task-set", "task", "set", f"model.path={name}", "--task", card)
    assert read_card(card).fact("model.path") == name
    assert answer("task-card", "task", "show", "--task", card)["facts"]["model.path"] == name
    shown = run("task", "show", "--task", card)
    assert shown.returncode == 0
    assert not {"\x1b", "\x07", "‮"} & {*shown.stdout}
    rows = [line for line in shown.stdout.splitlines() if line.startswith("model.path")]
    assert len(rows) == 1
    assert "folder of the weights" in rows[0]
    assert run("task", "status", "--task", card).returncode == 0


def test_lines_of_ones_own_cannot_be_made(card):
    forged = "x\n9  restore  done  everything was put back"
    answer("task-permit", "task", "permit", "--all", "--scope", forged, "--task", card)
    with changing(card) as it:
        record(it, 1, True, forged)
    for words in (["show"], ["status"], ["log"], ["permit"], ["permit", "--all"]):
        done = run("task", *words, "--task", card)
        assert not [line for line in done.stdout.splitlines() if line.startswith("9  restore  done")]


# --- links, modes, other things in the card's place ----------------------------------------------------------------------


def test_a_link_stays_a_link_and_both_names_are_one_card(card, tmp_path):
    (tmp_path / "other").mkdir()
    link = tmp_path / "other/task_card.json"
    link.symlink_to(card)
    answer("task-set", "task", "set", "hardware=cpu", "--task", link.parent)
    assert link.is_symlink()
    assert read_card(card).fact("hardware") == "cpu"
    with changing(card):
        error = answer("error", "task", "set", "hardware=cuda", "--task", link, code=3)["error"]
        assert "another process" in error["what"]


@pytest.mark.parametrize("what", ["dangling", "folder", "pipe", "loop"])
def test_something_else_in_its_place(tmp_path, what):
    path = tmp_path / "task_card.json"
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(path if what == "loop" else tmp_path / "nowhere")
    for words in (["status"], ["set", "usage=dump"]):
        answer("error", "task", *words, "--task", tmp_path, code=2)
    assert answer("error", "task", "init", tmp_path, code=3)["error"]["what"]


@pytest.mark.parametrize("place", ["/dev/null/x", "/proc/x", "file/x", "file"])
def test_init_where_no_folder_can_be(tmp_path, place):
    (tmp_path / "file").write_text("mine")
    answer("error", "task", "init", tmp_path / place, code=3)
    assert (tmp_path / "file").read_text() == "mine"
    assert answer("error", "task", "init", "", code=2)


def test_a_read_only_card_is_not_replaced(card):
    card.chmod(0o444)
    before = card.stat().st_ino
    error = answer("error", "task", "set", "hardware=cpu", "--task", card, code=3)["error"]
    assert "read-only" in error["why"]
    assert card.stat().st_ino == before
    answer("task-status", "task", "status", "--task", card)


@pytest.mark.parametrize("target", ["/etc/hostname", "nowhere"])
def test_a_lock_that_is_a_link_is_not_followed(card, target):
    lock = card.with_name(".task_card.json.lock")
    lock.unlink()
    lock.symlink_to(target)
    answer("error", "task", "set", "hardware=cpu", "--task", card, code=3)
    assert not (card.parent / "nowhere").exists()


# --- killed, and at the same time ----------------------------------------------------------------------------------------


def test_a_writer_that_is_killed_leaves_a_whole_card(card):
    script = (
        "import sys\nfrom pathlib import Path\nfrom stages.card.store import changing\n"
        "turn = 0\nprint('go', flush=True)\n"
        "while True:\n    turn += 1\n    with changing(Path(sys.argv[1])) as card: card.put('e2e_target', str(turn) * 5000)\n"
    )
    for wait in (0.0, 0.003, 0.011, 0.02, 0.05, 0.07):
        one = subprocess.Popen([sys.executable, "-c", script, card], cwd=ROOT, stdout=subprocess.PIPE)
        one.stdout.readline()
        time.sleep(wait)
        one.send_signal(signal.SIGKILL)
        one.communicate()
        target = read_card(card).fact("e2e_target")
        assert target is None or len({target[at : at + len(target) // 5000] for at in range(0, len(target), 5000)}) == 1
    card.with_name(".task_card.json-left").write_text("half of a c")
    answer("task-set", "task", "set", "hardware=cpu", "--task", card)
    assert sorted(path.name for path in card.parent.iterdir()) == [".task_card.json.lock", "task_card.json"]


def test_two_that_write_lose_nothing(card):
    words = [sys.executable, "-m", "probepatch", "task", "set", "--task", str(card)]
    facts = [f"constraints=number{n}" for n in range(12)]
    running = [
        subprocess.Popen([*words, fact], cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE) for fact in facts
    ]
    codes = [(one.communicate(), one.returncode)[1] for one in running]
    assert set(codes) <= {0, 3}
    log = [line["what"] for line in read_card(card).data["log"]]
    assert sum("constraints is set" in line for line in log) == codes.count(0) >= 1


def test_what_was_found_with_other_facts_is_not_recorded(card):
    seen = read_card(card)
    answer("task-set", "task", "set", "artifacts=/elsewhere", "--task", card)
    with pytest.raises(ChangedCardError), changing(card, seen) as it:
        record(it, 1, True, "free", facts=["artifacts"])
    assert read_card(card).data["stages"] == {}


def test_a_side_that_was_changed_while_it_was_asked(card, tmp_path):
    reach = tmp_path / "reach"
    reach.write_text(
        f"#!/bin/sh\ncd {ROOT}\n{sys.executable} -m probepatch task set train.python=/x --untested --task {card} >/dev/null\n"
        'exec "$@"\n'
    )
    reach.chmod(0o755)
    answer("task-set", "task", "set", f"train.python={sys.executable}", "--task", card)
    error = answer("error", "task", "set", f"train.prefix={reach}", "--task", card, code=3)["error"]
    assert error["kind"] == "changed-card"
    assert (read_card(card).fact("train.prefix"), read_card(card).fact("train.python")) == (None, "/x")


# --- evidence, order, permissions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["/dev/zero", "pipe", "a\0b", "folder", "/proc/self/mem"])
def test_evidence_that_rests_on_no_file(card, tmp_path, place):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    data = json.loads(card.read_text())
    name = place if place.startswith(("/", "a")) else str(tmp_path / place)
    data["stages"]["1"] = {"state": "done", "summary": "s", "at": "2026-01-01T00:00:00Z", "facts": {}, "result": {}}
    data["stages"]["1"]["files"] = {name: "0" * 64}
    card.write_text(json.dumps(data))
    found = answer("task-status", "task", "status", "--task", card, code=1)
    assert found["stages"][1]["state"] == "stale"


def test_a_file_that_is_gone_is_said_to_be_gone(card, tmp_path):
    (tmp_path / "f").write_text("")
    with changing(card) as it:
        record(it, 1, True, "free", files=[tmp_path / "f"])
    (tmp_path / "f").unlink()
    assert (
        "is not there any more" in answer("task-status", "task", "status", "--task", card, code=1)["stages"][1]["why"]
    )


@pytest.mark.parametrize("words", [["preflight"], ["scene"], ["task", "permit", "--all"]])
def test_out_of_order_names_the_command_that_can_be_typed(tmp_path, words):
    path = make_card(tmp_path / "a task")
    for folder, more in ((path.parent, ""), (tmp_path, f" --task '{path}'")):
        done = run(*words, "--json", *([] if folder == path.parent else ["--task", path]), cwd=folder)
        assert done.returncode == 3
        todo = json.loads(done.stdout)["error"]["todo"]
        assert todo.startswith("next: `probepatch task set usage=… model.path=…")
        assert todo.endswith(f"artifacts=…{more}`")


def test_a_permission_that_lacks_does_not_cost_the_others():
    card = Card.new()
    permit(card, {"AUTH_EDIT_TARGET_CODE": True, "AUTH_RESTORE_CODE": True}, "")
    with pytest.raises(NotPermittedError) as found:
        demand(card, "AUTH_RUN_DUMP_JOB")
    assert "permit AUTH_EDIT_TARGET_CODE AUTH_RUN_DUMP_JOB AUTH_RESTORE_CODE`" in found.value.todo


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        (["usage=dump", "usage=analysis"], "twice"),
        (["artifacts=out"], "absolute"),
        (["train.workdir=./x"], "absolute"),
        (["=x"], "no field"),
        (["train=verl"], "no field"),
        (["hardware=NPU"], "no value"),
        (["constraints='a"], "words"),
    ],
)
def test_facts_that_are_not_clear(card, facts, says):
    before = card.read_bytes()
    assert says in answer("error", "task", "set", *facts, "--task", card, code=2)["error"]["what"]
    assert card.read_bytes() == before


def test_a_side_that_was_not_tried_is_said(card):
    done = run("task", "set", "infer.prefix=ssh node7", "--task", card)
    assert "the infer side was not tried" in done.stdout
    assert (
        "not tried" not in run("task", "set", f"infer.python={sys.executable}", "infer.prefix=", "--task", card).stdout
    )
