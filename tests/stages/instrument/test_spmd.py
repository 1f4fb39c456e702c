"""An engine that runs in the trainer's own process: both sides are in one checkout, and take a run each."""

from __future__ import annotations

from pathlib import Path

import pytest

from stages.card.store import read_card
from tests.cli.test_commands import answer, contents
from tests.stages.instrument.made import Task, python
from tests.verl.wheels import unpack

pytestmark = pytest.mark.network


def test_both_sides_of_one_checkout(tmp_path: Path) -> None:
    verl = unpack("verl", "0.6.1", tmp_path / "verl")
    interpreter = str(python(tmp_path / "env", verl))
    facts = {f"{side}.python": interpreter for side in ("train", "infer")}
    task = Task(
        tmp_path,
        **facts,
        **{"train.framework": "verl", "train.backend": "fsdp", "train.checkout": str(verl), "infer.framework": "vllm"},
    )
    before = contents(verl)
    answer("scene", "scene", "--task", task.card)
    task.pass_stages(4, result={"world": {"train": 8, "infer": 2}})
    task.pass_stages(5)
    found = answer("capture-prepare", "capture", "prepare", "--task", task.card)
    assert {name: one["recipes"] for name, one in found["sides"].items()} == {
        "train": ["verl-legacy-fsdp"],
        "infer": ["verl-spmd-rollout"],
    }
    assert len(found["receipts"]) == 1
    assert sorted(found["launch"]) == ["infer", "train"]  # msprobe allows one debugger in a process
    assert [found["sides"][name]["environment"]["DUMP_PHASE"] for name in ("train", "infer")] == ["log_prob", "prefill"]
    (edits,) = read_card(task.card).data["edits"]
    assert edits["recipes"] == ["verl-legacy-fsdp", "verl-spmd-rollout"]
    assert "one debugger" in task.run(code=2, failing=True)["error"]["what"]
    answer("restore", "restore", "--reason", "enough", "--task", task.card)
    after = {name: data for name, data in contents(verl).items() if not name.startswith(".probepatch/")}
    assert after == before
