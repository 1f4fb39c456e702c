"""A model's folder: each fault of an index and its shards by name."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from stages.preflight.finding import OK, PROBLEM, UNKNOWN, Finding
from stages.preflight.probes.weights import INDEX, probe
from stages.preflight.weights import check
from tests.stages.preflight.conftest import CONFIG, safetensors


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def told(folder: Path) -> tuple[Finding, dict]:
    answer = probe({"path": str(folder)})
    (found,) = check({"train": answer})
    return found, answer


def sharded(folder: Path, **more: str) -> dict[str, str]:
    """Two shards; ``more``: entries of the index beside what they hold."""
    names = {}
    for number in (1, 2):
        file = f"model-0000{number}-of-00002.safetensors"
        safetensors(folder / file, [f"t{number}.a", f"t{number}.b"])
        names |= {f"t{number}.a": file, f"t{number}.b": file}
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 32}, "weight_map": {**names, **more}}))
    return names


def test_a_whole_checkpoint(folder):
    sharded(folder)
    found, answer = told(folder)
    assert (found.state, found.facts["files"], found.facts["bytes"], found.facts["notes"]) == (OK, 2, 32, [])
    assert answer["config"]["hidden_size"] == 8


def test_every_fault_of_an_index_is_its_own(folder):
    """Listed in a file that is not there, not in the file that should hold it, outside of the folder; a file that nobody lists."""
    sharded(
        folder,
        c="model-00003-of-00003.safetensors",
        d="model-00002-of-00002.safetensors",
        f="../other.safetensors",
    )
    safetensors(folder / "model.safetensors", ["t1.a"])
    found, _answer = told(folder)
    assert found.state == PROBLEM
    assert [(one["kind"], one["file"], one["detail"]) for one in found.facts["faults"]] == [
        ("outside", "../other.safetensors", "f"),
        ("absent", "model-00002-of-00002.safetensors", "d"),
        ("missing", "model-00003-of-00003.safetensors", "c"),
    ]
    assert [(one["kind"], one["file"]) for one in found.facts["notes"]] == [("stray", "model.safetensors")]
    assert "model-00003-of-00003.safetensors is missing (c)" in found.what


def test_notes_do_not_fail(folder):
    sharded(folder)
    safetensors(folder / "model-00001-of-00002.safetensors", ["t1.a", "t1.b", "more"])
    index = json.loads((folder / INDEX).read_text())
    (folder / INDEX).write_text(json.dumps({**index, "metadata": {"total_size": 9}}))
    found, _answer = told(folder)
    assert found.state == OK
    assert [one["kind"] for one in found.facts["notes"]] == ["unlisted", "total"]


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("size", None),  # cut short
        ("damaged", b""),
        ("damaged", b"\xff" * 64),
        ("damaged", b"\x02\0\0\0\0\0\0\0[]"),
        ("damaged", b"\x0b\0\0\0\0\0\0\0" + b'{"a": null}'),
        ("pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"),
    ],
)
def test_a_file_that_is_not_whole(folder, kind, content):
    file = folder / "model.safetensors"
    safetensors(file, ["a", "b"])
    file.write_bytes(file.read_bytes()[:-3] if content is None else content)
    found, _answer = told(folder)
    assert (found.state, [one["kind"] for one in found.facts["faults"]]) == (PROBLEM, [kind])


def test_folders_that_hold_no_model(folder, tmp_path):
    found, _answer = told(folder)
    assert [one["kind"] for one in found.facts["faults"]] == ["no-weights"]
    safetensors(folder / "a.safetensors", ["a"])
    safetensors(folder / "b.safetensors", ["b"])
    assert [one["kind"] for one in told(folder)[0].facts["faults"]] == ["no-index"]
    (folder / "config.json").unlink()
    assert "unreadable" in [one["kind"] for one in told(folder)[0].facts["faults"]]
    for text in ("{", "[]", "null", "[" * 100_000):
        (folder / "config.json").write_text(text)
        assert "no-json" in [one["kind"] for one in told(folder)[0].facts["faults"]]
    (folder / INDEX).write_text('{"weight_map": {"a": 3}}')
    assert "no-map" in [one["kind"] for one in told(folder)[0].facts["faults"]]
    (missing,) = check({"infer": probe({"path": str(tmp_path / "nowhere")})})
    assert (missing.state, missing.place) == (PROBLEM, "infer")


def test_pickled_weights_are_not_opened(folder):
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n")
    found, answer = told(folder)
    assert (found.state, answer["bytes"]) == (UNKNOWN, 11)
    os.truncate(folder / "pytorch_model.bin", 0)
    assert told(folder)[0].state == PROBLEM


def test_two_sides_with_two_checkpoints(folder, tmp_path):
    sharded(folder)
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text(json.dumps({**CONFIG, "hidden_size": 16}))
    safetensors(other / "model.safetensors", ["a"])
    found = check({"train": probe({"path": str(folder)}), "infer": probe({"path": str(other)})})
    assert [one.state for one in found] == [OK, OK, PROBLEM, PROBLEM]
    assert "config.json is not the same file" in found[2].what
