"""The response metrics of the training logs: measured where the response mask had tokens, else the evidence is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stages.dumps.metrics import LOGPROBS, PROBS, Metric, response_metrics

KEYS = ("valid", "max", "mean", "std")


def verl(*values: str, step: int = 1, corr: str = "0.99") -> str:
    """A line of verl's console: metrics joined by " - "."""
    metrics = [f"training/rollout_probs_diff_{key}:{value}" for key, value in zip(KEYS, values, strict=True) if value]
    more = ["actor/entropy:0.69", *metrics, f"training/rollout_actor_probs_pearson_corr:{corr}", "perf/mfu:0.1"]
    return f"(TaskRunner pid=77) step:{step} - " + " - ".join(more)


def slime(value: str, entropy: str = "0.5", **more: str) -> str:
    metrics = {"loss": "-0.0", "entropy_loss": entropy, "train_rollout_logprob_abs_diff": value, **more}
    shown = ", ".join(f"'train/{key}': {one}" for key, one in metrics.items())
    return f"[2026-01-02 03:04:05] model.py:665 - step 3: {{{shown}, 'train/step': 3}}"


def read(tmp_path: Path, *lines: str, name: str = PROBS) -> Metric:
    log = tmp_path / "train.log"
    log.write_text("starting\n" + "".join(line + "\n" for line in lines))
    return response_metrics([log])[name]


def test_a_measured_step(tmp_path):
    found = read(tmp_path, verl("1", "0.25", "0.001", "0.01", step=12))
    assert (found.status, found.chosen.step, found.chosen.where) == ("measured", 12, f"{tmp_path}/train.log:2")
    assert found.chosen.values == {"max": 0.25, "mean": 0.001, "std": 0.01, "pearson_corr": 0.99}


def test_zero_is_agreement_only_where_the_mask_had_tokens(tmp_path):
    assert read(tmp_path, verl("1", "0.0", "0.0", "0.0")).chosen.values["mean"] == 0.0
    for valid in ("0", "0.0"):
        found = read(tmp_path, verl(valid, "0.0", "0.0", "0.0"))
        assert (found.status, found.chosen, found.readings[0].values) == ("evidence_missing", None, {})
        assert "PROMPTS_ONLY=0" in found.reason
    found = read(tmp_path, verl("", "0.0", "0.0", "0.0"))
    assert (found.status, "nothing says" in found.reason) == ("evidence_missing", True)


def test_nan_is_never_a_number(tmp_path):
    for valid in ("0", "1", ""):
        assert read(tmp_path, verl(valid, "nan", "nan", "nan", corr="nan")).status == "evidence_missing"
    found = read(tmp_path, verl("1", "0.5", "0.1", "nan", corr="nan"))
    assert found.chosen.values == {"max": 0.5, "mean": 0.1}


def test_without_valid_a_difference_is_evidence_enough(tmp_path):
    """verl up to 0.5 prints no `valid`, and 0.4 three decimals."""
    assert read(tmp_path, verl("", "0.125", "0.004", "0.010")).status == "measured"
    assert read(tmp_path, verl("", "0.001", "0.000", "0.000")).status == "evidence_missing"


def test_the_first_measured_step_among_others(tmp_path):
    lines = [
        verl("0", "nan", "nan", "nan"),
        verl("1", "0.5", "0.25", "0.1", step=2),
        verl("1", "0.9", "0.9", "0.9", step=3),
    ]
    found = read(tmp_path, *lines)
    assert ([one.status for one in found.readings], found.chosen.step) == (
        ["evidence_missing", "measured", "measured"],
        2,
    )


@pytest.mark.parametrize("value", ["np.float64(0.25)", "0.25", "2.5e-01", "tensor(0.25)"])
def test_numbers_as_python_prints_them(tmp_path, value):
    assert read(tmp_path, verl("1", "0.5", value, "0.1")).chosen.values["mean"] == 0.25


def test_files_of_json_lines(tmp_path):
    data = {f"training/rollout_probs_diff_{key}": value for key, value in zip(KEYS, (1, 0.5, 0.25, None), strict=True)}
    found = read(tmp_path, json.dumps({"step": 4, "data": {"critic/score": 1.0, **data}}))
    assert (found.chosen.step, found.chosen.values) == (4, {"max": 0.5, "mean": 0.25})


def test_slime_s_metric(tmp_path):
    found = read(tmp_path, slime("0.0123"), name=LOGPROBS)
    assert (found.status, found.chosen.values, found.chosen.step) == ("measured", {"mean": 0.0123}, 3)
    assert response_metrics([tmp_path / "train.log"])[PROBS].status == "evidence_missing"


def test_slime_s_zero_counts_where_another_mean_of_the_same_mask_is_none(tmp_path):
    assert read(tmp_path, slime("0.0", entropy="0.7"), name=LOGPROBS).chosen.values == {"mean": 0.0}
    for entropy in ("0.0", "nan"):
        assert read(tmp_path, slime("0.0", entropy), name=LOGPROBS).status == "evidence_missing"
    assert read(tmp_path, slime("nan"), name=LOGPROBS).status == "evidence_missing"


def test_no_log_and_none_that_has_it(tmp_path):
    found = read(tmp_path, "step:1 - actor/loss:0.1")
    assert (found.status, found.readings, found.chosen) == ("evidence_missing", (), None)
    found = response_metrics([tmp_path / "missing.log"])[PROBS]
    assert (found.status, [one.name for one in found.problems]) == ("evidence_missing", ["log-unreadable"])


def test_hostile_lines(tmp_path):
    lines = ["x" * 3_000_000, verl("1", "9" * 400, "1.2.3", "--"), "training/rollout_probs_diff_mean:" * 100_000]
    assert read(tmp_path, *lines).status == "evidence_missing"
