"""verl 0.9.1's real worker and vLLM 0.32.0's real engine, both patched, on one prompt; then other frameworks on either side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import Make
from tests.e2e.mission import REQUESTS, Answer, Built, Mission

pytestmark = pytest.mark.e2e
OFF = tuple(f'++ray_kwargs.ray_init.runtime_env.env_vars.{name}="0"' for name in ("DUMP_ON", "PROMPTS_ONLY"))
TOLERANCE = 1e-5  # of a probability, and of a log-prob


@pytest.fixture(scope="module")
def first(mission: Make, built: Callable[[Mission], Built]) -> Mission:
    """Before anything was patched: what both sides give; then stages 0 to 6 and the run."""
    one = mission("0.9.1", "vllm")
    one.aligned(built(one))
    one.plain = {
        "train": one.start("train.sh", "plain-train"),
        "seeded": one.start("train.sh", "plain-seeded", SEED_ALL="1"),
        "infer": one.start("infer.sh", "plain-infer", TORCHDYNAMO_DISABLE="1"),
    }
    one.instrument()
    one.captured = one.capture()
    return one


def largest(report: Answer) -> float:
    """prefill_logprob_diff_max, over all prompt tokens but the first."""
    diff = report["logprobs"]
    assert diff["tokens"] == len(REQUESTS[0]["prompt"]) - 1
    found: float = diff["max"]
    return found


def results(seen: Answer) -> Answer:
    return {name: value for name, value in seen.items() if name not in ("said", "exit", "verl", "msprobe")}


def test_both_dumps_are_there(first: Mission) -> None:
    assert first.captured["dumps"] == {"train": 1, "infer": 1}
    assert not first.captured["left"]
    log = Path(first.captured["log"])
    assert "1 requests answered" in log.read_text() and b"\r" not in log.read_bytes()


def test_training_goes_on_as_an_unpatched_run_that_is_seeded_alike(first: Mission) -> None:
    seen = first.seen("train")
    assert results(seen) == results(first.plain["seeded"])
    assert seen["msprobe"] is True


def test_they_are_comparable_and_their_log_probs_agree(first: Mission) -> None:
    report = first("dumps", "verify")
    assert report["comparable"] is True
    assert {one["state"] for one in report["checks"]} == {"pass"}, report["checks"]
    (pair,) = report["association"]
    assert (pair["train_request"], pair["rule"]) == (REQUESTS[0]["id"], "vllm-suffix")
    assert pair["infer_request"].startswith(f"{REQUESTS[0]['id']}-")
    assert largest(report) < TOLERANCE
    page = first.artifacts / "dump_verification.html"
    for file in (page, first.artifacts / "dump_verification.json"):
        assert "2, 3, 4, 5, 6" not in file.read_text() and "w2 w3" not in file.read_text()


def test_the_two_models_agree_boundary_by_boundary(first: Mission) -> None:
    found = first.differences(first.dump("train"), first.dump("infer"))
    assert set(found) >= {"layers.0.qkv", "layers.1.in", "layers.2.out", "norm.out"}
    assert all(value is not None and value < TOLERANCE for value in found.values()), found


def test_the_handoff_has_what_the_analysis_needs_and_no_tensor(first: Mission) -> None:
    first("handoff")
    folder = first.artifacts / "handoff"
    assert not [*folder.rglob("*.pt")]
    text = "".join(path.read_text() for path in folder.rglob("*.json"))
    assert str(first.artifacts / "dump" / "train") in text and REQUESTS[0]["id"] in text
    assert "2, 3, 4, 5, 6" not in text


def test_switched_off_the_patched_frameworks_are_the_unpatched(first: Mission) -> None:
    train = first.start("train.sh", "off-train", arguments=OFF)
    infer = first.start("infer.sh", "off-infer", TORCHDYNAMO_DISABLE="1")
    assert results(train) == results(first.plain["train"])
    assert results(infer) == results(first.plain["infer"])
    assert (train["msprobe"], infer["msprobe"]) == (False, False)


def test_restore_leaves_nothing(first: Mission) -> None:
    first("restore", "--reason", "the dumps were wanted, and they are there")
    assert first.untouched()
    for tree in first.trees.values():
        assert not [*tree.rglob("*probepatch*")]
    assert not [*first.folder.glob(".probepatch")]
    stages = {one["stage"]: one["state"] for one in first("task", "status")["stages"]}
    assert stages[9] == "done"


OTHERS = [("0.8.0", "transformers"), ("0.7.1", "sglang")]


@pytest.mark.parametrize(("verl", "engine"), OTHERS, ids=["-".join(pair) for pair in OTHERS])
def test_other_frameworks(verl: str, engine: str, mission: Make, built: Callable[[Mission], Built]) -> None:
    """0.8.0's engine worker, 0.7.1's legacy worker; plain Transformers, SGLang with its own msprobe. The whole way, to restore."""
    one = mission(verl, engine)
    one.aligned(built(one))
    prepared = one.instrument()
    assert prepared["sides"]["infer"]["native"] is (engine == "sglang")
    launch = (one.artifacts / "launch" / "launch.md").read_text()
    flag = f"--msprobe-dump-config {one.artifacts}/msprobe/infer.json"
    assert (flag in launch) is (engine == "sglang")  # a script's own flags are the user's to add
    one.capture(*(("--command", f"bash {one.folder}/run.sh {flag}") if engine == "sglang" else ()))
    report = one("dumps", "verify")
    assert report["comparable"] is True
    assert largest(report) < TOLERANCE
    found = one.differences(one.dump("train"), one.dump("infer"))
    assert found["layers.2.qkv"] < TOLERANCE and found["norm.out"] < TOLERANCE, found
    one("handoff")
    assert REQUESTS[0]["id"] in (one.artifacts / "handoff" / "handoff.json").read_text()
    one("restore", "--reason", "done", "--clean")
    assert one.untouched()
