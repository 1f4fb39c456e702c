"""One side is perturbed in layer 0: the difference is seen, and rounds of stubbing tell that nothing below it differs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.conftest import Make
from tests.e2e.mission import Answer, Built, Mission

pytestmark = pytest.mark.e2e
CLOSE, FAR = 1e-5, 1e-2
PERTURBED = "env PERTURB=layers.0.mlp.down_proj.weight bash {folder}/{script}"
TENSORS = "step0/rank0/dump_tensor_data"
LAYER, QKV = "Module.model.layers.{}.{}DecoderLayer.forward.0", "Module.model.layers.1.self_attn.{}.{}.forward.0"


@pytest.fixture(scope="module")
def perturbed(mission: Make, built: Callable[[Mission], Built]) -> Mission:
    """Stages 0 to 7, with weights that change behind everybody's back."""
    one = mission("0.9.1", "vllm")
    one.aligned(built(one))
    one.instrument()
    one.capture("--command", PERTURBED.format(folder=one.folder, script="run.sh"))
    assert one("dumps", "verify")["comparable"] is True
    one("handoff")
    return one


def round_of(mission: Mission, number: int, target: str, boundary: str, modules: list[dict[str, Any]]) -> Answer:
    """A round as the manual has it: the sources, the config, the run, the proof."""
    source = "infer" if target == "train" else "train"
    instruction = {"round": number, "target_side": target, "source_side": source, "isolate_boundary": boundary}
    file = mission.folder / f"stub_instruction.{number}.json"
    file.write_text(json.dumps(instruction | {"dump_after_load": True, "modules": modules}))
    mission("stub", "prepare", file)
    config = mission("stub", "config")["config"]
    script = "train.sh" if target == "train" else "infer.sh"
    command = PERTURBED.format(folder=mission.folder, script=script)
    mission("capture", "run", "--side", target, "--config", f"{target}={config}", "--command", command)
    return mission("stub", "verify")


def stub(target: str, argument: str, source: str | list[str], *rules: str) -> dict[str, Any]:
    sources = [f"{TENSORS}/{one}.pt" for one in ([source] if isinstance(source, str) else source)]
    transform = [{"rule": rule} for rule in rules]
    return {"target": target, "argument": argument, "source": sources, "transform": transform}


def test_the_difference_is_seen(perturbed: Mission) -> None:
    found = perturbed.differences(perturbed.dump("train"), perturbed.dump("infer"))
    assert found["layers.0.in"] == 0 and found["layers.0.qkv"] < CLOSE
    assert min(found[name] for name in ("layers.0.out", "layers.1.in", "layers.2.out", "norm.out")) > FAR
    report = json.loads((perturbed.artifacts / "dump_verification.json").read_text())
    assert report["logprobs"]["max"] > 1e-4


def test_with_the_next_layers_input_overridden_everything_below_is_equal(perturbed: Mission) -> None:
    engine = LAYER.format(1, "Qwen2")
    module = stub(LAYER.format(1, "FSDPQwen2"), "input.0", [f"{engine}.input.{n}" for n in (1, 2)], "sum", "add_batch")
    result = round_of(perturbed, 1, "train", "layers.1.input", [module])
    assert result["verified"] is True
    found = perturbed.differences(perturbed.dump("train", 1), perturbed.dump("infer"))
    assert found["layers.0.out"] > FAR
    below = ("layers.1.in", "layers.1.qkv", "layers.1.out", "layers.2.in", "layers.2.out", "norm.out")
    assert max(found[name] for name in below) < CLOSE, found


def test_a_second_round_of_fused_projections_against_split_ones(perturbed: Mission) -> None:
    fused = QKV.format("qkv_proj", "QKVParallelLinear") + ".input.0"
    modules = [stub(QKV.format(f"{one}_proj", "Linear"), "input.0", fused, "add_batch") for one in "qkv"]
    assert round_of(perturbed, 2, "train", "layers.1.qkv_proj", modules)["verified"] is True
    found = perturbed.differences(perturbed.dump("train", 2), perturbed.dump("infer"))
    assert found["layers.1.qkv"] < CLOSE
    assert found["layers.1.in"] > FAR and found["layers.1.out"] > FAR  # the residual was not overridden


def test_a_third_round_the_other_way(perturbed: Mission) -> None:
    """The engine's layer gets the training's input: whole in one argument, zeros in the residual."""
    source, target = LAYER.format(2, "FSDPQwen2") + ".input.0", LAYER.format(2, "Qwen2")
    modules = [stub(target, "input.1", source, "drop_batch"), stub(target, "input.2", source, "drop_batch", "zeros")]
    assert round_of(perturbed, 3, "infer", "layers.2.input", modules)["verified"] is True
    found = perturbed.differences(perturbed.dump("train"), perturbed.dump("infer", 3))
    assert found["layers.2.in"] == 0 and found["layers.2.out"] < CLOSE and found["norm.out"] < CLOSE, found


def test_after_all_rounds_it_is_restored(perturbed: Mission) -> None:
    refused = perturbed("restore", code=None)
    assert refused["exit"] != 0  # nobody said how the loop with the analysis side ended
    perturbed("restore", "--reason", "all differences are found", "--clean")
    assert perturbed.untouched()
    assert not [*perturbed.artifacts.glob("stub_source_round*")]
