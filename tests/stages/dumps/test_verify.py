"""`dumps verify` as a real process on real files: what is comparable, and the name of each reason why not."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from stages.card.evidence import evidence, record
from stages.card.order import INSTRUMENT, VERIFY
from stages.card.store import changing, read_card
from stages.dumps.given import from_card
from tests.cli.test_commands import answer
from tests.cli.test_shell import run
from tests.stages.dumps.captures import (
    HIDDEN,
    PROMPT,
    capture,
    dump,
    entries,
    log,
    prefill,
    sha256,
    step,
    tensor,
)

OTHER = [7, 7, 7, 2]


def verify(root: Path, *more: str | Path, code: int = 0) -> dict[str, Any]:
    sides = "--train", root / "dump/train", "--infer", root / "dump/infer"
    return answer("dumps-verify", "dumps", "verify", *sides, "--out", root, *more, code=code, PROBEPATCH_TASK="")


def failing(report: dict[str, Any]) -> list[str]:
    return [one["name"] for one in report["checks"] if one["state"] == "fail"]


def named(report: dict[str, Any], level: str = "error") -> set[str]:
    return {one["name"] for one in report["problems"] if one["level"] == level}


def test_comparable(tmp_path):
    capture(tmp_path, ranks=2)
    report = verify(tmp_path)
    assert (report["verdict"], report["comparable"], report["cause"]) == ("COMPARABLE", True, None)
    assert [one["state"] for one in report["checks"]] == ["pass"] * 9
    assert report["chosen"]["rule"] == "vllm-suffix"
    assert report["chosen"]["prompt_tokens"] == len(PROMPT)
    assert (report["chosen"]["train"]["step"], report["chosen"]["infer"]["step"]) == (0, 1)
    assert report["chosen"]["infer"]["ranks"] == ["rank0", "rank1"]
    labels = [(one["step"], one["label"]) for one in report["steps"] if one["side"] == "infer" and one["rank"] == 0]
    assert labels == [(0, "dummy"), (1, "prefill"), (2, "decode")]
    rows = [one for one in report["boundaries"] if one["train_rank"] == "rank1"]
    assert [one["name"] for one in rows] == [
        *("embed.in", "embed.out"),
        *(f"layers.{number}.{part}" for number in range(3) for part in ("in", "out")),
        *("norm.in", "norm.out"),
    ]
    assert rows[0]["train"]["shape"] == [1, 11]
    assert rows[0]["infer"]["shape"] == [11]
    assert all(one["equal"] for one in rows)
    assert report["logprobs"]["state"] == "computed"
    assert report["logprobs"]["mean"] == pytest.approx(1e-6)
    assert len(report["logprobs"]["differences"]) == len(PROMPT) - 1
    assert {one["state"] for one in report["metrics"]} == {"evidence_missing"}
    assert named(report) == set()
    assert report["recorded"] is None
    kept = json.loads((tmp_path / "dump_verification.json").read_text())
    assert kept == {key: value for key, value in report.items() if key in kept}
    assert "<svg" in (tmp_path / "dump_verification.html").read_text()


def test_for_people(tmp_path):
    capture(tmp_path)
    shown = run(
        "dumps", "verify", "--train", tmp_path / "dump/train", "--infer", tmp_path / "dump/infer", "--out", tmp_path
    )
    assert shown.returncode == 0, shown.stderr
    for part in (
        "*  req-7          req-7-1a2b3c4d  vllm-suffix  11",
        "embed.in      int64[1, 11]       int32[11]       equal",
        "prefill_logprob_diff_mean=1e-06",
        "comparable: request req-7, 11 tokens, train step 0 and infer step 1, on 1 rank",
        "no task card: nothing was recorded",
    ):
        assert part in shown.stdout
    assert "\x1b" not in shown.stdout


def test_nothing_was_dumped(tmp_path):
    """Case 48: a missing folder is never "no difference"."""
    train, _infer = capture(tmp_path)
    report = verify(tmp_path, "--infer", tmp_path / "none", code=1)
    assert report["verdict"] == "NOTHING_COMPARED"
    assert report["comparable"] is False
    assert failing(report) == ["dumps"]
    assert "no-dump" in named(report)
    assert report["causes"]["train"] == []
    states = {one["name"]: one["state"] for one in report["causes"]["infer"]}
    assert states["msprobe-missing"] == "not checked"
    assert train.exists()


def test_the_engines_environment_lacks_a_dependency_of_msprobe(tmp_path):
    """The cause is checked with the interpreter that ran the job, and named in the verdict."""
    capture(tmp_path)
    broken = tmp_path / "env/msprobe/pytorch.py"
    broken.parent.mkdir(parents=True)
    broken.write_text("import tensorboard_that_is_not_there\n")
    (broken.parent / "__init__.py").touch()
    python = tmp_path / "env/python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={broken.parent.parent} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    report = verify(tmp_path, "--infer", tmp_path / "none", "--infer-python", python, code=1)
    cause = "msprobe cannot be imported in the inference side's environment: tensorboard_that_is_not_there missing"
    assert report["cause"] == cause
    assert report["statement"].endswith(cause)


@pytest.mark.parametrize(("layers", "why"), [([0], "rank0 holds 4 entries"), ([0, 1], "the inference side 2")])
def test_graph_mode(tmp_path, layers, why):
    """Case 49: fewer layers on one side; an almost empty dump is asked for its causes."""
    step("train", tmp_path / "dump/train", 0, {"r": PROMPT})
    step("infer", tmp_path / "dump/infer", 0, {"r": PROMPT}, layers=layers)
    report = verify(tmp_path, code=1)
    assert failing(report) == ["modules"]
    assert why in report["statement"]
    assert bool(report["causes"]["infer"]) == (len(layers) == 1)


def test_case_49_with_the_models_number_of_layers(tmp_path):
    """Entries without tensors, one of four layers: the missing ones are named, whatever the launch line says."""
    empty = {"input_args": [], "input_kwargs": {}, "output": []}
    names = ("model.embed.Embedding", "model.layers.0.Layer", "lm_head.Linear")
    for side in ("train", "infer"):
        dump(tmp_path / f"dump/{side}/step0/rank0", {f"Module.{name}.forward.0": empty for name in names})
    from stages.dumps.checks import judge
    from stages.dumps.situation import Situation
    from stages.dumps.verify import Source
    from stages.dumps.verify import verify as find

    launch = "vllm serve /m --tensor-parallel-size 2"
    sources = {
        side: Source(tmp_path / f"dump/{side}", Situation(side, framework="vllm", launch=launch))
        for side in ("train", "infer")
    }
    found = find(sources, layers=4)
    judged = judge(found)
    assert judged.comparable is False
    assert found.coverage["infer"].layers != (0,)
    assert set(found.coverage["infer"].missing) >= {1, 2, 3}
    states = {one.name: one.state for one in found.causes["infer"]}
    assert states["graph-mode"] == "confirmed"
    assert "entries-without-tensors" in {one.name for one in found.problems}


@pytest.mark.parametrize("sides", [("train",), ("train", "infer")])
def test_padding(tmp_path, sides):
    """Equal and wrong is wrong: the real length of the prompt decides."""
    for side in ("train", "infer"):
        rows = 16 if side in sides else None
        step(side, tmp_path / f"dump/{side}", 0, {"r": PROMPT}, rows=rows)
    report = verify(tmp_path, code=1)
    assert report["verdict"] == "NOT_COMPARABLE"
    assert "length" in failing(report)
    assert "padding-left" in named(report)
    assert "16 tokens" in report["statement"]


def test_another_prompt_of_the_same_length(tmp_path):
    step("train", tmp_path / "dump/train", 0, {"r": PROMPT})
    step("infer", tmp_path / "dump/infer", 0, {"r": PROMPT[::-1]})
    report = verify(tmp_path, code=1)
    assert report["verdict"] == "NOTHING_COMPARED"
    assert failing(report) == ["association"]
    assert "tokens-differ" in named(report)


def test_hashes_that_are_missing_are_not_taken_for_equal(tmp_path):
    step("train", tmp_path / "dump/train", 0, {"r": PROMPT}, prompt_sha256=[None])
    step("infer", tmp_path / "dump/infer", 0, {"r": PROMPT}, prompt_sha256=[None])
    report = verify(tmp_path, code=1)
    assert (report["verdict"], report["comparable"]) == ("UNKNOWN", None)
    assert [one["state"] for one in report["checks"] if one["name"] == "token-ids"] == ["not checked"]


def test_a_rank_without_counterpart(tmp_path):
    for rank in range(2):
        step("train", tmp_path / "dump/train", 0, {"r": PROMPT}, rank=rank)
    step("infer", tmp_path / "dump/infer", 0, {"r": PROMPT})
    report = verify(tmp_path, code=1)
    assert failing(report) == ["ranks"]


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"phase": "chunked_prefill", "rows": 4, "scheduled_tokens": [4]}, "chunked-prefill"),
        ({"computed": 6}, "prefix-cache-hit"),
    ],
)
def test_a_prompt_in_parts(tmp_path, fields, name):
    step("train", tmp_path / "dump/train", 0, {"r": PROMPT})
    step("infer", tmp_path / "dump/infer", 0, {"r": PROMPT}, **fields)
    report = verify(tmp_path, code=1)
    assert report["verdict"] == "NOTHING_COMPARED"
    assert failing(report) == ["step"]
    assert name in named(report)


def test_several_requests_in_a_step(tmp_path):
    step("train", tmp_path / "dump/train", 0, {"a": PROMPT})
    step("train", tmp_path / "dump/train", 1, {"b": OTHER})
    step("infer", tmp_path / "dump/infer", 0, {"a": PROMPT, "b": OTHER})
    report = verify(tmp_path, code=1)
    assert failing(report) == ["step"]
    assert all("2 requests" in one["why"] for one in report["association"])
    assert "several-requests" in named(report)


def test_the_chosen_request(tmp_path):
    for side in ("train", "infer"):
        step(side, tmp_path / f"dump/{side}", 0, {"first": PROMPT, "second": OTHER})
        step(side, tmp_path / f"dump/{side}", 1, {"third": PROMPT[:6]})
        step(side, tmp_path / f"dump/{side}", 2, {"fourth": PROMPT[:7]})
    assert verify(tmp_path)["chosen"]["train_request"] == "third"
    assert verify(tmp_path, "--request", "fourth")["chosen"]["infer"]["step"] == 2
    report = verify(tmp_path, "--request", "second", code=1)
    assert report["chosen"] is None
    error = answer(
        "error",
        "dumps",
        "verify",
        *("--train", tmp_path / "dump/train"),
        *("--infer", tmp_path / "dump/infer"),
        "--request",
        "fort",
        code=2,
    )
    assert "fourth" in error["error"]["todo"]


@pytest.mark.parametrize("asked", ["r1", "r1-1a2b3c4d"])
def test_the_cause_is_named_whichever_id_of_a_request_is_asked_for(tmp_path, asked):
    step("train", tmp_path / "dump/train", 0, {"r1": PROMPT})
    step("infer", tmp_path / "dump/infer", 0, {"r1-1a2b3c4d": PROMPT}, computed=4, rows=len(PROMPT) - 4)
    assert "prefix-cache-hit" in named(verify(tmp_path, "--request", asked, code=1), "error")


def test_warm_up_is_never_taken(tmp_path):
    """Case 47: step 0 is a profile run; the request with as many tokens as its prompt is at step 2."""
    infer = tmp_path / "dump/infer"
    step("train", tmp_path / "dump/train", 0, {"r1": PROMPT})
    dump(infer / "step0/rank0", entries("infer", 8192))
    dump(infer / "step1/rank0", entries("infer", 1))
    step("infer", infer, 2, {"r1-1a2b3c4d": PROMPT})
    report = verify(tmp_path)
    assert report["chosen"]["infer"]["step"] == 2
    assert "warm-up-captured" in named(report, "warning")
    step("infer", infer, 3, {"r1-1a2b3c4d": PROMPT}, phase="decode", rows=1, computed=10)
    (infer / "rank0/dispatch_log.jsonl").write_text("")
    report = verify(tmp_path, code=1)
    assert report["chosen"] is None  # never "take step 0"


def test_values_that_are_no_json(tmp_path):
    capture(tmp_path)
    path = tmp_path / "dump/infer/step1/rank0/dump.json"
    path.write_text(path.read_text().replace('"Mean": 0.0', '"Mean": NaN', 1))
    report = verify(tmp_path, code=1)
    assert failing(report) == ["readable"]
    assert "nan-in-json" in named(report, "warning")


def test_a_dump_that_is_cut_off(tmp_path):
    capture(tmp_path)
    path = tmp_path / "dump/infer/step1/rank0/dump.json"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    report = verify(tmp_path, code=1)
    assert report["comparable"] is False
    assert "truncated-json" in named(report)


def test_what_is_wrong_with_another_step_does_not_count(tmp_path):
    capture(tmp_path)
    path = tmp_path / "dump/infer/step2/rank0/dump.json"
    path.write_bytes(path.read_bytes()[:400])
    report = verify(tmp_path)
    assert "truncated-json" in named(report, "warning")


def test_shapes_apart_inside_the_model(tmp_path):
    step("train", tmp_path / "dump/train", 0, {"r": PROMPT})
    step("infer", tmp_path / "dump/infer", 0, {"r": PROMPT})
    path = tmp_path / "dump/infer/step0/rank0/dump.json"
    document = json.loads(path.read_text())
    document["data"]["Module.model.layers.1.Qwen2DecoderLayer.forward.0"]["output"] = [tensor([4, HIDDEN])]
    path.write_text(json.dumps(document))
    report = verify(tmp_path, code=1)
    assert failing(report) == ["shapes"]
    assert "layers.1.out on rank0 | rank0: [1, 11, 8] and [4, 8]" in report["statement"]


def test_no_log_at_all(tmp_path):
    for side in ("train", "infer"):
        dump(tmp_path / f"dump/{side}/step0/rank0", entries(side, 11))
    report = verify(tmp_path, code=1)
    assert failing(report) == ["association"]
    assert "train, infer" in report["statement"]


def test_log_probs_that_are_refused(tmp_path):
    for side in ("train", "infer"):
        step(side, tmp_path / f"dump/{side}", 0, {"r": PROMPT})
        prefill(side, tmp_path / f"dump/{side}", "r", PROMPT, temperature=0.6)
    report = verify(tmp_path)  # reported, never judged
    assert report["logprobs"]["state"] == "not computed"
    assert "0.6" in report["logprobs"]["why"]
    assert report["logprobs"]["mean"] is None
    assert report["logprobs"]["refused"] == 1


def test_what_the_training_log_printed(tmp_path):
    capture(tmp_path)
    log_file = tmp_path / "train.log"
    log_file.write_text("prefill_logprob_diff_mean=1e-06 prefill_logprob_diff_max=1e-06 prefill_logprob_diff_std=0.5\n")
    report = verify(tmp_path, "--train-log", log_file)
    assert "prefill-print-differs" in named(report, "warning")
    assert report["logprobs"]["printed"] == [{"where": f"{log_file}:1", "mean": 1e-06, "max": 1e-06, "std": 0.5}]


def test_processes_without_a_rank(tmp_path):
    """One process on each side, one with a rank and one without."""
    step("train", tmp_path / "dump/train", 0, {"r": PROMPT})
    infer = tmp_path / "dump/infer"
    dump(infer / "step0/proc4711", entries("infer", len(PROMPT)))
    line = {"request_ids": ["r"], "prompt_sha256": [sha256(PROMPT)], "prompt_tokens": [len(PROMPT)]}
    log("infer", infer, 0, pid=4711, step=0, phase="prefill", **line)
    assert verify(tmp_path)["chosen"]["infer"]["ranks"] == ["proc4711"]


def test_no_value_of_a_prompt_is_told(tmp_path):
    capture(tmp_path)
    verify(tmp_path)
    for name in ("dump_verification.json", "dump_verification.html"):
        text = (tmp_path / name).read_text()
        assert sha256(PROMPT) not in text
        assert "-1.6" not in text  # a log-prob


def test_usage(tmp_path):
    capture(tmp_path)
    train, infer = tmp_path / "dump/train", tmp_path / "dump/infer"
    answer("error", "dumps", "verify", "--train", train, code=2)
    answer("error", "dumps", "verify", "--train", train, "--infer", infer, "--train-log", tmp_path / "none", code=2)
    answer("error", "dumps", "verify", "--train", train, "--infer", infer, "--round", "-1", code=2)
    (tmp_path / "file").write_text("")
    out = tmp_path / "file/out"
    answer("error", "dumps", "verify", "--train", train, "--infer", infer, "--out", out, code=3)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_dump_that_may_not_be_read(tmp_path):
    capture(tmp_path)
    (tmp_path / "dump/infer/step1/rank0/dump.json").chmod(0)
    assert verify(tmp_path, code=1)["comparable"] is False


# --- with a task card -------------------------------------------------------------------------------------------------


@pytest.fixture
def card(tmp_path: Path) -> Path:
    """Stages 0 to 6 are done; the dumps are where stage 6 says."""
    root = tmp_path / "capture"
    train, infer = capture(root)
    answer("task-init", "task", "init", tmp_path / "task")
    path = tmp_path / "task/task_card.json"
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({"num_hidden_layers": 3}))
    facts = {
        "usage": "analysis",
        "model.path": str(model),
        "train.framework": "verl",
        "train.version": "0.9.1",
        "train.backend": "fsdp",
        "infer.framework": "vllm",
        "infer.version": "0.32.0",
        "hardware": "cpu",
        "baseline_command": "bash run.sh",
        "artifacts": str(root),
    }
    with changing(path) as held:
        for name, value in facts.items():
            held.put(name, value)
        from stages.card.card import PERMISSIONS
        from stages.card.permissions import permit

        permit(held, dict.fromkeys(PERMISSIONS, True), "here")
        for stage in (1, 3, 4):
            record(held, stage, True, "done")
        record(held, 5, True, "aligned at parameter level", result={"verdict": "EXACT", "layers": {}, "waived": []})
        sides = {}
        for side, dump_path in (("train", train), ("infer", infer)):
            config = root / f"msprobe/{side}.json"
            config.parent.mkdir(exist_ok=True)
            settings = {"task": "statistics", "level": "L0", "rank": [], "step": [], "dump_path": str(dump_path)}
            config.write_text(json.dumps(settings))
            sides[side] = {
                "checkout": None,
                "recipes": [],
                "native": False,
                "config": str(config),
                "dump_path": str(dump_path),
                "world_size": 1,
                "environment": {"DUMP_ON": "1"},
            }
        result = {"sides": sides, "switches": {"DUMP_ON": "1", "PROMPTS_ONLY": "1"}, "change_list": "change_list.md"}
        record(held, INSTRUMENT, True, "instrumented", result=result)
    return path


def test_evidence(card):
    report = answer("dumps-verify", "dumps", "verify", "--task", card)
    root = card.parent.parent / "capture"
    assert report["written"] == [str(root / "dump_verification.json"), str(root / "dump_verification.html")]
    assert report["recorded"] == str(card)
    assert report["next"].startswith("probepatch handoff")
    found = evidence(read_card(card), VERIFY)
    assert found.state == "done"
    assert found.result["comparable"] is True
    assert found.result["round"] == 0
    assert found.result["step"]["train"]["step"] == 0
    assert Path(found.result["report"]).is_file()


def test_failed_evidence_says_the_first_cause(card):
    with changing(card) as held:
        held.put("model.path", str(card.parent))
        (card.parent / "config.json").write_text(json.dumps({"num_hidden_layers": 5}))
    report = answer("dumps-verify", "dumps", "verify", "--task", card, code=1)
    assert failing(report) == ["modules"]
    found = evidence(read_card(card), VERIFY)
    assert found.state == "failed"
    assert "2 layers of 5 are missing: 3, 4" in found.summary
    assert report["next"].startswith("probepatch dumps verify")


def test_out_of_order(card):
    with changing(card) as held:
        del held.data["stages"]["6"]
    error = answer("error", "dumps", "verify", "--task", card, code=3)
    assert error["error"]["kind"] == "out-of-order"


@pytest.mark.parametrize(("command", "checked"), [("bash run.sh", True), ("bash other.sh", False)])
def test_what_stage_4_saw_of_the_scripts_counts_for_them_alone(card, command, checked):
    with changing(card) as held:
        record(held, 4, True, "done", result={"imports": ["train"]})
        held.data["stages"]["6"]["result"]["runs"] = [{"sides": ["train", "infer"], "job": {"command": command}}]
    given = from_card(read_card(card), 0, {"train": None, "infer": None}, {"train": None, "infer": None})
    assert {name: one.known.script_checked for name, one in given.sources.items()} == {"train": checked, "infer": False}


def test_a_later_round(card):
    error = answer("error", "dumps", "verify", "--task", card, "--round", "1", code=3)
    assert "no stub round" in error["error"]["why"]
    root = card.parent.parent / "capture"
    again = root / "dump/round1/train"
    step("train", again, 0, {"req-7": PROMPT})
    answer("dumps-verify", "dumps", "verify", "--task", card)
    with changing(card) as held:
        result = {"round": 1, "target_side": "train", "entries": ["Module.model.layers.1.X.forward.0"], "config": None}
        record(held, 8, True, "round 1", result={**result, "dump_path": str(again), "source": None, "verified": True})
    report = answer("dumps-verify", "dumps", "verify", "--task", card, "--round", "1")
    assert report["round"] == 1
    assert report["sides"]["train"]["dump_path"] == str(again)
    assert report["written"][0] == str(root / "dump_verification.round1.json")
    assert report["next"] == f"probepatch handoff --round 1 --task {card}"


def test_dump_only_ends_with_restore(card):
    with changing(card) as held:
        held.put("usage", "dump")
    assert answer("dumps-verify", "dumps", "verify", "--task", card)["next"].startswith("probepatch restore")
    assert "`probepatch handoff --task" in run("dumps", "verify", "--task", card).stdout
    assert answer("handoff", "handoff", "--task", card)["next"].startswith("probepatch restore")
