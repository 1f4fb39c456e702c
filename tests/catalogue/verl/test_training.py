"""The Megatron actor and engine with Megatron stood in for, and the training step of the real FSDP workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.catalogue.verl.patched import dump_switches, patched, python, training_step
from tests.real import environment
from tests.real.test_verl import model as model  # the fixture: a tiny random Qwen2

pytestmark = pytest.mark.real

PROMPTS = [[11, 12, 13, 14, 15], [21, 22, 23]]


@pytest.mark.parametrize("version", ["0.4.1", "0.5.0", "0.6.0", "0.6.1", "0.7.0", "0.7.1"])
def test_the_legacy_megatron_actor(version: str, tmp_path: Path) -> None:
    tree = patched(version, tmp_path, "verl-legacy-megatron")
    python(tree, version, "megatron_legacy.py", version, tmp_path)


@pytest.mark.parametrize("version", ["0.7.0", "0.7.1", "0.8.0", "0.9.0", "0.9.1"])
def test_the_megatron_engine(version: str, tmp_path: Path) -> None:
    tree = patched(version, tmp_path, "verl-engine-megatron")
    python(tree, version, "megatron_engine.py", version, tmp_path)


UPDATES = [("0.9.1", "engine"), ("0.9.0", "engine"), ("0.8.0", "engine"), ("0.7.1", "engine"), ("0.7.0", "engine")]
UPDATES += [("0.7.1", "legacy"), ("0.7.0", "legacy"), ("0.6.1", "legacy")]
CLOSELY = [("0.9.1", "engine"), ("0.7.1", "legacy")]


def shapes_of_ids(dump: Path, step: int) -> tuple[list[int], bool]:
    """The shape of the token ids in a step, and whether it has a backward."""
    data = json.loads((dump / f"step{step}" / "rank0" / "dump.json").read_text())["data"]
    name = next(name for name in data if "embed_tokens" in name and ".forward." in name)
    shape: list[int] = data[name]["input_args"][0]["shape"]
    return shape, any(".backward." in name for name in data)


def log_of(dump: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (dump / "rank0" / "update_actor_log.jsonl").read_text().splitlines()]


def trained(seen: dict[str, Any]) -> dict[str, Any]:
    """What the training step gave; the seeds fall before it or before the log-probs."""
    return {name: seen[name] for name in ("metrics", "parameters", "random_after_update", "log_probs")}


@pytest.mark.parametrize(("version", "kind"), UPDATES)
def test_the_training_step_is_dumped_and_goes_on_the_same(version: str, kind: str, tmp_path: Path, model: Path) -> None:
    tree = patched(version, tmp_path, f"verl-{kind}-fsdp-update")
    run = (version, kind, model)
    seeded = training_step(environment.release(version), *run, tmp_path / "seeded", "--seed-all")

    dump = tmp_path / "prompts"
    switches = dump_switches(dump, step=[0, 1])
    seen = training_step(tree, *run, tmp_path / "a", **switches, PROMPTS_ONLY="1", DUMP_PHASE="update_actor")
    assert trained(seen) == trained(seeded)
    assert [shapes_of_ids(dump, step) for step in (0, 1)] == [([1, 5], True), ([1, 3], True)]
    lines = log_of(dump)
    assert [line["phase"] for line in lines] == ["update_actor"] * 2
    assert [line["request_ids"] for line in lines] == [["request-a"], ["request-b"]]
    assert [line["token_count"] for line in lines] == [5, 3]


@pytest.mark.parametrize(("version", "kind"), CLOSELY)
def test_the_ordinary_training_step_or_both_forwards_are_dumped(
    version: str, kind: str, tmp_path: Path, model: Path
) -> None:
    tree = patched(version, tmp_path, f"verl-{kind}-fsdp-update")
    run = (version, kind, model)
    seeded = training_step(environment.release(version), *run, tmp_path / "seeded", "--seed-all")

    dump = tmp_path / "marked"  # each micro-batch is a step, and msprobe waits for a later one
    seen = training_step(tree, *run, tmp_path / "a", **dump_switches(dump, step=[99]), DUMP_PHASE="update_actor")
    assert trained(seen) == trained(seeded)
    assert sorted(line["request_ids"][0] for line in log_of(dump)) == ["request-a", "request-b"]

    dump = tmp_path / "whole"  # msprobe's own hooks in the backward may change a gradient's last bits
    training_step(tree, *run, tmp_path / "b", **dump_switches(dump, step=[0, 1]), DUMP_PHASE="update_actor")
    assert [shapes_of_ids(dump, step) for step in (0, 1)] == [([1, 9], True)] * 2

    dump = tmp_path / "both"
    switches = dump_switches(dump, step=[0, 1, 2, 3])
    seen = training_step(tree, *run, tmp_path / "c", **switches, PROMPTS_ONLY="1", DUMP_PHASE="all")
    assert seen == seeded
    assert [line["phase"] for line in log_of(dump)] == ["log_prob"] * 2 + ["update_actor"] * 2
    assert [shapes_of_ids(dump, step)[1] for step in range(4)] == [False, False, True, True]


@pytest.mark.parametrize(("version", "kind"), CLOSELY)
@pytest.mark.parametrize("prompts_only", ["0", "1"])
def test_a_failing_training_step_ends_its_msprobe_step(
    version: str, kind: str, prompts_only: str, tmp_path: Path, model: Path
) -> None:
    tree = patched(version, tmp_path, f"verl-{kind}-fsdp-update")
    phase = {"PROMPTS_ONLY": prompts_only, "DUMP_PHASE": "update_actor"}
    switches = dump_switches(tmp_path / "dump", step=[0, 1])
    python(tree, version, "failing_update.py", kind, model, **switches, **phase)


@pytest.mark.parametrize(("version", "kind"), CLOSELY)
def test_off_the_recipe_of_the_training_step_changes_nothing(
    version: str, kind: str, tmp_path: Path, model: Path
) -> None:
    tree = patched(version, tmp_path, f"verl-{kind}-fsdp-update")
    plain = training_step(environment.release(version), version, kind, model, tmp_path / "plain")
    off = training_step(tree, version, kind, model, tmp_path / "off", DUMP_ON="0", PROMPTS_ONLY="1", DUMP_PHASE="all")
    assert off == plain
    assert off["msprobe"] is False
