"""`params modules`: a side's interpreter builds the model and tells what its modules hold; stand-ins here, real ones where named.

PROBEPATCH_REAL_PYTHON   an interpreter with torch and Transformers
PROBEPATCH_VLLM_PYTHON   one with vLLM that runs here; without it that half is left out
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stages.card.store import changing
from tests.cli.test_shell import run
from tests.stages.params_tensors.test_real import MAKE, PYTHON, QUIET, VLLM

MODEL = """
class Norm:
    def __init__(self, eps):
        self.variance_epsilon, self.weight, self.training, self._hidden = eps, [1.0], True, 1
class Model:
    def __init__(self, eps):
        self._eps = eps
    def named_modules(self):
        return [("", self), ("model.norm", Norm(self._eps))]
"""
STUBS = {
    "torch.py": "import contextlib\ndef device(name):\n    assert name == 'meta'\n    return contextlib.nullcontext()\n",
    "transformers.py": MODEL
    + """
import json
class AutoConfig:
    @staticmethod
    def from_pretrained(path, local_files_only):
        print("noise on standard output")
        return json.load(open(path + "/config.json"))
class AutoModelForCausalLM:
    @staticmethod
    def from_config(config, **settings):
        return Model(config["rms_norm_eps"])
""",
    "vllm.py": MODEL
    + """
import json, os
class LLM:
    def __init__(self, model, load_format, enforce_eager, max_model_len, max_num_seqs, skip_tokenizer_init, eps=None):
        assert load_format == "dummy" and os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"
        self.model = Model(eps or json.load(open(model + "/config.json"))["rms_norm_eps"])
    def apply_model(self, ask):
        return [ask(self.model)]
""",
}
PAIR = ("--train-cfg", "m", "--infer-cfg", "m", "--train-is-hf", "--mapping", "hf-hf")


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """An interpreter in which Transformers and vLLM are stand-ins; beside it the folder of a model."""
    (tmp_path / "stubs").mkdir()
    for name, text in STUBS.items():
        (tmp_path / "stubs" / name).write_text(text)
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path}/stubs exec {sys.executable} "$@"\n')
    path.chmod(0o755)
    (tmp_path / "m").mkdir()
    (tmp_path / "m/config.json").write_text(json.dumps({"model_type": "qwen3", "rms_norm_eps": 1e-6, "hidden_size": 8}))
    return path


def test_both_sides_into_one_file_and_a_difference_is_found(params, python, tmp_path):
    asked = ("m", "--python", python)
    told = params("modules", "train", *asked, "--with", "transformers", cwd=tmp_path)
    assert (told["modules"], told["written"]) == (2, "modules.json")
    params("modules", "infer", *asked, "--with", "vllm", cwd=tmp_path)
    data = json.loads((tmp_path / "modules.json").read_text())
    norm = {"class": "Norm", "variance_epsilon": 1e-6}
    assert {side: one["model.norm"] for side, one in data.items()} == {"train": norm, "infer": norm}
    assert params("check", *PAIR, "--modules", "modules.json", cwd=tmp_path)["modules"] == "EXACT"
    params("modules", "infer", *asked, "--with", "vllm", "--settings", '{"eps": 1e-5}', cwd=tmp_path)
    found = params("check", *PAIR, "--modules", "modules.json", code=1, cwd=tmp_path)
    assert found["modules"] == "MISMATCH"
    assert [point["name"] for point in found["mismatch_points"]] == ["model.norm.variance_epsilon"]


def test_one_file_for_each_side(params, python, tmp_path):
    for side, loader in (("train", "transformers"), ("infer", "vllm")):
        words = ("m", "--with", loader, "--python", python, "--out", f"{side}.json")
        params("modules", side, *words, cwd=tmp_path)
    lists = ("--modules", "train.json", "--modules", "infer.json")
    assert params("check", *PAIR, *lists, cwd=tmp_path)["modules"] == "EXACT"
    error = params("check", *PAIR, *lists[:2], *lists[:2], code=4, cwd=tmp_path)["error"]
    assert "two module lists" in error["what"]


def test_with_a_card_through_its_prefix_and_interpreter(params, python, card, tmp_path):
    with changing(card) as found:
        for name, value in {"train.python": python, "infer.python": python, "model.path": tmp_path / "m"}.items():
            found.put(name, str(value))
        found.put("infer.prefix", ["env", "A=1"])
    refused = params("modules", "train", "--task", card, code=3)["error"]  # verl, backend unknown
    assert "--payload" in refused["todo"]
    with changing(card) as found:
        found.put("train.backend", "fsdp")
    for side, loader in (("train", "transformers"), ("infer", "vllm")):
        told = params("modules", side, "--task", card)
        assert (told["with"], told["written"]) == (loader, str(card.parent / "modules.json"))
        assert "--task" in told["next"]
    params("modules", "train", "--python", python, "--task", card, code=2)


def test_out_of_order(params, python, tmp_path):
    from tests.stages.params.conftest import card_in

    card = card_in(tmp_path / "early", upto=3)
    assert params("modules", "train", "--task", card, code=3)["error"]["kind"] == "out-of-order"


def test_what_goes_wrong_is_one_line(params, python, tmp_path):
    asked = ("--with", "transformers", "--python", python)
    error = params("modules", "train", "missing", *asked, code=1, cwd=tmp_path)["error"]
    assert "FileNotFoundError" in error["why"]
    params("modules", "train", "m", "--with", "transformers", "--python", "/nowhere", code=3, cwd=tmp_path)
    for settings in ("[]", "{", "1"):
        params("modules", "train", "m", *asked, "--settings", settings, code=2, cwd=tmp_path)
    params("modules", "train", "m", "--python", python, code=2, cwd=tmp_path)
    params("modules", code=2, cwd=tmp_path)
    (tmp_path / "modules.json").write_text("[]")  # somebody else's
    params("modules", "train", "m", *asked, code=4, cwd=tmp_path)
    assert (tmp_path / "modules.json").read_text() == "[]"


def test_the_payload_runs_by_itself_in_the_job_s_environment(python, tmp_path):
    done = run("params", "modules", "--payload", tmp_path / "p.py")
    assert done.returncode == 0
    assert run("params", "modules", "--payload", tmp_path / "p.py").returncode == 3  # never over a file
    for words in (("train", "m.json", "transformers", "m"), ("infer", "m.json", "vllm", "m", '{"eps": 0.5}')):
        subprocess.run([python, "p.py", *words], cwd=tmp_path, check=True, capture_output=True)
    data = json.loads((tmp_path / "m.json").read_text())
    assert [data[side]["model.norm"]["variance_epsilon"] for side in ("train", "infer")] == [1e-6, 0.5]
    assert subprocess.run([python, "p.py", "other"], cwd=tmp_path, capture_output=True).returncode == 1


@pytest.mark.real
def test_real_transformers_and_real_vllm_hold_the_same(params, tmp_path):
    if PYTHON is None:
        pytest.skip("PROBEPATCH_REAL_PYTHON names no interpreter")
    subprocess.run(
        [PYTHON, "-c", MAKE, "qwen3", tmp_path / "m"], check=True, capture_output=True, env=os.environ | QUIET
    )
    told = params("modules", "train", "m", "--with", "transformers", "--python", PYTHON, cwd=tmp_path)
    assert told["modules"] > 30
    found = params("check", *PAIR, "--modules", "modules.json", code=0, cwd=tmp_path)
    assert found["modules"] == "EXACT"
    if VLLM is None:
        pytest.skip("PROBEPATCH_VLLM_PYTHON names no interpreter")
    asked = ("modules", "infer", "m", "--with", "vllm", "--python", VLLM)
    params(*asked, cwd=tmp_path, **QUIET)
    found = params("check", *PAIR, "--modules", "modules.json", cwd=tmp_path)
    both = [item for item in found["items"] if item["layer"] == "modules" and item["train"] and item["infer"]]
    assert "model.layers.1.self_attn.scaling" in [item["name"] for item in both]
    other = '{"hf_overrides": {"rms_norm_eps": 1e-5}}'  # what a config that both sides share does not show
    params(*asked, "--settings", other, cwd=tmp_path, **QUIET)
    found = params("check", *PAIR, "--modules", "modules.json", code=1, cwd=tmp_path)
    names = {point["name"] for point in found["mismatch_points"]}
    assert "model.norm.variance_epsilon" in names and all(name.endswith("variance_epsilon") for name in names)
