"""All layers joined: numbers by weight, instructions, waivers by name, evidence in the card."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stages.card.order import PARAMS, state_of
from stages.card.store import read_card
from stages.params.instruction import LoadRefusedError, read_instruction
from stages.params.reading import ConfigError
from tests.cli.test_shell import run
from tests.stages.params.pairs import PLANTED, hf, load, planted, provider

VIEW = {"dtype": "BF16", "shape": [4, 4], "kind": None, "stored_as": []}


def finding(name: str, verdict: str, train: bool = True, infer: bool = True) -> dict:
    sides = {"train": VIEW if train else None, "infer": VIEW if infer else None}
    return {"name": name, "verdict": verdict, **sides, "note": "", "difference": None}


def tensors(folder: Path, layer: str, findings: list[dict], compared: int = 3) -> None:
    result = {
        "verdict": "EXACT" if not findings else "MISMATCH",
        "compared": compared,
        "findings": findings,
        "inputs": {},
    }
    (folder / f"param_{layer}.json").write_text(json.dumps(result))


def check(params, folder: Path, train: Path, infer: Path, *more: str, code: int = 0) -> dict:
    return params(
        "check", "--train-cfg", train, "--infer-cfg", infer, "--mapping", "auto", *more, code=code, cwd=folder
    )


@pytest.fixture
def modules(tmp_path: Path) -> str:
    path = tmp_path / "modules.json"
    path.write_text(json.dumps({"train": {"decoder.layers.0.input_layernorm": {"eps": 1e-6}}, "infer": {}}))
    return str(path)


def test_all_layers_exact_open_stage_6(params, card, modules):
    folder = card.parent
    modules_list = {"train": {"decoder.final_layernorm": {"eps": 1e-06}}, "infer": {"model.norm": {"eps": 1e-06}}}
    Path(modules).write_text(json.dumps(modules_list))
    result = check(params, folder, provider("glm4_moe"), hf("glm4_moe"), "--modules", modules, code=1)
    assert result["modules"] == "MISMATCH"  # GLM's epsilon is 1e-5
    config = load(hf("qwen3"))
    assert config["rms_norm_eps"] == 1e-6
    consumed = {
        "decoder.final_layernorm": {"eps": 1e-06},
        "rotary_pos_emb": {"rotary_base": 1000000.0},
        "decoder.layers.0.self_attention.core_attention": {"attention_dropout": 0.0},
    }
    modules_list = {"train": consumed, "infer": {"model.norm": {"eps": 1e-06}, "rotary_emb": {"base": 1e6}}}
    Path(modules).write_text(json.dumps(modules_list))
    check(params, folder, provider("qwen3"), hf("qwen3"), "--modules", modules)
    tensors(folder, "structure", [])
    tensors(folder, "weights", [])
    report = params("report", cwd=folder)
    assert (report["verdict"], report["mismatch_points"], report["instructions"]) == ("EXACT", [], [])
    assert {name: one["state"] for name, one in report["layers"].items()} == dict.fromkeys(report["layers"], "EXACT")
    assert report["modules"]["norm"] == {
        "switch": "EXACT",
        "parameters": "EXACT",
        "consumed": "EXACT",
        "shapes": "EXACT",
    }
    assert state_of(read_card(card), PARAMS) == ("done", "aligned at parameter level")
    assert json.loads((folder / "param_alignment_report.json").read_text())["verdict"] == "EXACT"
    assert report["next"][0]["stage"] == 6


def test_what_was_not_computed_is_a_point(params, card):
    report = params("report", code=1, cwd=card.parent)
    points = {point["name"]: point for point in report["mismatch_points"]}
    assert set(points) == {"config-layer", "structure-layer", "modules-layer", "weights-layer"}
    assert {name for name, point in points.items() if point["waivable"]} == {"modules-layer", "weights-layer"}
    assert {point["result"] for point in points.values()} == {"not computed"}
    for todo, command in zip(report["instructions"], ("check", "structure", "check", "weights"), strict=True):
        assert f"`probepatch params {command} --" in todo["action"]
        assert todo["verify"].startswith("`probepatch params report`")
    assert state_of(read_card(card), PARAMS)[0] == "failed"
    assert report["next"][0]["command"].startswith("probepatch params check --train-cfg")
    check(params, card.parent, provider("qwen3"), hf("qwen3"))
    report = params("report", code=1, cwd=card.parent)
    assert report["next"][0]["command"] == "probepatch params modules train"


def test_points_are_numbered_by_weight(params, card, tmp_path):
    folder = card.parent
    train, infer = load(provider("qwen3")), load(hf("qwen3"))
    train["config"] |= {
        "qk_layernorm": False,
        "layernorm_epsilon": 1e-5,
        "num_layers": 27,
        "params_dtype": "torch.float32",
    }
    train["config"]["vocab_size"] = 152064
    for name, data in (("t.json", train), ("i.json", infer)):
        (folder / name).write_text(json.dumps(data))
    check(params, folder, Path("t.json"), Path("i.json"), code=1)
    missing = [finding(f"model.layers.{n}.self_attn.q_norm.weight", "MISSING_SIDE", train=False) for n in range(28)]
    tensors(folder, "structure", [*missing, finding("model.norm.weight", "DTYPE_DIFF")])
    tensors(folder, "weights", [finding("model.norm.weight", "DIFF"), finding("lm_head.weight", "EXACT_UP_TO_PADDING")])
    report = params("report", code=1, cwd=folder)
    told = [(point["id"], point["name"], point["kind"]) for point in report["mismatch_points"]]
    assert told[:3] == [
        ("P1", "qk_norm", "switch"),
        ("P2", "model.layers.*.self_attn.q_norm.weight", "structure"),
        ("P3", "num_hidden_layers", "structure"),
    ]
    assert [kind for _id, _name, kind in told] == sorted(
        (kind for _id, _name, kind in told), key=["switch", "structure", "value", "dtype", "padding"].index
    )
    second = report["mismatch_points"][1]
    assert (second["side"], second["why"]) == ("train", "28 tensors")
    assert report["modules"]["attention"]["switch"] == "MISSING_SIDE"
    assert report["modules"]["attention"]["shapes"] == "MISSING_SIDE"
    assert report["modules"]["attention"]["consumed"] == "not computed"
    by_point = {one["point"]: one for one in report["instructions"]}
    assert by_point["P1"]["method"] == "config"
    assert by_point["P1"]["target"] == "qk_layernorm"
    assert by_point["P2"]["method"] == "code"
    weights = next(
        one for one in report["instructions"] if one["target"] == "model.norm.weight" and one["method"] == "weight"
    )
    assert "checkpoint" in weights["action"]
    assert read_instruction(folder / "param_alignment_instruction.json")


def test_the_mhc_case_s_instruction_names_the_code(params, card):
    folder = card.parent
    case = next(one for one in PLANTED if one["expect"]["name"] == "mHC" and "undeclared" in one)
    train, infer, _mapping = planted(case, folder)
    check(params, folder, train, infer, code=1)
    report = params("report", code=1, cwd=folder)
    first = report["instructions"][0]
    assert (first["point"], first["align_side"], first["method"]) == ("P1", "train", "code")
    assert "enable_hyper_connections" in first["action"]
    refused = params("waive", "mHC", "--why", "we are in a hurry", code=3, cwd=folder)["error"]
    assert refused["kind"] == "not-waivable"


def test_a_waiver_is_by_name_on_the_record_and_for_these_values(params, card, modules):
    folder = card.parent
    case = next(one for one in PLANTED if one["expect"]["kind"] == "padding")
    train, infer, _mapping = planted(case, folder)
    check(params, folder, train, infer, code=1)
    tensors(folder, "structure", [])
    tensors(folder, "weights", [])
    params("report", code=1, cwd=folder)
    for name in ("vocab_size", "modules-layer"):
        params("waive", name, "--why", "rows up to vocab_size are compared", cwd=folder)
    report = params("report", cwd=folder)
    assert report["verdict"] == "WAIVED"
    assert report["statement"].startswith("not aligned at parameter level; waived: ")
    assert report["mismatch_points"][0]["waived"]["why"] == "rows up to vocab_size are compared"
    assert report["instructions"] == []
    made = read_card(card)
    assert state_of(made, PARAMS)[0] == "done"
    assert any("vocab_size is waived: rows" in line["what"] for line in made.data["log"])
    changed = load(train)
    changed["config"]["vocab_size"] = 160000
    train.write_text(json.dumps(changed))
    assert state_of(read_card(card), PARAMS)[0] == "stale"
    check(params, folder, train, infer, code=1)
    again = params("report", code=1, cwd=folder)
    assert [point["waived"] is None for point in again["mismatch_points"] if point["name"] == "vocab_size"] == [True]


def test_wrong_waivers(params, card, tmp_path):
    folder = card.parent
    assert (
        params("waive", "weights-layr", "--why", "x", code=2, cwd=folder)["error"]["todo"]
        == "did you mean `weights-layer`?"
    )
    assert (
        params("waive", "weights-layer", "--why", "token=abcdefgh12345678", code=2, cwd=folder)["error"]["kind"]
        == "secret"
    )
    assert params("waive", "structure-layer", "--why", "x", code=3, cwd=folder)["error"]["kind"] == "not-waivable"
    assert params("waive", "x", "--why", "y", code=2, cwd=tmp_path / "..")["error"]["kind"] == "no-card"
    assert not (folder / "param_waivers.json").exists()


def test_a_result_whose_input_changed_is_not_computed(params, card):
    folder = card.parent
    (folder / "t.json").write_text(provider("qwen3").read_text())
    check(params, folder, Path("t.json"), hf("qwen3"))
    (folder / "t.json").write_text(provider("qwen3").read_text() + "\n")
    report = params("report", code=1, cwd=folder)
    assert report["layers"]["config"]["state"] == "not computed"
    assert "has changed since" in report["layers"]["config"]["why"]


def test_nothing_compared_is_not_computed(params, card):
    tensors(card.parent, "structure", [], compared=0)
    report = params("report", code=1, cwd=card.parent)
    assert report["layers"]["structure"]["why"] == "nothing was compared"


def test_without_a_card_nothing_is_recorded(params, tmp_path):
    report = params("report", code=1, cwd=tmp_path)
    assert report["recorded"] is None
    assert "no task card: nothing was recorded" in run("params", "report", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    "text", ["{}", "[]", '{"format": "x", "items": []}', '{"format": "probepatch/param-config/1", "items": [1]}']
)
def test_a_result_file_that_is_none(params, tmp_path, text):
    (tmp_path / "param_config.json").write_text(text)
    assert params("report", code=4, cwd=tmp_path)["error"]["kind"] == "config"


def test_method_load_is_refused(params, card, tmp_path):
    good = {"point": "P1", "align_side": "train", "method": "code", "target": "x", "action": "y", "verify": "z"}
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"instructions": [good]}))
    assert read_instruction(path) == [good]
    path.write_text(json.dumps({"instructions": [good, {**good, "method": "load"}]}))
    with pytest.raises(LoadRefusedError):
        read_instruction(path)
    error = params("report", "--instruction", path, code=3, cwd=card.parent)["error"]
    assert error["kind"] == "load-refused"
    assert "instructions[1]" in error["where"]
    path.write_text(json.dumps({"instructions": [{**good, "method": "prayer"}]}))
    with pytest.raises(ConfigError):
        read_instruction(path)


def test_the_examples_that_ship_are_valid():
    from stages.params.mapping import read_mapping

    examples = Path(__file__).resolve().parents[3] / "stages/params/examples"
    mapping = read_mapping(examples / "param_alignment_mapping.example.json")
    assert any("infer" in one.expected for one in mapping.fields)
    assert {one["method"] for one in read_instruction(examples / "param_alignment_instruction.example.json")} == {
        "config",
        "code",
        "weight",
    }


def test_the_tensor_commands_own_results_join(card):
    """`params structure` and `params weights` on real files, read back by the report."""
    folder = card.parent
    for side, names in (("t", ("model.norm.weight", "extra.weight")), ("i", ("model.norm.weight",))):
        header = {
            name: {"dtype": "F32", "shape": [1], "data_offsets": [4 * n, 4 * n + 4]} for n, name in enumerate(names)
        }
        text = json.dumps(header).encode()
        (folder / side).mkdir()
        (folder / side / "model.safetensors").write_bytes(
            len(text).to_bytes(8, "little") + text + bytes(4 * len(names))
        )
    for command in ("structure", "weights"):
        done = run("params", command, "--train", "t", "--infer", "i", cwd=folder)
        assert done.returncode == 1, done.stdout + done.stderr
    done = run("params", "report", "--json", cwd=folder)
    report = json.loads(done.stdout)
    assert report["train_only_keys"] == ["extra.weight"]
    assert {name: one["state"] for name, one in report["layers"].items()}["structure"] == "MISMATCH"
    (missing,) = [
        point
        for point in report["mismatch_points"]
        if point["name"] == "extra.weight" and point["layer"] == "structure"
    ]
    assert (missing["side"], missing["kind"], missing["result"]) == ("infer", "structure", "MISSING_SIDE")
    path = folder / "t/model.safetensors"
    path.touch()
    report = json.loads(run("params", "report", "--json", cwd=folder).stdout)
    assert report["layers"]["weights"]["state"] == "MISMATCH"  # a small file is told by its bytes
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    report = json.loads(run("params", "report", "--json", cwd=folder).stdout)
    assert report["layers"]["weights"]["state"] == "not computed"
