"""The package for the analysis side: what it says, and that it refuses what must not leave the machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stages.card.evidence import record
from stages.card.order import INSTRUMENT, PARAMS, STUB, VERIFY
from stages.card.store import changing, read_card
from stages.dumps.false_alarms import known_alarms
from stages.dumps.leaks import LeakError, check_leaks
from tests.cli.test_commands import answer
from tests.cli.test_shell import run
from tests.stages.dumps.captures import PROMPT, sha256, step
from tests.stages.dumps.test_verify import card  # noqa: F401 - a fixture


@pytest.fixture
def verified(card: Path) -> Path:  # noqa: F811
    answer("dumps-verify", "dumps", "verify", "--task", card)
    return card


def hand_over(card_file: Path, *more: str | Path, code: int = 0) -> dict:
    return answer("handoff" if not code else "error", "handoff", "--task", card_file, *more, code=code)


def test_the_package(verified):
    package = hand_over(verified)
    root = verified.parent.parent / "capture"
    assert package["written"] == str(root / "handoff/handoff.json")
    kept = json.loads((root / "handoff/handoff.json").read_text())
    assert kept == {key: value for key, value in package.items() if key in kept}
    train, infer = package["sides"]["train"], package["sides"]["infer"]
    assert (train["dump_path"], train["step"], train["ranks"]) == (str(root / "dump/train"), 0, ["rank0"])
    assert (infer["dump_path"], infer["step"], infer["ranks"]) == (str(root / "dump/infer"), 1, ["rank0"])
    assert (infer["framework"], infer["version"]) == ("vllm", "0.32.0")
    assert train["msprobe_config"]["content"]["level"] == "L0"
    tied = package["association"]
    assert (tied["train_request"], tied["infer_request"], tied["rule"]) == ("req-7", "req-7-1a2b3c4d", "vllm-suffix")
    assert package["switches"] == {"DUMP_ON": "1", "PROMPTS_ONLY": "1"}
    assert package["parameter_alignment"]["aligned"] is True
    assert package["prefill_logprob_diff"]["mean"] == pytest.approx(1e-6)
    assert package["boundaries"][0]["train"]["entry"] == "Module.model.embed_tokens.FSDPEmbedding.forward.0"
    assert package["stub"] is None
    assert package["task"]["model.path"].endswith("model")
    text = (root / "handoff/handoff.json").read_text()
    assert sha256(PROMPT) not in text
    assert "differences" not in text
    assert "was handed over" in read_card(verified).data["log"][-1]["what"]


def test_for_people(verified):
    shown = run("handoff", "--task", verified)
    assert shown.returncode == 0, shown.stderr
    assert "request req-7 = req-7-1a2b3c4d (by vllm-suffix), 11 tokens" in shown.stdout
    assert "aligned at parameter level" in shown.stdout
    assert "layer-output-without-residual" in shown.stdout


def test_what_is_waived_is_said(verified):
    with changing(verified) as held:
        statement = "not aligned at parameter level; waived: vocab_size"
        record(held, PARAMS, True, statement, result={"verdict": "WAIVED", "layers": {}, "waived": ["vocab_size"]})
    aligned = hand_over(verified)["parameter_alignment"]
    assert aligned["aligned"] is False
    assert aligned["waived"] == ["vocab_size"]
    assert aligned["statement"].startswith("not aligned at parameter level")


def test_refused_without_a_comparable_capture(card, verified):  # noqa: F811
    with changing(verified) as held:
        del held.data["stages"][str(VERIFY)]
    assert hand_over(verified, code=3)["error"]["kind"] == "not-comparable"
    (verified.parent.parent / "capture/dump/infer/step1/rank0/dump.json").unlink()
    answer("dumps-verify", "dumps", "verify", "--task", verified, code=1)
    error = hand_over(verified, code=3)["error"]
    assert error["what"] == "the dumps are not comparable"
    assert "there is no dump of it" in error["why"] or "no dump" in error["why"]
    assert not (verified.parent.parent / "capture/handoff").exists()


def test_refused_when_the_capture_changed(verified):
    step("infer", verified.parent.parent / "capture/dump/infer", 5, {"new": PROMPT})
    assert "has changed since" in hand_over(verified, code=3)["error"]["why"]
    (verified.parent.parent / "capture/dump_verification.json").unlink()
    assert hand_over(verified, code=3)["error"]["kind"] == "not-comparable"


def test_a_later_round(verified):
    root = verified.parent.parent / "capture"
    again = root / "dump/round2/train"
    step("train", again, 0, {"req-7": PROMPT})
    config = root / "msprobe/train.round2.json"
    config.write_text(json.dumps({"task": "statistics", "load": {"modules": ["Module.model.layers.1.X.forward.0"]}}))
    entries = ["Module.model.layers.1.X.forward.0"]
    with changing(verified) as held:
        result = {"round": 2, "target_side": "train", "entries": entries, "config": str(config)}
        record(held, STUB, True, "round 2", result={**result, "dump_path": str(again), "source": "s", "verified": True})
    assert hand_over(verified, "--round", "2", code=3)["error"]["why"] == "that was round 0"
    answer("dumps-verify", "dumps", "verify", "--task", verified, "--round", "2")
    package = hand_over(verified, "--round", "2")
    assert package["written"].endswith("handoff/handoff.round2.json")
    assert package["stub"] == {
        "round": 2,
        "target_side": "train",
        "entries": entries,
        "config": str(config),
        "dump_path": str(again),
        "source": "s",
        "verified": True,
    }
    assert package["sides"]["train"]["dump_path"] == str(again)
    assert package["sides"]["train"]["msprobe_config"]["path"] == str(config)
    assert package["sides"]["infer"]["msprobe_config"]["path"].endswith("infer.json")


def test_a_credential_is_refused(verified):
    """The card takes none; a config may hold one, and a switch."""
    with changing(verified) as held:
        path = Path(held.data["stages"][str(INSTRUMENT)]["result"]["sides"]["infer"]["config"])
    path.write_text(json.dumps({"task": "tensor", "token": "api_key=abcdefgh12345678"}))
    error = hand_over(verified, code=3)["error"]
    assert error["kind"] == "leak"
    assert "abcdefgh12345678" not in json.dumps(error)
    assert not (verified.parent.parent / "capture/handoff").exists()


@pytest.mark.parametrize(
    "part",
    [
        {"prompt": "hello"},
        {"a": {"token_ids": [1]}},
        {"a": [{"input_ids": 3}]},
        {"a": {"logprobs": []}},
        {"a": {"prompt_sha256": "0" * 64}},
        {"values": [0.1, 0.2, 0.3, 0.4, 0.5]},
        {"a": [[1, 2, 3, 4, 5, 6]]},
        {"a": "word " * 2000},
        {"a": "line\n" * 30},
        {"a": "https://user:password123@host/x"},
    ],
)
def test_leaks(part):
    with pytest.raises(LeakError) as raised:
        check_leaks({"format": "x", **part})
    assert "hello" not in str(raised.value.why)


def test_no_leaks():
    check_leaks({"ranks": list(range(64)), "shape": [1, 2, 3, 4, 5, 6], "names": ["a"] * 100, "step": 1})


def test_known_false_alarms():
    """The pairs that the measurements were made on; what is unknown rules nothing out."""
    names = {
        "verl": {"train.framework": "verl", "train.backend": "fsdp", "infer.framework": "vllm", "hardware": "cpu"},
        "slime": {
            "train.framework": "slime",
            "train.backend": "megatron",
            "infer.framework": "sglang",
            "hardware": "cuda",
        },
        "plain": {
            "train.framework": "verl",
            "train.backend": "fsdp",
            "infer.framework": "transformers",
            "hardware": "cpu",
        },
        "unknown": {},
    }
    found = {name: {one["id"] for one in known_alarms(facts)} for name, facts in names.items()}
    assert {"mlp-act-fn", "rmsnorm-with-residual", "training-side-first-and-last", "packed-weights"} <= found["verl"]
    assert "sequence-first" not in found["verl"]
    assert found["slime"] == {"engine-lm-head", "sequence-first", "result-column"}
    assert found["plain"] == {"training-side-first-and-last", "fsdp-names", "result-column"}
    assert len(found["unknown"]) == 15
