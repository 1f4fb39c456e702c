"""Verdicts: each kind of difference is found and named, and nothing is found where all is equal."""

from __future__ import annotations

import json
import struct

import pytest

from stages.params_tensors import difference
from stages.params_tensors.streams import CHUNK
from tests.stages.params_tensors.comparing import finding, report, verdicts
from tests.stages.params_tensors.made import Tensor, bf16, entry, f32, inventory, matrix, rows_of, save, with_bytes


def both(tmp_path, train: dict[str, Tensor], infer: dict[str, Tensor], config=None, **options):
    for side, tensors in (("train", train), ("infer", infer)):
        save(tmp_path / side / "model.safetensors", tensors)
        if config is not None:
            (tmp_path / side / "config.json").write_text(json.dumps(config))
    return report(tmp_path / "train", tmp_path / "infer", **options)


def test_dtypes_and_odd_bits(tmp_path):
    nan, other_nan = bytes.fromhex("c07f"), bytes.fromhex("c17f")
    train = {
        "same": bf16(1, 2),
        "cast": f32(1, 2),
        "zero": f32(0.0),
        "q.weight": bf16(1, 0.5),
        "nan": ("BF16", [1], nan),
        "odd": ("F4", [2], b"\x12"),
    }
    infer = {
        "same": bf16(1, 2),
        "cast": bf16(1, 2),
        "zero": f32(-0.0),
        "q.weight": ("F8_E4M3", [2], bytes.fromhex("3830")),
        "q.weight_scale_inv": f32(1),
        "nan": ("BF16", [1], other_nan),
        "odd": ("F4", [2], b"\x12"),
    }
    found = both(tmp_path, train, infer)
    assert verdicts(found) == {
        "same": "EXACT",
        "cast": "DTYPE_DIFF",
        "zero": "DIFF",
        "q.weight": "QUANTIZED",
        "nan": "DIFF",
        "odd": "UNSUPPORTED",
        "q.weight_scale_inv": "MISSING_SIDE",
    }
    assert finding(found, "cast").note == "values equal"
    assert finding(found, "zero").difference["values"] == "equal"
    assert finding(found, "zero").difference["signs_of_zero"] == 1
    assert "bits differ" in finding(found, "zero").note
    assert finding(found, "nan").difference["values"] == "nan"
    assert finding(found, "q.weight").note == "equal when dequantised"
    assert "F4" in finding(found, "odd").note
    assert found.missing("infer") == ["q.weight_scale_inv"]
    assert (found.verdict, found.counts["UNSUPPORTED"]) == ("MISMATCH", 1)


def test_only_an_unsupported_dtype_is_not_exact(tmp_path):
    one = {"odd": ("F4", [2], b"\x12"), "new": ("X9", [3], b"\x12")}
    assert both(tmp_path, one, one).verdict == "NOTHING_COMPARED"
    assert both(tmp_path, {**one, "a": f32(1)}, {**one, "a": f32(1)}).verdict == "MISMATCH"


def test_the_vocabulary_may_be_padded(tmp_path):
    name = "model.embed_tokens.weight"
    infer = matrix(200, 4)
    train = (infer[0], [256, 4], infer[2] + bytes(range(56)) * 16)
    found = both(tmp_path, {name: train}, {name: infer}, {"vocab_size": 200})
    assert (verdicts(found), found.verdict) == ({name: "EXACT_UP_TO_PADDING"}, "EXACT_UP_TO_PADDING")
    assert "256 and 200 rows" in finding(found, name).note

    changed = with_bytes(infer, 150 * 16 + 4, struct.pack("<f", -7))
    found = both(tmp_path, {name: train}, {name: changed}, {"vocab_size": 200})
    assert (verdicts(found), finding(found, name).difference["first_index"]) == ({name: "DIFF"}, [150, 1])
    assert finding(found, name).difference["max_abs"] == 608

    assert verdicts(both(tmp_path, {name: train}, {name: infer}, {})) == {name: "SHAPE_DIFF"}
    assert verdicts(both(tmp_path, {name: train}, {name: infer}, {"vocab_size": 300})) == {name: "SHAPE_DIFF"}
    assert verdicts(both(tmp_path, {name: train}, {name: infer}, {}, numbers={"vocab_size": 200})) == {
        name: "EXACT_UP_TO_PADDING"
    }
    assert (
        both(tmp_path, {name: train}, {name: infer}, {"vocab_size": 200}, kind="structure").verdict
        == "EXACT_UP_TO_PADDING"
    )


def test_both_are_padded_alike_but_for_the_padding(tmp_path):
    name = "lm_head.weight"
    train, infer = matrix(8, 4), with_bytes(matrix(8, 4), 7 * 16, b"\xff")
    assert verdicts(both(tmp_path, {name: train}, {name: infer}, {"vocab_size": 7})) == {name: "EXACT_UP_TO_PADDING"}
    assert verdicts(both(tmp_path, {name: train}, {name: train}, {"vocab_size": 7})) == {name: "EXACT"}
    assert verdicts(both(tmp_path, {"x": train}, {"x": infer}, {"vocab_size": 7})) == {"x": "DIFF"}


def test_padded_shards_are_joined_first(tmp_path):
    name = "model.embed_tokens.weight"
    infer = matrix(200, 4)
    train = (infer[0], [256, 4], infer[2] + b"\x07" * 56 * 16)
    for rank in range(2):
        part = rows_of(train, rank * 128, rank * 128 + 128)
        shard = {"dim": 0, "index": rank, "count": 2}
        inventory(tmp_path / "train", [(entry(name, part, shard=shard), part)], {"world": 2, "rank": rank})
    save(tmp_path / "infer/model.safetensors", {name: infer})
    found = report(tmp_path / "train", tmp_path / "infer", numbers={"vocab_size": 200})
    assert verdicts(found) == {name: "EXACT_UP_TO_PADDING"}


def test_a_buffer_on_one_side_is_a_parameter_on_the_other(tmp_path):
    weight, route, cache = f32(1, 2), ("I64", [4], struct.pack("<4q", 3, 1, 2, 0)), f32(1, 0.1)
    zeros = ("I64", [4], bytes(32))
    buffer = {"kind": "buffer"}
    inventory(
        tmp_path / "train",
        [
            (entry("blk.0.w", weight), weight),
            (entry("blk.0.gate.id_map", route, **buffer), route),
            (entry("rotary.inv_freq", cache, persistent=False, **buffer), cache),
            (entry("blk.0.mask", cache, persistent=False, **buffer), cache),
        ],
    )
    inventory(tmp_path / "infer", [(entry("blk.0.w", weight), weight), (entry("blk.0.gate.id_map", zeros), zeros)])
    found = report(tmp_path / "train", tmp_path / "infer")
    assert verdicts(found) == {"blk.0.w": "EXACT", "blk.0.gate.id_map": "DIFF"}
    assert finding(found, "blk.0.gate.id_map").note == "a buffer on the train side, a parameter on the infer side"
    assert set(found.as_json()["ignored"]["train"]) == {"rotary.inv_freq", "blk.0.mask"}


EMBED, HEAD = "model.embed_tokens.weight", "lm_head.weight"


@pytest.mark.parametrize(
    ("config", "train", "infer", "wanted", "overall"),
    [
        (
            {"tie_word_embeddings": True},
            {EMBED: 0, HEAD: 0},
            {EMBED: 0},
            {EMBED: "EXACT", HEAD: "EXACT", f"{HEAD} = {EMBED} (train)": "EXACT"},
            "EXACT",
        ),
        (
            {"tie_word_embeddings": False},
            {EMBED: 0, HEAD: 0},
            {EMBED: 0},
            {EMBED: "EXACT", HEAD: "MISSING_SIDE"},
            "MISMATCH",
        ),
        ({}, {EMBED: 0, HEAD: 0}, {EMBED: 0}, {EMBED: "EXACT", HEAD: "MISSING_SIDE"}, "MISMATCH"),
        (
            {"tie_word_embeddings": False, "text_config": {"tie_word_embeddings": True}},
            {EMBED: 0},
            {EMBED: 0},
            {EMBED: "EXACT"},
            "MISMATCH",
        ),
        (
            {"tie_word_embeddings": True},
            {EMBED: 0, HEAD: 0},
            {EMBED: 0, HEAD: 9},
            {EMBED: "EXACT", HEAD: "DIFF", f"{HEAD} = {EMBED} (train)": "EXACT", f"{HEAD} = {EMBED} (infer)": "DIFF"},
            "MISMATCH",
        ),
    ],
)
def test_tied_embeddings(tmp_path, config, train, infer, wanted, overall):
    sides = [{name: matrix(4, 2, start) for name, start in side.items()} for side in (train, infer)]
    found = both(tmp_path, *sides, config)
    assert (verdicts(found), found.verdict) == (wanted, overall)
    problems = [problem.kind for _side, problem in found.opened.problems]
    assert problems == (["tie-conflict"] * 2 if "text_config" in config else [])


def test_an_alias_is_compared_once_and_told(tmp_path):
    weight = matrix(4, 2)
    inventory(tmp_path / "train", [(entry("a.w", weight), weight), (entry("a.same", weight, alias_of="a.w"), weight)])
    save(tmp_path / "infer/model.safetensors", {"a.w": weight})
    found = report(tmp_path / "train", tmp_path / "infer")
    assert (verdicts(found), found.verdict) == ({"a.w": "EXACT"}, "EXACT")
    assert found.as_json()["ignored"]["train"] == {"a.same": "the same memory as a.w"}
    save(tmp_path / "infer/model.safetensors", {"a.w": weight, "a.same": with_bytes(weight, 0, b"\1")})
    assert verdicts(report(tmp_path / "train", tmp_path / "infer")) == {"a.w": "EXACT", "a.same": "DIFF"}


def test_hashes_alone_tell_equal_or_not(tmp_path):
    one, other = matrix(4, 2), matrix(4, 2, 1)
    inventory(tmp_path / "train", [(entry("a", one), one), (entry("b", one), one)], data=False)
    inventory(tmp_path / "infer", [(entry("a", one), one), (entry("b", other), other)], data=False)
    save(tmp_path / "file/model.safetensors", {"a": one, "b": other})
    for infer in ("infer", "file"):
        found = report(tmp_path / "train", tmp_path / infer)
        assert verdicts(found) == {"a": "EXACT", "b": "DIFF"}
        assert found.missing("train") == []
    unknown = [(entry("a", one, sha256=None), one)]
    inventory(tmp_path / "train", unknown, data=False)
    save(tmp_path / "file/model.safetensors", {"a": one})
    assert verdicts(report(tmp_path / "train", tmp_path / "file")) == {"a": "UNSUPPORTED"}


def test_what_the_engine_freed_is_named(tmp_path):
    inventory(tmp_path / "train", [(entry("a", ("F32", [0], b"")), ("F32", [0], b""))])
    save(tmp_path / "infer/model.safetensors", {"a": matrix(2, 2)})
    found = report(tmp_path / "train", tmp_path / "infer")
    assert (verdicts(found), found.verdict) == ({"a": "UNSUPPORTED"}, "NOTHING_COMPARED")
    assert "freed" in finding(found, "a").note


def test_nothing_in_common_is_a_failure(tmp_path):
    found = both(tmp_path, {"a": f32(1)}, {"b": f32(1)})
    assert (found.verdict, found.compared) == ("NOTHING_COMPARED", 0)
    assert (found.missing("train"), found.missing("infer")) == (["a"], ["b"])
    assert both(tmp_path, {}, {}).verdict == "NOTHING_COMPARED"


@pytest.mark.parametrize("plain", [True, False])
def test_the_first_difference_and_the_largest(tmp_path, monkeypatch, plain):
    if plain:
        monkeypatch.setattr(difference.by_numpy, "np", None)
    elif difference.by_numpy.np is None:
        pytest.skip("no numpy")
    rows = 3 * CHUNK // 4 // 64 + 5  # F32 rows of 64 elements: three chunks and a bit
    train = ("F32", [rows, 64], bytes(rows * 256))
    last = rows * 256 - 4
    infer = with_bytes(with_bytes(train, CHUNK + 8, struct.pack("<f", -2.5)), last, struct.pack("<f", 4))
    found = finding(both(tmp_path, {"w": train}, {"w": infer}), "w").difference
    assert found["first_index"] == [CHUNK // 256, 2]
    assert (found["differing"], found["max_abs"], found["complete"], found["values"]) == (2, 4.0, True, "differ")
    infer = with_bytes(infer, last, struct.pack("<f", float("inf")))
    found = finding(both(tmp_path, {"w": train}, {"w": infer}), "w").difference
    assert (found["not_finite"], found["max_abs"]) == (1, 2.5)


def test_plain_python_stops_counting_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(difference.by_numpy, "np", None)
    monkeypatch.setattr(difference, "BUDGET", 10)
    zeros, ones = ("BF16", [1000, 512], bytes(1_024_000)), ("BF16", [1000, 512], b"\x80\x3f" * 512_000)
    found = finding(both(tmp_path, {"w": zeros}, {"w": ones}), "w").difference
    assert (found["complete"], found["max_abs"], found["values"]) == (False, 1.0, "differ")
    assert 10 <= found["differing"] < 512_000


@pytest.mark.parametrize("numpy", [True, False])
@pytest.mark.parametrize(
    ("a", "b", "note"),
    [
        (f32(1, 2.5), bf16(1, 2.5), "values equal"),
        (f32(1.0000001, 2.5), bf16(1, 2.5), "values equal after the cast"),
        (f32(1.0000001, float("nan")), bf16(1, 0), "values differ, too"),
        (("F32", [1], bytes.fromhex("ffffffff")), bf16(0), "values differ, too"),
        (("F32", [1], bytes.fromhex("ffffff7f")), bf16(-0.0), "values differ, too"),
        (f32(1.5, 2), ("F16", [2], struct.pack("<2e", 1.5, 2)), "values equal"),
        (f32(1.0001, 2), ("F16", [2], struct.pack("<2e", 1.0001, 2)), "values equal after the cast"),
        (f32(70000, 2), ("F16", [2], struct.pack("<2e", 1.5, 2)), "values differ, too"),
        (("F64", [1], struct.pack("<d", 0.1)), f32(0.1), "values equal after the cast"),
        (("I64", [2], struct.pack("<2q", 3, 4)), ("I32", [2], struct.pack("<2i", 3, 4)), "values equal"),
        (f32(1, 3), bf16(1, 2), "values differ, too"),
    ],
)
def test_other_dtypes(tmp_path, monkeypatch, a, b, note, numpy):
    if not numpy:
        monkeypatch.setattr(difference.by_numpy, "np", None)
    for train, infer in ((a, b), (b, a)):
        found = finding(both(tmp_path, {"w": train}, {"w": infer}), "w")
        assert (found.verdict, found.note) == ("DTYPE_DIFF", note)


def test_quantised_weights_without_a_rule(tmp_path):
    gptq = {"l.qweight": ("I32", [1, 2], bytes(8)), "l.scales": f32(1)}
    found = both(tmp_path, {"l.weight": bf16(1, 2)}, gptq)
    assert verdicts(found)["l.weight"] == "QUANTIZED"
    blocks = {"w": ("F8_E4M3", [2, 2], b"\x38" * 4), "w_scale_inv": f32(1, 1, shape=[2, 1])}
    found = both(tmp_path, {"w": bf16(1, 1, 1, 1, shape=[2, 2])}, blocks)
    assert finding(found, "w").note == "it needs to be dequantised; not computed"
    off = {"w": ("F8_E4M3", [2], b"\x38\x38"), "w_scale": f32(0.5)}
    assert "by 0.5 at most" in finding(both(tmp_path, {"w": bf16(1, 0.5)}, off), "w").note
