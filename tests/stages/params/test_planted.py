"""A mismatch of every kind in a real pair is found and named; a pair without one is silent."""

from __future__ import annotations

import pytest

from stages.params.check import Wish, check
from tests.stages.params.pairs import NEW, OLD, PLANTED, hf, planted, provider

MEGATRON = ["qwen2", "qwen3", "qwen3_moe", "glm4_moe", "llama"]
HF = [*MEGATRON, "deepseek_v3", "glm4"]


@pytest.mark.parametrize("case", PLANTED, ids=[case["planted"] for case in PLANTED])
def test_a_planted_mismatch(case, tmp_path):
    train, infer, mapping = planted(case, tmp_path)
    points = check(Wish(train, infer, mapping, train_is_hf=mapping == "hf-hf")).points
    known = {"mtp_layers"} if case["pair"] == "megatron:deepseek_v3" else set()
    found = [point for point in points if point.name not in known]
    want = case["expect"]
    assert (found[0].name, found[0].result, found[0].kind, found[0].side) == tuple(want.values())
    if want["name"] != "mHC" and want["name"] != "mla" and "a rope block" not in case["planted"]:
        assert len(found) == 1, [point.name for point in found]


@pytest.mark.parametrize("model", MEGATRON)
def test_a_real_provider_and_its_config_are_aligned(model):
    checked = check(Wish(provider(model), hf(model), "auto"))
    assert (checked.aligned, checked.compared.mapping.name) == (True, "hf-megatron")
    assert len(checked.items) >= 25
    assert not checked.compared.infer_only


@pytest.mark.parametrize("model", HF)
@pytest.mark.parametrize("full", [False, True])
def test_configs_of_two_transformers_versions_are_aligned(model, full):
    checked = check(Wish(hf(model, OLD, full), hf(model, NEW, not full), "auto", train_is_hf=True))
    assert checked.aligned, checked.points
    assert len(checked.items) >= 14


@pytest.mark.parametrize("model", HF)
def test_one_config_beside_itself_needs_no_mapping(model):
    assert check(Wish(hf(model), hf(model), train_is_hf=True)).aligned


@pytest.mark.parametrize("model", MEGATRON)
def test_what_a_real_bridge_loses_with_a_newer_transformers(model):
    """transformers 5 keeps theta in `rope_parameters`; Megatron-Bridge 0.3.1 looks for `rope_theta`, and 10000 stays."""
    (point,) = check(Wish(provider(model, NEW), hf(model, NEW), "auto")).points
    assert (point.name, point.result, point.train["value"]) == ("rope_theta", "DIFF", 10000)
    assert point.train["default_of"].endswith("GPTModelProvider")


def test_what_a_real_bridge_drops():
    """Megatron-Bridge 0.3.1 builds DeepSeek-V3 without its MTP layer."""
    (point,) = check(Wish(provider("deepseek_v3"), hf("deepseek_v3"), "auto")).points
    assert (point.name, point.result, point.waivable) == ("mtp_layers", "DIFF", True)
