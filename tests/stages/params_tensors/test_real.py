"""Real architectures: a checkpoint of Transformers, the module it becomes, and what vLLM makes of it; then what was planted.

PROBEPATCH_REAL_PYTHON   an interpreter with torch and Transformers
PROBEPATCH_VLLM_PYTHON   one with vLLM that runs here; without it that half is left out
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from stages.params_tensors import payload_inventory
from stages.params_tensors.header import read_header
from tests.stages.params_tensors.comparing import finding, report, verdicts
from tests.stages.params_tensors.made import Tensor, save, with_bytes

pytestmark = pytest.mark.real
PYTHON, VLLM = (os.environ.get(f"PROBEPATCH_{name}_PYTHON") for name in ("REAL", "VLLM"))
MAKE = """
import sys, torch, transformers as T
name, out = sys.argv[1:]
torch.manual_seed(0)
common = dict(vocab_size=512, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
              num_key_value_heads=2, max_position_embeddings=256)
moe = dict(moe_intermediate_size=64, num_experts_per_tok=2)
latent = dict(q_lora_rank=32, kv_lora_rank=32, qk_rope_head_dim=16, qk_nope_head_dim=16, v_head_dim=16)
config = {
    "qwen2-tied": lambda: T.Qwen2Config(**common, tie_word_embeddings=True),
    "qwen2": lambda: T.Qwen2Config(**common, tie_word_embeddings=False),
    "qwen3": lambda: T.Qwen3Config(**common, head_dim=32),
    "llama": lambda: T.LlamaConfig(**common),
    "glm": lambda: T.GlmConfig(**common, head_dim=32, pad_token_id=0, eos_token_id=1),
    "qwen3-moe": lambda: T.Qwen3MoeConfig(**common, **moe, head_dim=32, num_experts=4),
    "deepseek-v3": lambda: T.DeepseekV3Config(
        **{**common, "num_key_value_heads": 4}, **moe, **latent, n_routed_experts=8, n_group=2, topk_group=1,
        first_k_dense_replace=1, topk_method="noaux_tc"),
}[name]()
model = T.AutoModelForCausalLM.from_config(config).to(torch.bfloat16)
model.save_pretrained(out)
"""
NAMES = ("qwen2-tied", "qwen2", "qwen3", "llama", "glm", "qwen3-moe", "deepseek-v3")
QUIET = {
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "PROBEPATCH_INVENTORY_DATA": "1",
}


def run(python: str, *arguments: str | Path, inventory: Path | None = None) -> None:
    env = {**os.environ, **QUIET, "PROBEPATCH_INVENTORY": str(inventory or "")}
    done = subprocess.run([python, *map(str, arguments)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """By name the folder of the checkpoint; each made once."""
    if PYTHON is None:
        pytest.skip("PROBEPATCH_REAL_PYTHON names no interpreter")
    root = tmp_path_factory.mktemp("models")

    def make(name: str) -> Path:
        if not (root / name).exists():
            run(PYTHON, "-c", MAKE, name, root / name)
        return root / name

    return make


@pytest.mark.parametrize("name", NAMES)
def test_the_module_is_its_checkpoint(made, tmp_path, name):
    run(PYTHON, payload_inventory.__file__, "transformers", made(name), inventory=tmp_path / "hf")
    found = report(tmp_path / "hf", made(name))
    odd = [(one.name, one.verdict, one.note) for one in found.points]
    # Transformers keeps this one in F32, and casts it when it saves
    bias = ("model.layers.1.mlp.gate.e_score_correction_bias", "DTYPE_DIFF", "values equal")
    assert odd == ([bias] if name == "deepseek-v3" else [])
    assert found.compared > 20


@pytest.mark.parametrize("name", NAMES)
def test_vllm_is_the_checkpoint(made, tmp_path, name):
    """Fused qkv and gate_up, experts in one tensor, MLA's fused low-rank parts."""
    if VLLM is None:
        pytest.skip("PROBEPATCH_VLLM_PYTHON names no interpreter")
    run(VLLM, payload_inventory.__file__, "vllm", made(name), inventory=tmp_path / "vllm")
    found = report(made(name), tmp_path / "vllm")
    assert [one.name for one in found.points] == (
        ["model.layers.1.mlp.gate.e_score_correction_bias"] if name == "deepseek-v3" else []
    )
    assert any(".cos_sin_cache" in one for one in found.as_json()["ignored"]["infer"]) or name == "glm"


@pytest.mark.parametrize("name", ["qwen2", "deepseek-v3"])
def test_two_ranks_of_vllm_are_the_checkpoint(made, tmp_path, name):
    """Columns and rows cut, what is whole on both ranks compared between them."""
    if VLLM is None:
        pytest.skip("PROBEPATCH_VLLM_PYTHON names no interpreter")
    run(VLLM, payload_inventory.__file__, "vllm", made(name), "2", inventory=tmp_path / "vllm")
    found = report(made(name), tmp_path / "vllm")
    bias = ["model.layers.1.mlp.gate.e_score_correction_bias"] if name == "deepseek-v3" else []
    assert [one.name for one in found.points] == bias
    assert "model.norm.weight (infer: rank 0 and rank 1)" in verdicts(found)


def tensors_of(folder: Path) -> dict[str, Tensor]:
    path = folder / "model.safetensors"
    raw = path.read_bytes()
    return {
        name: (leaf.dtype, list(leaf.shape), raw[leaf.offset : leaf.offset + leaf.length])
        for name, leaf in read_header(path).items()
    }


ATTENTION, MLP = "model.layers.0.self_attn.", "model.layers.1.mlp."


def swapped(tensors, a, b):
    return {**tensors, a: tensors[b], b: tensors[a]}


def without(tensors, name):
    return {one: tensor for one, tensor in tensors.items() if one != name}


def flipped(tensors, name, at):
    byte = tensors[name][2][at]
    return {**tensors, name: with_bytes(tensors[name], at, bytes([byte ^ 1]))}


def replaced(tensors, name, at, new):
    return {**tensors, name: with_bytes(tensors[name], at, new)}


def cast(tensors, name):
    _dtype, shape, raw = tensors[name]
    wide = bytearray(2 * len(raw))
    wide[2::4], wide[3::4] = raw[0::2], raw[1::2]
    return {**tensors, name: ("F32", shape, bytes(wide))}


def reshaped(tensors, name):
    dtype, shape, raw = tensors[name]
    return {**tensors, name: (dtype, shape[::-1], raw)}


def padded(tensors, name, more):
    dtype, shape, raw = tensors[name]
    return {**tensors, name: (dtype, [shape[0] + more, *shape[1:]], raw + b"\7" * (more * len(raw) // shape[0]))}


PLANTED = {
    "one bit of one weight": (
        lambda t: flipped(t, f"{ATTENTION}v_proj.weight", 5000),
        {f"{ATTENTION}v_proj.weight": "DIFF"},
    ),
    "gate and up exchanged": (
        lambda t: swapped(t, f"{MLP}gate_proj.weight", f"{MLP}up_proj.weight"),
        {f"{MLP}gate_proj.weight": "DIFF", f"{MLP}up_proj.weight": "DIFF"},
    ),
    "key and value exchanged": (
        lambda t: swapped(t, f"{ATTENTION}k_proj.weight", f"{ATTENTION}v_proj.weight"),
        {f"{ATTENTION}k_proj.weight": "DIFF", f"{ATTENTION}v_proj.weight": "DIFF"},
    ),
    "two layers exchanged": (
        lambda t: swapped(t, "model.layers.0.mlp.down_proj.weight", "model.layers.1.mlp.down_proj.weight"),
        {"model.layers.0.mlp.down_proj.weight": "DIFF", "model.layers.1.mlp.down_proj.weight": "DIFF"},
    ),
    "a bias that is missing": (
        lambda t: without(t, f"{ATTENTION}q_proj.bias"),
        {f"{ATTENTION}q_proj.bias": "MISSING_SIDE"},
    ),
    "a tensor more": (
        lambda t: {**t, "model.extra.weight": t["model.norm.weight"]},
        {"model.extra.weight": "MISSING_SIDE"},
    ),
    "a renamed tensor": (
        lambda t: {**without(t, "model.norm.weight"), "model.final_norm.weight": t["model.norm.weight"]},
        {"model.norm.weight": "MISSING_SIDE", "model.final_norm.weight": "MISSING_SIDE"},
    ),
    "another dtype": (lambda t: cast(t, "model.norm.weight"), {"model.norm.weight": "DTYPE_DIFF"}),
    "transposed": (lambda t: reshaped(t, f"{MLP}down_proj.weight"), {f"{MLP}down_proj.weight": "SHAPE_DIFF"}),
    "padded vocabulary": (lambda t: padded(t, "lm_head.weight", 64), {"lm_head.weight": "EXACT_UP_TO_PADDING"}),
    "a used row of a padded vocabulary": (
        lambda t: padded(flipped(t, "lm_head.weight", 300 * 256), "lm_head.weight", 64),
        {"lm_head.weight": "DIFF"},
    ),
    "no head, though not tied": (lambda t: without(t, "lm_head.weight"), {"lm_head.weight": "MISSING_SIDE"}),
    "a negative zero": (
        lambda t: replaced(t, "model.norm.weight", 0, b"\0\x80"),
        {"model.norm.weight": "DIFF"},
    ),
    "a NaN": (
        lambda t: replaced(t, "model.norm.weight", 2, b"\xc0\x7f"),
        {"model.norm.weight": "DIFF"},
    ),
    "a dtype that nobody knows": (
        lambda t: {**t, "model.norm.weight": ("F4", [512], t["model.norm.weight"][2])},
        {"model.norm.weight": "UNSUPPORTED"},
    ),
}


@pytest.mark.parametrize("what", PLANTED)
def test_what_was_planted_is_found_and_nothing_else(made, tmp_path, what):
    plant, wanted = PLANTED[what]
    tensors = tensors_of(made("qwen2"))
    save(tmp_path / "train/model.safetensors", plant(tensors))
    found = report(tmp_path / "train", made("qwen2"))
    assert {name: verdict for name, verdict in verdicts(found).items() if verdict != "EXACT"} == wanted
    assert found.verdict != "EXACT"
    if what == "a used row of a padded vocabulary":
        assert finding(found, "lm_head.weight").difference["first_index"] == [300, 0]
    assert report(made("qwen2"), made("qwen2")).verdict == "EXACT"
