"""The estimate against dumps that msprobe 26.2.0 really wrote: one no-grad forward of transformers 5.9 models in bf16 (sdpa),
hidden 256, intermediate 768, 4 layers, 8 heads, 4000 words. Bytes on disk."""

from __future__ import annotations

import pytest

from stages.preflight.size import Size, estimate, longest

COMMON = {"hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 4, "num_attention_heads": 8}
COMMON |= {"vocab_size": 4000, "dtype": "bfloat16", "num_key_value_heads": 2}
MIXTURE = {"num_experts_per_tok": 4, "moe_intermediate_size": 128}
MODELS = {
    "qwen2": (COMMON, 10_132_992),
    "qwen3_moe": ({**COMMON, **MIXTURE, "num_experts": 16, "head_dim": 64}, 19_338_752),
    "deepseek_v3": (
        {
            **COMMON,
            **MIXTURE,
            "num_key_value_heads": 8,
            "n_routed_experts": 16,
            "n_shared_experts": 1,
            "qk_rope_head_dim": 16,
            "qk_nope_head_dim": 32,
            "v_head_dim": 32,
        },
        16_939_008,
    ),
}
MEASURED = [
    ("qwen2", "L0", 64, 15_887_231 + 126_786),
    ("qwen2", "L0", 128, 21_197_183 + 126_929),
    ("qwen2", "L1", 64, 21_756_319 + 211_266),
    ("qwen2", "L1", 128, 32_675_487 + 211_824),
    ("qwen2", "mix", 64, 37_643_550 + 365_935),
    ("qwen2", "mix", 128, 53_872_670 + 366_737),
    ("qwen3_moe", "L0", 64, 24_801_064 + 146_317),
    ("qwen3_moe", "L0", 128, 29_754_664 + 146_474),
    ("qwen3_moe", "L1", 64, 26_554_377 + 359_433),
    ("qwen3_moe", "L1", 128, 45_269_257 + 359_713),
    ("qwen3_moe", "mix", 64, 51_355_441 + 560_295),
    ("qwen3_moe", "mix", 128, 75_023_921 + 560_640),
    ("deepseek_v3", "L0", 64, 23_042_859 + 181_576),
    ("deepseek_v3", "L0", 128, 28_525_867 + 181_751),
    ("deepseek_v3", "L1", 64, 25_203_022 + 453_434),
    ("deepseek_v3", "L1", 128, 41_586_254 + 454_012),
    ("deepseek_v3", "mix", 64, 48_245_881 + 703_323),
    ("deepseek_v3", "mix", 128, 70_112_121 + 703_631),
]
STATISTICS = [
    ("qwen2", "L0", 109_110),
    ("qwen2", "mix", 326_164),
    ("qwen3_moe", "L0", 126_030),
    ("qwen3_moe", "mix", 505_845),
    ("deepseek_v3", "L0", 156_305),
    ("deepseek_v3", "mix", 637_720),
]


def of(model: str, level: str, task: str) -> Size:
    config, weights = MODELS[model]
    size, lacking = estimate(config, weights, level, task)
    assert size is not None, lacking
    return size


@pytest.mark.parametrize(("model", "level", "tokens", "measured"), MEASURED)
def test_a_dump_of_tensors_fits_and_the_estimate_is_no_fantasy(model, level, tokens, measured):
    assert measured <= of(model, level, "tensor").of(tokens) <= 2.5 * measured


@pytest.mark.parametrize(("model", "level", "measured"), STATISTICS)
def test_statistics_do_not_grow_with_the_prompt(model, level, measured):
    size = of(model, level, "statistics")
    assert size.per_token == 0
    assert measured <= size.once <= 6 * measured


def test_what_the_config_lacks_is_named():
    assert estimate({}, 0, "L0", "tensor") == (
        None,
        ["num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size", "intermediate_size"],
    )
    mixture = {**COMMON, "num_experts": 8}
    assert estimate(mixture, 0, "L0", "tensor") == (None, ["num_experts_per_tok"])
    hostile = {**COMMON, "hidden_size": "256", "vocab_size": -1, "num_hidden_layers": True}
    assert estimate(hostile, 0, "L0", "tensor")[1] == ["num_hidden_layers", "hidden_size", "vocab_size"]


def test_a_model_with_a_vision_part_has_its_numbers_inside():
    inner = {**COMMON, "max_position_embeddings": 4096}
    assert estimate({"text_config": inner}, 5, "L0", "tensor") == estimate(COMMON, 5, "L0", "tensor")
    assert longest({"text_config": inner}) == 4096
    assert longest({}) is None


def test_an_unknown_dtype_counts_as_the_widest_usual_one():
    config = {key: value for key, value in COMMON.items() if key != "dtype"}
    size, narrow = estimate(config, 0, "L0", "tensor")[0], estimate(COMMON, 0, "L0", "tensor")[0]
    assert size is not None and narrow is not None
    assert size.per_token == 2 * narrow.per_token
