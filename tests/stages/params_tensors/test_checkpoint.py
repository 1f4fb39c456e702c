"""Sets of files: every fault is a finding of its own, and a partial set is never taken for the whole."""

from __future__ import annotations

import json
import os

import pytest

from stages.params_tensors.checkpoint import read_folder
from stages.params_tensors.tensors import NoTensorsError, TensorFileError
from tests.stages.params_tensors.comparing import report, verdicts
from tests.stages.params_tensors.made import f32, save


def index(folder, weight_map, **metadata):
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": metadata, "weight_map": weight_map}))


@pytest.fixture
def faulty(tmp_path):
    """Five tensors in an index of three shards, one of which is not there; a file beside it, and a way out of the folder."""
    folder = tmp_path / "ckpt"
    one, three = "model-00001-of-00003.safetensors", "model-00003-of-00003.safetensors"
    save(folder / one, {"a.weight": f32(1, 2), "b.weight": f32(1, 2)})
    save(folder / three, {"e.weight": f32(1, 2)})
    save(folder / "model.safetensors", {"a.weight": f32(1, 2)})
    save(tmp_path / "other.safetensors", {"f.weight": f32(1, 2)})
    where = {
        "a": one,
        "b": one,
        "c": "model-00002-of-00003.safetensors",
        "d": three,
        "e": three,
        "f": "../other.safetensors",
    }
    index(folder, {f"{name}.weight": file for name, file in where.items()}, total_size=40)
    return folder


def test_every_fault_of_a_set_is_named(faulty):
    side = read_folder(faulty)
    found = {(one.kind, one.file, one.tensors, one.fatal) for one in side.problems}
    assert found == {
        ("shard-missing", "model-00002-of-00003.safetensors", ("c.weight",), True),
        ("tensor-missing", "model-00003-of-00003.safetensors", ("d.weight",), True),
        ("outside", "../other.safetensors", ("f.weight",), True),
        ("file-ignored", "model.safetensors", (), False),
        ("total-size", "model.safetensors.index.json", (), False),
    }
    assert set(side.leaves) == {"a.weight", "b.weight", "e.weight"}


def test_a_partial_set_is_never_exact(faulty):
    found = report(faulty, faulty)
    assert verdicts(found) == {"a.weight": "EXACT", "b.weight": "EXACT", "e.weight": "EXACT"}
    assert found.verdict == "MISMATCH"


@pytest.mark.parametrize(
    "file", ["/etc/x.safetensors", "a/../../x.safetensors", "..\\x.safetensors", "", "x.bin", "a\0.safetensors"]
)
def test_an_index_leads_nowhere_else(tmp_path, file):
    index(tmp_path, {"a": file})
    assert [one.kind for one in read_folder(tmp_path).problems] == ["outside"]


def test_a_cache_of_links_is_a_checkpoint(tmp_path):
    save(tmp_path / "blobs/123", {"a": f32(1)})
    (tmp_path / "snapshot").mkdir()
    os.symlink("../blobs/123", tmp_path / "snapshot/model-1.safetensors")
    index(tmp_path / "snapshot", {"a": "model-1.safetensors"})
    assert read_folder(tmp_path / "snapshot").problems == ()


def test_a_broken_shard_is_a_problem_of_the_set(tmp_path):
    save(tmp_path / "model-1.safetensors", {"a": f32(1)})
    (tmp_path / "model-2.safetensors").write_bytes(b"version https://git-lfs")
    index(tmp_path, {"a": "model-1.safetensors", "b": "model-2.safetensors"})
    (problem,) = read_folder(tmp_path).problems
    assert (problem.kind, problem.file, problem.tensors) == ("broken", "model-2.safetensors", ("b",))


def test_a_tensor_that_the_index_puts_elsewhere(tmp_path):
    save(tmp_path / "1.safetensors", {"a": f32(1), "b": f32(2)})
    save(tmp_path / "2.safetensors", {"b": f32(2)})
    index(tmp_path, {"a": "1.safetensors", "b": "2.safetensors"})
    (problem,) = read_folder(tmp_path).problems
    assert (problem.kind, problem.tensors) == ("not-in-index", ("b",))


def test_files_without_an_index(tmp_path):
    save(tmp_path / "1.safetensors", {"a": f32(1), "b": f32(2)})
    save(tmp_path / "2.safetensors", {"b": f32(2), "c": f32(3)})
    side = read_folder(tmp_path)
    assert set(side.leaves) == {"a", "b", "c"}
    assert [(one.kind, one.fatal) for one in side.problems] == [("duplicate", True), ("no-index", False)]


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"weight_map": []}', '{"weight_map": {"a": 1}}', '{"weight_map": {"a": "x", "a": "y"}}', "{"]
)
def test_an_index_that_is_none(tmp_path, text):
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(TensorFileError):
        read_folder(tmp_path)


def test_an_empty_folder(tmp_path):
    with pytest.raises(NoTensorsError):
        read_folder(tmp_path)


def test_an_index_that_cannot_be_read_is_not_passed_over(tmp_path):
    save(tmp_path / "model.safetensors", {"a.weight": f32(1, 2)})
    (tmp_path / "model.safetensors.index.json").symlink_to("model.safetensors.index.json")
    with pytest.raises(TensorFileError, match="no regular file"):
        read_folder(tmp_path)


@pytest.mark.parametrize("name", ["l.safetensors", "x" * 5000 + ".safetensors", "d.safetensors", "p.safetensors"])
def test_a_shard_that_is_no_file(tmp_path, name):
    save(tmp_path / "c" / "one.safetensors", {"a.weight": f32(1, 2)})
    (tmp_path / "c/l.safetensors").symlink_to("l.safetensors")
    (tmp_path / "c/d.safetensors").mkdir()
    os.mkfifo(tmp_path / "c/p.safetensors")
    index(tmp_path / "c", {"a.weight": "one.safetensors", "b.weight": name})
    found = report(tmp_path / "c", tmp_path / "c")
    assert found.verdict == "MISMATCH"
    assert ("shard-missing", ("b.weight",)) in {(one.kind, one.tensors) for one in read_folder(tmp_path / "c").problems}
    json.dumps(found.as_json(), allow_nan=False)


def test_a_folder_whose_files_cannot_be_read_has_a_report(tmp_path):
    (tmp_path / "model.safetensors").symlink_to("model.safetensors")
    found = report(tmp_path, tmp_path)
    assert found.verdict != "EXACT"
    assert found.as_json()["sides"]["train"]["files"][0]["bytes"] is None
