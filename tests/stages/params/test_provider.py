"""The bridge of the training side, asked in its own interpreter."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from stages.card.store import changing
from tests.cli.test_shell import run

HERE = Path(__file__).parent
SOURCES = ("--bridge-src", HERE / "bridge_src", "--bridge-src", HERE / "mindspeed_src")
CONFIG = {
    "model_type": "deepseek_v4",
    "architectures": ["DeepseekV4ForCausalLM"],
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "intermediate_size": 128,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "vocab_size": 1000,
    "tie_word_embeddings": False,
    "rope_theta": 10000,
    "hc_mult": 4,
    "hc_sinkhorn_iters": 20,
}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


def test_the_effective_config_of_the_default_bridge(params, model, tmp_path):
    out = tmp_path / "out.json"
    told = params("provider", model, out, *SOURCES, cwd=tmp_path)
    written = json.loads(out.read_text())
    assert written == {key: value for key, value in told.items() if key not in ("written", "next")}
    assert written["bridge"] == "megatron.bridge.models.DeepSeekV4FlashBridge"
    assert written["provider_class"] == "megatron.core.transformer_config.GPTModelProvider"
    assert written["stubbed"] == ["nvidia_resiliency_ext"]
    assert written["undeclared"] == {"enable_hyper_connections": True, "num_residual_streams": 4}
    assert written["config"]["activation_func"].endswith(".silu")
    assert written["config"]["kv_channels"] == 16
    assert written["finalized"] is True
    assert "rotary_percent" in written["at_default"]
    assert "vocab_size" not in written["at_default"]


def test_the_planted_mhc_is_the_first_point(params, model, tmp_path):
    """The config has `hc_mult`, the bridge sets the spelling that its provider's class lacks."""
    params("provider", model, "out.json", *SOURCES, cwd=tmp_path)
    result = params(
        "check", "--train-cfg", "out.json", "--infer-cfg", model, "--mapping", "hf-megatron-mhc", code=1, cwd=tmp_path
    )
    first = result["mismatch_points"][0]
    assert (first["id"], first["name"], first["result"], first["side"]) == ("P1", "mHC", "MISSING_SIDE", "train")
    assert first["why"].startswith("set but consumed by no module: enable_hyper_connections = true")
    assert first["waivable"] is False
    streams = next(point for point in result["mismatch_points"] if point["name"] == "residual_streams")
    assert (streams["train"]["value"], streams["infer"]["value"]) == (1, 4)
    assert "num_residual_streams = 4" in streams["why"]


def test_the_right_spelling_is_exact(params, model, tmp_path):
    params("provider", model, "out.json", *SOURCES, "--bridge", "megatron.bridge.models:RightBridge", cwd=tmp_path)
    result = params(
        "check", "--train-cfg", "out.json", "--infer-cfg", model, "--mapping", "hf-megatron-mhc", cwd=tmp_path
    )
    assert result["verdict"] == "EXACT"
    assert {"mHC", "residual_streams", "sinkhorn_iterations"} <= {item["name"] for item in result["items"]}


def test_a_bridge_is_found_by_its_text(params, model, tmp_path):
    told = params("provider", model, "out.json", *SOURCES, "--bridge", "MindFlashBridge", cwd=tmp_path)
    assert told["bridge"] == "mindspeed_bridge.flash.MindFlashBridge"
    assert told["undeclared"] == {}


@pytest.mark.parametrize(
    ("bridge", "what", "why"),
    [
        (
            "NeedyBridge",
            "has no module transformer_engine_of_another_world",
            "only nvidia_resiliency_ext is done without",
        ),
        ("FailingBridge", "failed: ValueError: no such architecture", None),
        ("NoBridge", "there is no bridge NoBridge", "no provider_bridge()"),
        ("RihgtBridge", "there is no bridge RihgtBridge", None),
        ("nowhere.at:Bridge", "there is no bridge nowhere.at:Bridge", None),
    ],
)
def test_a_bridge_that_does_not_work_is_told_in_one_line(params, model, tmp_path, bridge, what, why):
    error = params("provider", model, "out.json", *SOURCES, "--bridge", bridge, code=1, cwd=tmp_path)["error"]
    assert error["kind"] == "bridge"
    assert what in error["what"]
    assert why is None or why in error["why"]
    assert bridge != "RihgtBridge" or "RightBridge" in error["todo"]
    assert bridge != "NeedyBridge" or error["where"].endswith("engine.py:3")
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize("text", [None, "{", "[]"])
def test_a_folder_without_a_config(params, tmp_path, text):
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    error = params("provider", tmp_path, "out.json", *SOURCES, code=2, cwd=tmp_path)["error"]
    assert "config.json" in error["what"]


def test_an_interpreter_that_does_not_answer(params, model, tmp_path):
    error = params("provider", model, "out.json", "--python", "/nowhere/python", code=3, cwd=tmp_path)["error"]
    assert error["kind"] == "side"


def test_the_card_names_the_interpreter_and_its_prefix(params, model, card, tmp_path):
    wrapper = tmp_path / "inside"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/called\nexec "$@"\n')
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    with changing(card) as made:
        made.put("train.prefix", [str(wrapper)])
        made.put("train.python", sys.executable)
    told = params("provider", model, "out.json", *SOURCES, "--task", card, cwd=tmp_path)
    assert told["python"] == sys.executable
    assert (tmp_path / "called").read_text() == f"{sys.executable} -\n"
    assert (
        params("provider", model, "o", "--python", "x", "--task", card, code=2, cwd=tmp_path)["error"]["kind"]
        == "usage"
    )


def test_for_people(model, tmp_path):
    done = run("params", "provider", model, "out.json", *SOURCES, cwd=tmp_path)
    assert done.returncode == 0
    assert "set, but the provider's class has no such field: enable_hyper_connections" in done.stderr
    assert "a stand-in took the place of nvidia_resiliency_ext" in done.stderr
    assert "next: `probepatch params check --train-cfg out.json" in done.stdout


def test_an_out_file_that_cannot_be_written(params, model, tmp_path):
    error = params("provider", model, tmp_path / "no/where.json", *SOURCES, code=3, cwd=tmp_path)["error"]
    assert "cannot be written" in error["what"]
    assert os.listdir(tmp_path) == ["model"]
