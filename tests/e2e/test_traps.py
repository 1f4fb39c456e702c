"""What spoils a capture in practice, made to happen on real frameworks: each is caught, and called by its name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import Make
from tests.e2e.mission import Answer, Built, Mission

pytestmark = pytest.mark.e2e
PROMPT = list(range(50, 91))  # one block of the prefix cache and a part; three chunks of 16
SOMEBODY = {"id": "11110f0b5c3d4e0f9a7b2c1d0e8f7a61", "side": "infer", "prompt": PROMPT, "response": [31]}
SAMPLE = {"id": "22220f0b5c3d4e0f9a7b2c1d0e8f7a61", "prompt": PROMPT, "response": [31, 32]}


@pytest.fixture(scope="module")
def vllm(mission: Make, built: Callable[[Mission], Built]) -> Mission:
    """A capture of two steps without log-probs, which would keep the prefix cache out; the training side has run."""
    one = mission("0.9.1", "vllm", [SOMEBODY, SAMPLE])
    script = one.folder / "train.sh"
    script.write_text(script.read_text().replace("max_prompt_length=16", "max_prompt_length=48"))
    one.aligned(built(one))
    one.instrument("--no-logprobs", "--step", "0", "--step", "1")
    one.capture("--side", "train", "--command", f"bash {script}")
    return one


@pytest.fixture(scope="module")
def transformers(mission: Make, built: Callable[[Mission], Built]) -> Mission:
    one = mission("0.8.0", "transformers")
    one.aligned(built(one))
    one.instrument()
    one.capture("--side", "train", "--command", f"bash {one.folder}/train.sh")
    return one


def trapped(mission: Mission, name: str, command: str, code: int = 0) -> tuple[Answer, Answer]:
    """The inference side captured by a spoilt command, into a folder of its own; the run, and what is said of it."""
    config = json.loads((mission.artifacts / "msprobe" / "infer.json").read_text())
    config["dump_path"] = str(mission.artifacts / "dump" / name)
    file = mission.artifacts / "msprobe" / f"infer.{name}.json"
    file.write_text(json.dumps(config))
    line = command.format(script=mission.folder / "infer.sh")
    run = mission("capture", "run", "--side", "infer", "--config", f"infer={file}", "--command", line, code=code)
    return run, verified(mission, config["dump_path"], "--infer-log", run["log"])


def verified(mission: Mission, infer: str | Path, *more: str | Path) -> Answer:
    """The report on the training side's dump and another than the card's."""
    out = mission.folder.with_name(f"{mission.folder.name}-{Path(infer).name}")
    out.mkdir(exist_ok=True)  # outside: the ledger of the scripts guards their folder
    sides = ("--train", mission.artifacts / "dump" / "train", "--infer", infer, "--out", out)
    return mission("dumps", "verify", *sides, *more, card=False, code=1)


def names(report: Answer) -> set[str]:
    return {one["name"] for one in report["problems"]}


def test_a_prefix_cache_hit(vllm: Mission) -> None:
    _run, report = trapped(vllm, "cached", "bash {script} --enable-prefix-caching --block-size 32")
    assert report["comparable"] is not True
    assert "prefix cache" in report["cause"]
    assert "prefix-cache-hit" in names(report)
    asked = verified(vllm, vllm.artifacts / "dump" / "cached", "--request", SAMPLE["id"])
    assert "prefix-cache-hit" in names(asked)


def test_a_chunked_prefill(vllm: Mission) -> None:
    _run, report = trapped(vllm, "chunked", "bash {script} --enable-chunked-prefill --max-num-batched-tokens 16")
    assert report["comparable"] is not True
    assert "chunked-prefill" in names(report)


def test_graph_mode_is_refused_at_the_start(vllm: Mission) -> None:
    run, _report = trapped(vllm, "graphs", "bash {script} --no-enforce-eager", code=1)
    assert "switch-refused" in {one["name"] for one in run["failures"]}
    assert "DUMP_ON=1 needs enforce_eager=True" in Path(run["log"]).read_text()


def test_graph_mode_is_seen_in_the_script(vllm: Mission) -> None:
    script = vllm.folder / "graphs.sh"
    script.write_bytes(vllm.scripts["infer.sh"])
    report = vllm("inputs", "check", script, card=False, code=1)
    failed = {one["rule"] for run in report["runs"] for one in run["rules"] if one["state"] == "FAIL"}
    assert {"eager", "prefix-caching"} <= failed


def test_padding_left_in(transformers: Mission) -> None:
    _run, report = trapped(transformers, "padded", "env PADDED=1 bash {script}")
    assert report["comparable"] is not True
    assert "padding-left" in names(report)


def test_a_warm_up_in_place_of_the_prefill(transformers: Mission) -> None:
    _run, report = trapped(transformers, "warm-up", "env WARM_UP=1 bash {script}")
    assert report["comparable"] is not True
    assert "warm-up-captured" in names(report)


def test_rotary_buffers_in_bfloat16(transformers: Mission) -> None:
    """verl casts the whole module, Transformers keeps the rotary frequencies in float32: a true mismatch."""
    folder = transformers.folder / "bf16"
    more = {"MODULES": str(folder / "modules.json"), "PROBEPATCH_INVENTORY_DATA": "1", "DTYPE": "bfloat16"}
    folder.mkdir()
    dtype = ("actor_rollout_ref.actor.fsdp_config.model_dtype=bf16",)
    transformers.start("train.sh", "bf16", arguments=dtype, PROBEPATCH_INVENTORY=str(folder / "train"), **more)
    transformers.start("infer.sh", "bf16", PROBEPATCH_INVENTORY=str(folder / "infer"), **more)
    sides = ("--train", folder / "train", "--infer", folder / "infer")
    report = transformers("params", "structure", *sides, "--out", folder / "structure.json", card=False, code=1)
    differing = {one["name"] for one in report["findings"] if one["verdict"] != "EXACT"}
    assert differing and all(name.endswith("inv_freq") for name in differing), differing


def test_a_dependency_of_msprobe_is_missing_in_the_engines_environment(vllm: Mission, mission: Make) -> None:
    """tensorboard hidden from SGLang with its own msprobe: it answers, and dumps nothing, without a word."""
    one = mission("0.9.1", "sglang")
    (one.tree / "tensorboard.py").write_text("raise ModuleNotFoundError(\"No module named 'tensorboard'\")\n")
    config = one.folder / "msprobe.json"
    config.write_text(json.dumps({"task": "tensor", "level": "L0", "step": [0], "dump_path": str(one.folder / "dump")}))
    seen = one.start("infer.sh", arguments=("--msprobe-dump-config", str(config)))
    assert seen["answers"] and not [*one.folder.rglob("dump.json")]
    log, python, nothing = one.folder / "infer.sh.log", one.folder / "python", one.folder / "nothing"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={one.tree} exec {one.pythons["infer"]} "$@"\n')
    python.chmod(0o755)
    nothing.mkdir()
    report = verified(vllm, nothing, "--infer-log", log, "--infer-python", python)
    assert report["comparable"] is not True
    assert "msprobe cannot be imported" in report["cause"]
    assert "tensorboard" in json.dumps(report["causes"]["infer"])
