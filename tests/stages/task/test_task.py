"""The task card's commands as real processes; every JSON answer is checked against its published schema."""

from __future__ import annotations

import fcntl
import json
import sys
from pathlib import Path

import jsonschema
import pytest

from stages.card.evidence import record
from stages.card.schema import card_schema
from stages.card.store import changing, read_card
from tests.cli.test_commands import FILES, answer
from tests.cli.test_shell import ROOT, run

BASIS = (
    "usage=dump",
    "model.path=/models/m",
    "train.framework=verl",
    "infer.framework=vllm",
    "baseline_command=bash run.sh",
    "artifacts=/dumps",
)
EDIT, RESTORE = "AUTH_EDIT_TARGET_CODE", "AUTH_RESTORE_CODE"


@pytest.fixture
def card(tmp_path: Path) -> Path:
    answer("task-init", "task", "init", tmp_path / "task")
    return tmp_path / "task/task_card.json"


@pytest.fixture
def ready(card: Path) -> Path:
    """Stage 0 is done."""
    answer("task-set", "task", "set", *BASIS, "--task", card)
    return card


def states(card: Path, code: int = 0) -> dict[int, str]:
    found = answer("task-status", "task", "status", "--task", card, code=code)
    return {one["stage"]: one["state"] for one in found["stages"]}


def test_a_new_card_knows_nothing(card):
    shown = answer("task-card", "task", "show", "--task", card)
    assert {name for name, value in shown["facts"].items() if value is not None} == {"scope", "stop_condition"}
    assert states(card)[0] == "next"
    assert states(card)[1] == "blocked"
    assert answer("error", "task", "init", card.parent, code=3)["error"]["kind"] == "refused"
    shown = run("task", "show", "--task", card).stdout
    assert "unknown" in shown
    assert "not asked yet" in shown


def test_the_published_schema_is_the_one_that_is_made_from_the_fields():
    published = json.loads((ROOT / "docs/schemas/task-card.json").read_text())
    assert published == card_schema() == json.loads(run("task", "schema").stdout)
    jsonschema.Draft202012Validator.check_schema(published)


def test_the_card_is_found_upwards_named_or_told_by_the_environment(ready, tmp_path):
    deep = ready.parent / "a/b"
    deep.mkdir(parents=True)
    for arguments, cwd, environment in (
        ([], deep, {}),
        (["--task", str(ready.parent)], tmp_path, {}),
        ([], tmp_path, {"PROBEPATCH_TASK": str(ready)}),
    ):
        done = run("task", "status", "--json", *arguments, cwd=cwd, **environment)
        assert Path(json.loads(done.stdout)["card"]) == ready
    nowhere = run("task", "status", cwd=tmp_path)
    assert nowhere.returncode == 2
    assert "probepatch task init FOLDER" in nowhere.stderr
    missing = run("task", "status", "--task", ready.parent / "missing", cwd=deep)
    assert (missing.returncode, "does not exist" in missing.stderr) == (2, True)


def test_the_next_command_can_be_typed_from_here(card, tmp_path):
    inside = json.loads(run("task", "status", "--json", cwd=card.parent).stdout)["next"]
    outside = json.loads(run("task", "status", "--json", "--task", card, cwd=tmp_path).stdout)["next"]
    wanted = (
        "probepatch task set usage=… model.path=… train.framework=… infer.framework=… baseline_command=… artifacts=…"
    )
    assert [one["command"] for one in inside] == [wanted]
    assert [one["command"] for one in outside] == [f"{wanted} --task {card}"]


def test_set_stores_all_or_nothing(card):
    before = card.read_bytes()
    for facts, kind in (
        (["usage=dump", "nope=1"], "usage"),
        (["usage=dump", "hardware=toaster"], "usage"),
        (["usage=dump", "no-equals"], "usage"),
        (["usage=dump", "baseline_command=run --token=abcdef123456"], "secret"),
        (["usage=dump", "constraints='open"], "usage"),
    ):
        error = answer("error", "task", "set", *facts, "--task", card, code=2)["error"]
        assert error["kind"] == kind
        assert "abcdef123456" not in json.dumps(error)
    assert card.read_bytes() == before
    assert "train.python" in answer("error", "task", "set", "train.pyhton=x", "--task", card, code=2)["error"]["todo"]


def test_values_are_typed_and_taken_back(card):
    facts = ["constraints='no root' 'port 8000'", "hardware=ascend", "baseline_command=A=$HF_TOKEN run --x=1=2"]
    done = answer("task-set", "task", "set", *facts, "--task", card)
    assert done["set"] == {
        "constraints": ["no root", "port 8000"],
        "hardware": "ascend",
        "baseline_command": "A=$HF_TOKEN run --x=1=2",
    }
    answer("task-set", "task", "set", "hardware=unknown", "--task", card)
    assert read_card(card).fact("hardware") is None


def test_the_interpreter_that_answers_is_stored(card, tmp_path):
    link = tmp_path / "bin/python"
    link.parent.mkdir()
    link.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    link.chmod(0o755)
    done = answer("task-set", "task", "set", f"train.python={link}", "train.prefix=env A=1", "--task", card)
    assert done["set"]["train.python"] == sys.executable
    assert done["answered"]["train"]["version"] == ".".join(map(str, sys.version_info[:3]))
    assert read_card(card).fact("train.prefix") == ["env", "A=1"]
    assert "CPython" in run("task", "log", "--task", card).stdout


def test_a_side_that_does_not_answer_is_not_stored(card):
    before = card.read_bytes()
    for facts in (
        ["train.python=/nowhere/python"],
        [f"train.python={sys.executable}", "train.prefix=false"],
        ["infer.python=cat"],
        [f"infer.python={sys.executable}", "infer.prefix=sh -c 'echo {}; exit 1'"],
    ):
        assert answer("error", "task", "set", *facts, "--task", card, code=3)["error"]["kind"] == "side"
    assert card.read_bytes() == before
    done = answer("task-set", "task", "set", "train.python=/nowhere/python", "--untested", "--task", card)
    assert (done["set"]["train.python"], done["answered"]) == ("/nowhere/python", {})
    prefix = answer("task-set", "task", "set", "infer.prefix=docker exec c", "--task", card)
    assert prefix["answered"] == {}  # whose interpreter is unknown cannot be asked


def test_permissions_are_asked_in_one_question(ready):
    asked = answer("task-permit", "task", "permit", "--task", ready)
    assert (asked["recorded"], {one["granted"] for one in asked["permissions"]}) == (False, {None})
    facts = {one["name"]: one["value"] for one in asked["facts"]}
    assert (facts["baseline_command"], facts["artifacts"], facts["train.prefix"]) == ("bash run.sh", "/dumps", None)
    shown = run("task", "permit", "--task", ready).stdout
    for word in ("AUTH_STOP_RUNNING_SERVICES", "baseline command: bash run.sh", "reached by (ssh target", "unknown"):
        assert word in shown
    assert states(ready)[2] == "blocked"  # by the preflight; asking is possible all the same


def test_the_answer_covers_all_five(ready):
    done = answer("task-permit", "task", "permit", EDIT, RESTORE, "--scope", "node 3 only", "--task", ready)
    assert {one["name"] for one in done["permissions"] if one["granted"]} == {EDIT, RESTORE}
    assert {one["scope"] for one in done["permissions"]} == {"node 3 only"}
    assert all(one["at"] for one in done["permissions"])
    done = answer("task-permit", "task", "permit", "--all", "--deny", "AUTH_CLEAN_APPROVED_DIRS", "--task", ready)
    assert [one["name"] for one in done["permissions"] if not one["granted"]] == ["AUTH_CLEAN_APPROVED_DIRS"]


def test_an_answer_that_is_not_clear_is_none(ready, card):
    before = ready.read_bytes()
    for arguments in ([EDIT, "--deny", EDIT], ["--deny", EDIT], ["AUTH_EDIT"], ["--all", "--deny", "AUTH_X"]):
        answer("error", "task", "permit", *arguments, "--task", ready, code=2)
    secret = answer("error", "task", "permit", "--all", "--scope", "password=hunter22", "--task", ready, code=2)
    assert secret["error"]["kind"] == "secret"
    assert ready.read_bytes() == before


def test_permissions_wait_for_the_card_only(card):
    error = answer("error", "task", "permit", "--all", "--task", card, code=3)["error"]
    assert error["kind"] == "out-of-order"
    assert "probepatch task set" in error["todo"]


def test_evidence_that_went_stale_sends_the_card_back(ready, tmp_path):
    rests_on = tmp_path / "config.json"
    rests_on.write_text("{}")
    with changing(ready) as card:
        record(card, 1, True, "free", files=[rests_on], facts=["artifacts"])
    answer("task-permit", "task", "permit", "--all", "--task", ready)
    assert list(states(ready).values())[:4] == ["done", "done", "done", "next"]
    done = answer("task-set", "task", "set", "artifacts=/elsewhere", "--task", ready)
    assert done["to_repeat"] == [1]
    assert states(ready, code=1)[1] == "stale"
    answer("task-set", "task", "set", "artifacts=/dumps", "--task", ready)
    assert states(ready)[1] == "done"
    rests_on.write_text("{ }")
    found = answer("task-status", "task", "status", "--task", ready, code=1)
    assert (found["stages"][1]["state"], found["stages"][3]["state"]) == ("stale", "blocked")
    assert str(rests_on) in found["stages"][1]["why"]
    assert found["next"][0]["command"].startswith("probepatch preflight")


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"", 4), (b"[" * 100_000, 4), (b"\xff\xfe", 4), (b'{"format": 3}', 4), (b'{"a": NaN}', 4), (b'{"a":1,"a":2}', 4)],
)
def test_a_card_that_is_none(tmp_path, content, code):
    (tmp_path / "task_card.json").write_bytes(content)
    for arguments in (["status"], ["show"], ["set", "usage=dump"], ["permit", "--all"], ["log"]):
        done = run("task", *arguments, "--task", tmp_path, "--json")
        assert (done.returncode, len(done.stderr)) == (code, 0)
        assert json.loads(done.stdout)["error"]["what"]
    assert (tmp_path / "task_card.json").read_bytes() == content


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda data: data["facts"].update(usage=5), ".facts.usage"),
        (lambda data: data["facts"].update(constraints="one"), ".facts.constraints"),
        (lambda data: data["permissions"].update(A=1), ".permissions.A"),
        (lambda data: data["permissions"].update({EDIT: {"granted": "yes", "at": "", "scope": ""}}), ".granted"),
        (lambda data: data["stages"].update({"1": {"state": "done"}}), ".stages.1.summary"),
        (lambda data: data["stages"].update({"x": {}}), ".stages.x"),
        (lambda data: data["log"].append(1), ".log[1]"),
        (lambda data: data["edits"].append({"checkout": "/a"}), ".edits[0].recipes"),
        (lambda data: data.update(more=1), ".more"),
    ],
)
def test_a_card_of_another_form_is_told_by_its_place(card, change, where):
    data = json.loads(card.read_text())
    change(data)
    card.write_text(json.dumps(data))
    for arguments in (["status"], ["show"], ["set", "usage=dump"], ["log"]):
        error = answer("error", "task", *arguments, "--task", card, code=4)["error"]
        assert where in error["why"]


# --- apply and revert within a task ------------------------------------------------------------------------------------------


def test_apply_within_a_task_needs_its_permissions(ready, demo_checkout, git):
    error = answer("error", "apply", demo_checkout, *FILES, "--task", ready, code=3)["error"]
    assert error["kind"] == "not-permitted"
    assert (EDIT in error["what"], RESTORE in error["what"]) == (True, True)
    answer("task-permit", "task", "permit", EDIT, "--task", ready)
    error = answer("error", "apply", demo_checkout, *FILES, code=3, PROBEPATCH_TASK=str(ready))["error"]
    assert (EDIT in error["what"], RESTORE in error["what"]) == (False, True)
    assert git(demo_checkout, "status", "--porcelain") == ""
    assert read_card(ready).data["edits"] == []


def test_edits_stand_on_the_card_as_long_as_they_stand_in_the_checkout(ready, demo_checkout):
    answer("task-permit", "task", "permit", "--all", "--task", ready)
    answer("apply", "apply", demo_checkout, *FILES, "--task", ready)
    (noted,) = answer("task-card", "task", "show", "--task", ready)["edits"]
    assert (noted["checkout"], noted["recipes"]) == (str(demo_checkout), ["tinyrl-engine", "tinyrl-trainer"])
    assert str(demo_checkout) in run("task", "show", "--task", ready).stdout
    assert states(ready)[9] == "next"  # from every state, once an edit stands
    answer("receipt", "revert", demo_checkout, "--recipe", "tinyrl-engine", "--task", ready)
    assert read_card(ready).data["edits"][0]["recipes"] == ["tinyrl-trainer"]
    answer("receipt", "revert", demo_checkout, "--task", ready)
    assert read_card(ready).data["edits"] == []
    assert states(ready)[9] == "blocked"


def test_an_apply_that_fails_leaves_nothing_on_the_card(ready, demo_checkout):
    answer("task-permit", "task", "permit", "--all", "--task", ready)
    answer("apply", "apply", demo_checkout, *FILES)
    answer("receipt", "revert", demo_checkout)
    with (demo_checkout / ".git/probepatch/lock").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        answer("error", "apply", demo_checkout, *FILES, "--task", ready, code=3)
    assert read_card(ready).data["edits"] == []
    assert any("no edit is left" in line["what"] for line in read_card(ready).data["log"])


def test_a_card_that_another_process_holds_is_not_waited_for(ready, demo_checkout, git):
    answer("task-permit", "task", "permit", "--all", "--task", ready)
    with ready.with_name(".task_card.json.lock").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for arguments in (["task", "set", "usage=dump"], ["apply", demo_checkout, *FILES]):
            assert "another process" in answer("error", *arguments, "--task", ready, code=3)["error"]["what"]
    assert git(demo_checkout, "status", "--porcelain") == ""


def test_without_a_card_apply_is_what_it_was(demo_checkout):
    answer("apply", "apply", demo_checkout, *FILES)
    assert answer("receipt", "revert", demo_checkout)["proof"]["exact"]


def test_a_revert_does_not_wait_for_the_card(ready, demo_checkout):
    answer("task-permit", "task", "permit", "--all", "--task", ready)
    answer("apply", "apply", demo_checkout, *FILES, "--task", ready)
    ready.write_text("{}")
    receipt = answer("receipt", "revert", demo_checkout, "--task", ready)
    assert receipt["proof"]["exact"]
    assert any("task card" in note for note in receipt["notes"])
