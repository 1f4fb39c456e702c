"""Hostile and broken files: one clear line each, and nothing believed."""

from __future__ import annotations

import json
import os
import struct

import pytest

from stages.params_tensors.header import LARGEST, read_header
from stages.params_tensors.tensors import TensorFileError
from tests.stages.params_tensors.made import f32, save, save_raw


def entry(begin, end, dtype="F32", shape=(1,)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def test_a_good_file(tmp_path):
    path = save(
        tmp_path / "a.safetensors", {"a": f32(1, 2), "empty": ("F32", [0, 3], b""), "scalar": ("BF16", [], b"\0\0")}
    )
    found = read_header(path)
    assert {name: (leaf.dtype, leaf.shape, leaf.length) for name, leaf in found.items()} == {
        "a": ("F32", (2,), 8),
        "empty": ("F32", (0, 3), 0),
        "scalar": ("BF16", (), 2),
    }
    raw = path.read_bytes()
    assert raw[found["a"].offset :][:8] == struct.pack("<2f", 1, 2)


@pytest.mark.parametrize(
    ("head", "blob", "said"),
    [
        (b"[]", b"", "no table"),
        (b"{", b"", "no valid JSON"),
        (b"\xff\xfe", b"", "no valid JSON"),
        (b"[" * 100_000, b"", "no valid JSON"),
        (b'{"a": NaN}', b"", "no valid JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", b"", "no valid JSON"),
        (json.dumps({"a": entry(0, 4)})[:-1].encode() + b', "a": {}}', bytes(4), "stands twice"),
        (json.dumps({"a": entry(0, 4), "b": entry(2, 6)}).encode(), bytes(6), "overlap"),
        (json.dumps({"a": entry(0, 4), "b": entry(0, 4)}).encode(), bytes(4), "overlap"),
        (json.dumps({"a": entry(0, 4), "b": entry(8, 12)}).encode(), bytes(12), "belong to no tensor"),
        (json.dumps({"a": entry(0, 4)}).encode(), bytes(3), "cut off"),
        (json.dumps({"a": entry(0, 4)}).encode(), bytes(5), "longer than its header says"),
        (json.dumps({"a": entry(0, 8)}).encode(), bytes(8), "has 8 bytes"),
        (json.dumps({"a": entry(4, 0)}).encode(), bytes(4), "has -4 bytes"),
        (json.dumps({"a": entry(-4, 0)}).encode(), bytes(4), "no valid dtype"),
        (json.dumps({"a": entry(0, 4, shape=[True])}).encode(), bytes(4), "no valid dtype"),
        (json.dumps({"a": entry(0, 4, shape=[1.0])}).encode(), bytes(4), "no valid dtype"),
        (json.dumps({"a": entry(0, 4, shape=[1] * 17)}).encode(), bytes(4), "no valid dtype"),
        (json.dumps({"a": entry(0, 4, shape=[1 << 60])}).encode(), bytes(4), "no valid dtype"),
        (json.dumps({"a": entry(0, 4, dtype=7)}).encode(), bytes(4), "no valid dtype"),
        (b'{"a": 3}', b"", "no valid dtype"),
    ],
)
def test_a_bad_header(tmp_path, head, blob, said):
    with pytest.raises(TensorFileError) as error:
        read_header(save_raw(tmp_path / "a.safetensors", head, blob))
    assert said in f"{error.value.what} {error.value.why}"
    assert error.value.exit_code == 4


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "cut off: 0 bytes"),
        (b"\0" * 7, "cut off: 7 bytes"),
        (struct.pack("<Q", 1 << 62) + b"{}", "the header claims"),
        (struct.pack("<Q", LARGEST + 1), "the header claims"),
        (struct.pack("<Q", 100) + b"{}", "its header alone"),
    ],
)
def test_a_length_that_is_a_lie(tmp_path, raw, said):
    path = tmp_path / "a.safetensors"
    path.write_bytes(raw)
    with pytest.raises(TensorFileError, match=said):
        read_header(path)


def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.safetensors")
    (tmp_path / "folder.safetensors").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(TensorFileError, match="no regular file"):
            read_header(tmp_path / f"{name}.safetensors")
    with pytest.raises(TensorFileError, match="cannot be read"):
        read_header(tmp_path / "nowhere.safetensors")


def test_an_unknown_dtype_is_kept_to_be_named(tmp_path):
    path = save(tmp_path / "a.safetensors", {"odd": ("F3_NEW", [5], b"\1\2"), "four": ("F4", [2], b"\x12")})
    assert [leaf.dtype for leaf in read_header(path).values()] == ["F3_NEW", "F4"]


def test_a_name_that_goes_on_and_on(tmp_path):
    path = save(tmp_path / "long.safetensors", {"a" * 1001: f32(1)})
    with pytest.raises(TensorFileError, match="too long a name"):
        read_header(path or tmp_path / "long.safetensors")
