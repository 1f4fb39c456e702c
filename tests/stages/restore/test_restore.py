"""Stage 9 as a real process: byte for byte, nothing left, and the card closed; and what keeps it from being so."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stages.card.evidence import record
from stages.card.store import changing, read_card
from tests.cli.test_commands import FILES, WORKER, answer, contents
from tests.cli.test_shell import run
from tests.conftest import FIXTURES

FACTS = ("usage=dump", "model.path=/m", "train.framework=verl", "infer.framework=vllm", "baseline_command=true")


@pytest.fixture
def card(tmp_path: Path) -> Path:
    folder = tmp_path / "task"
    answer("task-init", "task", "init", folder)
    (tmp_path / "artifacts").mkdir()
    answer("task-set", "task", "set", *FACTS, f"artifacts={tmp_path / 'artifacts'}", "--task", folder)
    answer("task-permit", "task", "permit", "--all", "--task", folder)
    return folder / "task_card.json"


@pytest.fixture
def patched(card: Path, demo_checkout: Path) -> Path:
    answer("apply", "apply", demo_checkout, *FILES, "--task", card)
    return demo_checkout


def restore(card: Path, *arguments: str | Path, code: int = 0) -> dict:
    return answer("restore", "restore", *arguments, "--task", card, code=code)


def states(card: Path) -> dict[int, str]:
    done = run("task", "status", "--json", "--task", card)
    return {one["stage"]: one["state"] for one in json.loads(done.stdout)["stages"]}


def test_two_checkouts_are_as_before_and_the_task_is_closed(card, demo_checkout, tmp_path, git):
    plain = tmp_path / "plain"  # without git
    shutil.copytree(FIXTURES / "checkout", plain, ignore=shutil.ignore_patterns("__pycache__"))
    before = [contents(demo_checkout), contents(plain)]
    for tree in (demo_checkout, plain):
        answer("apply", "apply", tree, *FILES, "--task", card)
    subprocess.run([sys.executable, "-m", "compileall", "-q", plain], check=True)
    found = restore(card)
    assert found["finished"]
    assert [one["exact"] for one in found["checkouts"]] == [True, True]
    assert [one["checkout"] for one in found["checkouts"]] == [
        str(plain),
        str(demo_checkout),
    ]  # the last comes out first
    assert found["checkouts"][1]["receipt"]["proof"]["git_diff_equal"] is True
    assert git(demo_checkout, "status", "--porcelain") == ""
    after = contents(plain)
    ours = ("__pycache__", ".probepatch")
    assert {name: data for name, data in after.items() if not any(one in name for one in ours)} == before[1]
    assert not [name for name in after if "probepatch_tinyrl" in name and ".probepatch/" not in name]
    assert contents(demo_checkout) == before[0]
    assert read_card(card).data["edits"] == []
    assert states(card)[9] == "done"
    assert found["next"] == []
    assert restore(card)["finished"]  # once more changes nothing
    assert "the task is finished" in run("restore", "--task", card).stdout


def test_a_change_of_ones_own_stays_and_is_no_fault(card, patched):
    path = patched / WORKER
    path.write_text(path.read_text() + "# mine\n")
    found = restore(card)
    assert found["finished"]
    assert path.read_text().endswith("# mine\n")
    (proof,) = (one for one in found["checkouts"][0]["receipt"]["proof"]["files"] if one["path"] == WORKER)
    assert (proof["added"], proof["removed"]) == (1, 0)


def test_our_line_changed_inside_keeps_the_task_open(card, patched):
    path = patched / WORKER
    text = path.read_text()
    path.write_text(
        text.replace("probepatch_tinyrl.captured(micro_batch)", "probepatch_tinyrl.captured(micro_batch, 7)")
    )
    assert path.read_text() != text
    found = restore(card, code=1)
    assert (found["finished"], states(card)[9]) == (False, "failed")
    assert found["faults"]
    assert read_card(card).data["edits"]
    assert restore(card, "--force")["finished"]
    assert states(card)[9] == "done"


def test_a_copy_of_ours_that_no_ledger_knows_is_found(card, patched):
    shutil.copy(patched / WORKER, patched / "tinyrl/copied.py")
    found = restore(card, code=1)
    (mark,) = found["checkouts"][0]["marks"]
    assert (Path(mark["path"]).name, mark["what"]) == ("copied.py", "mark")
    (patched / "tinyrl/copied.py").unlink()
    assert restore(card)["finished"]


def test_a_checkout_that_is_gone_is_named_and_the_others_are_restored(card, patched, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(FIXTURES / "checkout", other)
    answer("apply", "apply", other, *FILES, "--task", card)
    shutil.move(other, tmp_path / "moved")
    found = restore(card, code=1)
    assert [(one["exact"], one["receipt"] is None) for one in found["checkouts"]] == [(False, True), (True, False)]
    assert str(other) in found["faults"][0]["what"]
    shutil.move(tmp_path / "moved", other)
    assert restore(card)["finished"]


def test_what_a_stub_round_left_is_deleted_with_permission_only(card, patched, tmp_path):
    root = tmp_path / "artifacts"
    (root / "stub_source_round1/step0/rank0").mkdir(parents=True)
    (root / "msprobe").mkdir()
    (root / "msprobe/train.json").write_text('{"task": "tensor"}')
    (root / "msprobe/train.round1.json").write_text('{"task": "tensor", "load": {"path": "/x"}}')
    (root / "dump").mkdir()
    found = restore(card, code=1)
    assert {one["what"] for one in found["left"]} == {"stub-source", "load-config"}
    answer("task-permit", "task", "permit", "--all", "--deny", "AUTH_CLEAN_APPROVED_DIRS", "--task", card)
    answer("error", "restore", "--clean", "--task", card, code=3)
    answer("task-permit", "task", "permit", "--all", "--task", card)
    for outside in (tmp_path / "task", root, root / "..", tmp_path / "artifacts/../task"):
        answer("error", "restore", "--delete", outside, "--task", card, code=2)
    found = restore(card, "--clean", "--delete", root / "dump")
    assert found["finished"]
    assert sorted(path.name for path in root.rglob("*")) == ["msprobe", "train.json"]


def test_inside_a_loop_with_the_analysis_side_somebody_has_to_end_it(card, patched):
    answer("task-set", "task", "set", "usage=analysis", "--task", card)
    with changing(card) as opened:
        record(opened, 8, True, "round 1")
    assert answer("error", "restore", "--task", card, code=2)["error"]["kind"] == "loop-open"
    found = restore(card, "--reason", "all differences found")
    assert found["finished"]
    assert read_card(card).data["stages"]["9"]["result"]["reason"] == "all differences found"
    assert restore(card)["finished"]  # the reason is on the record


def test_without_an_edit_the_order_holds(card):
    error = answer("error", "restore", "--task", card, code=3)["error"]
    assert (error["kind"], "probepatch preflight" in error["todo"]) == ("out-of-order", True)


def test_a_failed_capture_can_be_restored(card, patched):
    with changing(card) as opened:
        record(opened, 6, True, "prepared")
        record(opened, 7, False, "no dump")
    answer("receipt", "revert", patched, "--task", card)  # by hand
    assert restore(card)["finished"]


def test_restoring_needs_its_permission(card, patched):
    answer("task-permit", "task", "permit", "--all", "--deny", "AUTH_RESTORE_CODE", "--task", card)
    before = contents(patched)
    answer("error", "restore", "--task", card, code=3)
    assert contents(patched) == before


def test_a_job_that_still_runs_keeps_the_task_open(card, patched, tmp_path):
    from stages.instrument.jobs import start
    from stages.instrument.record import note_job
    from stages.sides import Side

    job = start(Side("train", (), sys.executable), "sleep 600", None, {}, str(tmp_path / "job.log"))
    with changing(card) as opened:
        record(opened, 6, True, "prepared")
        note_job(opened, job, ["train"])
    found = restore(card, code=1)
    assert ["still runs" in one["what"] for one in found["faults"]] == [True]
    subprocess.run(["pkill", "-KILL", "-s", str(job.pid)], check=True)
    assert restore(card)["finished"]


def test_a_checkout_that_was_deleted_for_good_goes_off_the_card_by_the_users_word(card, patched, tmp_path):
    answer("error", "restore", "--gone", patched, "--task", card, code=2)  # it is there
    answer("error", "restore", "--gone", tmp_path / "never", "--task", card, code=2)
    shutil.rmtree(patched)
    restore(card, code=1)
    assert restore(card, "--gone", patched)["finished"]
    assert any("by the user's word" in line["what"] for line in read_card(card).data["log"])
