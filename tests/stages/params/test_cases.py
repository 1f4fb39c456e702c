"""Cases from the field, with the outcome that is right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stages.msprobe_config import check_config
from stages.params.check import Wish, check
from stages.params.reading import ConfigError

CASES = Path(__file__).parent.parent / "cases"


def case(name: str, *more: str) -> tuple[str, ...]:
    folder = CASES / name
    paths = ("--train-cfg", f"{folder}/input.train.json", "--infer-cfg", f"{folder}/input.infer.json")
    return (*paths, *(part.format(folder=folder) for part in more))


def test_31_rope_fields_that_a_conversion_lost(params, tmp_path):
    result = params(
        "check", *case("31-rope-fields-lost", "--mapping", "{folder}/input.mapping.json"), code=1, cwd=tmp_path
    )
    points = {point["name"]: point for point in result["mismatch_points"]}
    theta, factor = points["rope_parameters.rope_theta"], points["rope_parameters.factor"]
    assert (theta["result"], theta["side"]) == ("CONFLICT", "train")
    assert theta["train"]["conflict"] == {"rotary_base": 10000, "rope_theta": 1000000}
    assert (factor["result"], factor["side"], factor["train"]) == ("MISSING_SIDE", "train", None)
    exact = {item["name"] for item in result["items"] if item["result"] == "EXACT"}
    assert exact == {"rms_norm_eps", "num_hidden_layers"}
    assert result["verdict"] == "MISMATCH"


def test_31_without_a_mapping_nothing_is_passed_over(params, tmp_path):
    result = params("check", *case("31-rope-fields-lost"), code=1, cwd=tmp_path)
    assert {f"rope_parameters.{name}" for name in ("rope_theta", "rope_type", "factor")} <= set(
        result["infer_only_keys"]
    )
    assert {"rotary_base", "rope_theta", "num_layers", "layernorm_epsilon"} == set(result["train_only_keys"])
    assert any("hf-megatron" in note for note in result["notes"]) or result["train"]["kind"] == "megatron"


def test_32_a_norm_that_does_not_take_the_config_s_epsilon(params, tmp_path):
    arguments = case("32-eps-not-consumed-by-module", "--mapping", "{folder}/mapping.json")
    assert params("check", *arguments, cwd=tmp_path)["verdict"] == "EXACT"
    modules = case("32-eps-not-consumed-by-module", "--modules", "{folder}/input.modules.json")[-2:]
    result = params("check", *arguments, *modules, code=1, cwd=tmp_path)
    (point,) = result["mismatch_points"]
    assert (point["layer"], point["result"]) == ("modules", "DIFF")
    assert point["name"] == "layers.0.post_attention_layernorm.eps"
    assert (point["train"]["value"], point["infer"]["value"]) == (1e-05, 1e-06)
    assert "config equal, module differs" in point["why"]
    assert [item["result"] for item in result["items"] if item["layer"] == "config"] == ["EXACT"]
    assert (result["verdict"], result["modules"]) == ("MISMATCH", "MISMATCH")


def test_34_the_tie_flag(tmp_path):
    """Its tensors are the weight layer's; the flag, its levels and its default are the config's."""
    cases = {one["id"]: one["config"] for one in json.loads((CASES / "34-tied-embeddings/input.json").read_text())}

    def results(train: dict, infer: dict) -> list[tuple]:
        paths = tmp_path / "train.json", tmp_path / "infer.json"
        for path, data in zip(paths, (train, infer), strict=True):
            path.write_text(json.dumps(data))
        items = check(Wish(*paths, "hf-hf", train_is_hf=True)).items
        return [(item.result, item.side, item.train.value, item.infer.value) for item in items]

    assert results(cases[1], cases[4]) == [("EXACT", None, True, True)]
    assert results(cases[2], cases[1]) == [("DIFF", None, False, True)]
    assert results(cases[2], cases[3])[0][:2] == ("CONFLICT", "infer")
    qwen, gemma = {"model_type": "qwen2", "hidden_size": 8}, {"model_type": "gemma2", "hidden_size": 8}
    assert results({**qwen, "tie_word_embeddings": False}, qwen)[0] == ("EXACT", None, False, False)
    assert results({**gemma, "tie_word_embeddings": False}, gemma)[0] == ("DIFF", None, False, True)
    assert results({"model_type": "who", "tie_word_embeddings": False}, {"model_type": "who"})[0][:2] == (
        "MISSING_SIDE",
        "infer",
    )


def test_34_a_class_default_is_told_as_assumed(tmp_path):
    (tmp_path / "a.json").write_text('{"model_type": "qwen2", "hidden_size": 8, "tie_word_embeddings": false}')
    (tmp_path / "b.json").write_text('{"model_type": "qwen2", "hidden_size": 8}')
    item = check(Wish(tmp_path / "a.json", tmp_path / "b.json", "hf-hf", train_is_hf=True)).items[0]
    assert "assumed: infer: false is the default of qwen2" in item.why
    assert item.infer.assumed == "qwen2"


def test_35_a_padded_vocabulary_is_no_silent_agreement(params, tmp_path):
    result = params("check", *case("35-vocabulary-padding", "--mapping", "{folder}/mapping.json"), code=1, cwd=tmp_path)
    (point,) = result["mismatch_points"]
    assert (point["result"], point["kind"], point["waivable"]) == ("DIFF", "padding", True)
    assert (point["train"]["value"], point["infer"]["value"]) == (256, 200)
    assert "multiple of 64" in point["why"]


@pytest.mark.parametrize(
    ("name", "world", "errors", "warnings", "ranks", "steps"),
    [
        ("input.json", 2, ["rank"], ["level"], (4, 5), ()),
        ("input.single.json", 1, ["rank"], [], (0,), (0,)),
        ("input.range.json", 2, [], [], (0, 1), (0, 1, 2)),
    ],
)
def test_45_ranks_that_are_card_numbers(name, world, errors, warnings, ranks, steps):
    checked = check_config(json.loads((CASES / "45-rank-list-not-present" / name).read_text()), world)
    assert [one.key for one in checked.findings if one.level == "error"] == errors
    assert [one.key for one in checked.findings if one.level == "warning"] == warnings
    assert (checked.ranks, checked.steps) == (ranks, steps)
    if world == 2 and errors:
        assert checked.errors[0].what == "rank 4,5 do not exist, world size 2"
        assert "[0,1] or []" in checked.errors[0].todo
    if world == 1:
        assert checked.errors[0].todo == "use []"


def test_zero_comparisons_are_a_failure(params, tmp_path):
    (tmp_path / "a.json").write_text('{"x": null}')
    (tmp_path / "b.json").write_text('{"y": null}')
    error = params("check", "--train-cfg", "a.json", "--infer-cfg", "b.json", code=1, cwd=tmp_path)["error"]
    assert error["kind"] == "nothing-compared"


def test_a_module_list_that_says_nothing_is_a_failure(params, tmp_path):
    (tmp_path / "m.json").write_text('{"train": {"a": {"class": "Norm"}}}')
    arguments = case("32-eps-not-consumed-by-module", "--mapping", "{folder}/mapping.json")
    result = params("check", *arguments, "--modules", "m.json", code=1, cwd=tmp_path)
    (point,) = result["mismatch_points"]
    assert (point["result"], point["side"], point["layer"]) == ("MISSING_SIDE", "train", "modules")
    assert "set but consumed by no module" in point["why"]
    (tmp_path / "m.json").write_text('{"train": {}}')
    assert params("check", *arguments, "--modules", "m.json", code=1, cwd=tmp_path)["error"]["kind"] == "no-modules"


@pytest.mark.parametrize(
    "text", ["", "[", "[]", "{", '{"a": NaN}', '{"a": 1e999}', '{"a": 1, "a": 2}', "[" * 5000, '{"a":' * 2000, "\x00"]
)
def test_hostile_configs(params, tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    (tmp_path / "b.json").write_text('{"a": 1}')
    for train, infer in (("a.json", "b.json"), ("b.json", "a.json")):
        error = params("check", "--train-cfg", train, "--infer-cfg", infer, code=4, cwd=tmp_path)["error"]
        assert error["kind"] == ConfigError("").kind
        assert "\n" not in error["what"]


def test_a_norm_that_takes_no_config_value_on_either_side_is_aligned(params, tmp_path):
    """transformers' DeepSeek-V3 builds its latent norms with their own default; on both sides that is one model."""
    (tmp_path / "a.json").write_text('{"layernorm_epsilon": 1e-5}')
    (tmp_path / "b.json").write_text('{"rms_norm_eps": 1e-5}')
    side = {"layers.0.kv_a_layernorm": {"eps": 1e-6}, "layers.0.input_layernorm": {"eps": 1e-5}}
    (tmp_path / "m.json").write_text(json.dumps({"train": side, "infer": side}))
    mapping = CASES / "32-eps-not-consumed-by-module/mapping.json"
    pair = ("--train-cfg", "a.json", "--infer-cfg", "b.json", "--mapping", mapping, "--modules", "m.json")
    items = {item["name"]: item for item in params("check", *pair, cwd=tmp_path)["items"]}
    assert "the same on both sides" in items["layers.0.kv_a_layernorm.eps"]["why"]
    (tmp_path / "m.json").write_text(json.dumps({"train": side}))
    (point,) = params("check", *pair, code=1, cwd=tmp_path)["mismatch_points"]
    assert point["name"] == "layers.0.kv_a_layernorm.eps"


def test_the_module_list_s_payload(tmp_path):
    from types import SimpleNamespace

    from stages.params.modules import read_modules
    from stages.params.payloads.list_modules import write_modules

    class Norm:
        def __init__(self) -> None:
            self.eps, self.weight, self.training, self._hidden = 1e-6, [1.0], True, 1

    model = SimpleNamespace(named_modules=lambda: [("", SimpleNamespace(n=1)), ("norm", Norm())])
    for side in ("train", "infer"):
        write_modules(model, side, str(tmp_path / "m.json"))
    assert read_modules([tmp_path / "m.json"])["infer"] == {
        ".": {"class": "SimpleNamespace", "n": 1},
        "norm": {"class": "Norm", "eps": 1e-6},
    }
