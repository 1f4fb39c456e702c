"""dump.json, whole, cut, broken and hostile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.dumps import reading, streaming
from stages.dumps.outline import outline, outlines
from stages.dumps.problem import ERROR, NOTE, WARNING
from stages.dumps.reading import read_dump
from tests.stages.dumps.synthetic import HEADER, Model, text, write_dump, write_ranks, write_text

WHOLE = text(Model(2).entries(7))


def put(tmp_path, written) -> Path:
    return write_text(tmp_path / "step0" / "rank0", written)


def told(problems) -> list[tuple[str, str]]:
    return [(one.name, one.level) for one in problems]


@pytest.mark.parametrize("chunk", [1, 7, 64, 1 << 22])
def test_it_is_what_json_load_says(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(streaming, "CHUNK", chunk)
    source = reading.Source(put(tmp_path, WHOLE))
    assert dict(source.entries()) == json.loads(WHOLE)["data"]
    assert source.problems == []
    assert source.head == {"task": "tensor", "level": "L0", "framework": "pytorch"}


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=8),
        st.dictionaries(
            st.text(max_size=5),
            st.recursive(
                st.none()
                | st.booleans()
                | st.integers()
                | st.floats(allow_nan=False, allow_infinity=False)
                | st.text(),
                lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
                max_leaves=6,
            ),
            max_size=4,
        ),
        max_size=6,
    ),
    st.sampled_from([None, 1]),
    st.booleans(),
    st.integers(1, 40),
)
def test_any_object_comes_out_as_it_went_in(tmp_path_factory, data, indent, ascii_only, chunk):
    path = tmp_path_factory.mktemp("any") / "dump.json"
    path.write_text(json.dumps({"data": data, "more": 12}, indent=indent, ensure_ascii=ascii_only), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streaming, "CHUNK", chunk)
        source = reading.Source(path)
        assert dict(source.entries()) == data
    assert [one for one in source.problems if one.name != "never-flushed"] == []


@pytest.mark.parametrize("end", range(len(HEADER), len(WHOLE) - 1, 997))
def test_what_was_read_before_the_end_is_kept(tmp_path, end):
    path = put(tmp_path, WHOLE[:end])
    os.utime(path, (0, 0))
    dump = read_dump(path)
    whole = json.loads(WHOLE)["data"]
    assert [one.name for one in dump.entries] == list(whole)[: len(dump.entries)]
    assert told(dump.problems) == [("truncated-json", ERROR)]
    assert "killed" in dump.problems[0].todo


def test_a_file_that_is_being_written_is_worth_a_second_look(tmp_path):
    assert "wait" in read_dump(put(tmp_path, WHOLE[:-5])).problems[0].todo


NESTED = '{"data": {"Module.a.A.forward.0": ' + "[" * 100_000 + "]" * 100_000 + "}}"
FIRST = '{"task": "tensor", "data": {"Module.a.A.forward.0": {}, '


@pytest.mark.parametrize(
    ("written", "names", "entries"),
    [
        (b"", ["empty-file"], 0),
        (b"\x80\x02}q\x00.", ["broken-json"], 0),
        (b"PK\x03\x04" + bytes(range(256)) * 40, ["broken-json"], 0),
        (b"\xef\xbb\xbf" + WHOLE.encode(), ["broken-json"], 0),
        (b"[1, 2]", ["broken-json"], 0),
        (b"null", ["broken-json"], 0),
        (b" \n ", ["truncated-json"], 0),
        (b"{}", ["not-a-dump"], 0),
        (b'{"data": []}', ["not-a-dump"], 0),
        (b'{"data": 3, "task": {"a": 1}}', ["not-a-dump"], 0),
        (HEADER.encode(), ["never-flushed"], 0),
        (NESTED.encode(), ["broken-json"], 0),
        ((FIRST + '"x": tru}}').encode(), ["broken-json"], 1),
        ((FIRST + '"x" 1}}').encode(), ["broken-json"], 1),
        ((FIRST + '"x": {} "y": {}}}').encode(), ["broken-json"], 2),
        ((FIRST + "}}").encode(), ["broken-json"], 1),
        ((FIRST + '"x": ' + "9" * 5000 + "}}").encode(), ["broken-json"], 1),
        ((FIRST + '"\xff').encode("latin-1"), ["broken-json"], 0),
        ((WHOLE + "{}").encode(), ["broken-json"], 28),
        ((FIRST + '"Module.a.A.forward.0": {"output": []}}}').encode(), ["duplicate-entry"], 1),
        ((FIRST + '"b": 1}, "data": {"c": {}}}').encode(), ["duplicate-entry"], 1),
    ],
)
def test_what_is_no_dump_is_told_in_one_line(tmp_path, written, names, entries):
    dump = read_dump(put(tmp_path, written))
    assert [one.name for one in dump.problems] == names
    assert len(dump.entries) == entries
    assert outline(dump.path).entries == entries
    for one in dump.problems:
        assert "\n" not in one.what and len(one.what) < 400


def test_what_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder" / "dump.json").mkdir(parents=True)
    for path in (tmp_path / "pipe", tmp_path / "folder", tmp_path / "missing", Path("/dev/zero")):
        assert told(read_dump(path).problems) == [("unreadable", ERROR)]


def test_a_file_without_permission_is_told(tmp_path, monkeypatch):
    """Tests may run as root, to whom nothing is forbidden."""
    path = put(tmp_path, WHOLE)

    def refuse(*_arguments, **_more):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(streaming.os, "open", refuse)
    dump = read_dump(path)
    assert told(dump.problems) == [("unreadable", ERROR)]
    assert "Permission denied" in dump.problems[0].what


def test_huge_ones_are_refused_unread(tmp_path, monkeypatch):
    path = put(tmp_path, WHOLE)
    os.truncate(path, reading.LARGEST_FILE + 1)  # a hole, no bytes on the disk
    assert told(read_dump(path).problems) == [("too-large", ERROR)]
    monkeypatch.setattr(streaming, "LARGEST", 1000)
    monkeypatch.setattr(streaming, "CHUNK", 100)
    long = put(tmp_path / "long", FIRST + '"x": "' + "a" * 10_000 + '"}}')
    assert told(read_dump(long).problems) == [("too-large", ERROR)]
    monkeypatch.setattr(reading, "MOST_ENTRIES", 5)
    assert told(read_dump(put(tmp_path / "many", WHOLE)).problems) == [("too-large", ERROR)]


def number(entry: str, key: str, value: str, group: str = "output") -> str:
    tensor = f'{{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "{key}": {value}}}'
    inside = f'{{"attention_mask": {tensor}}}' if group == "input_kwargs" else f"[{tensor}]"
    return f'{{"data": {{"{entry}": {{"{group}": {inside}}}}}}}'


@pytest.mark.parametrize(
    ("written", "level", "said"),
    [
        (number("Module.a.A.forward.0", "Max", "NaN"), WARNING, "Module.a.A.forward.0.output.0.Max"),
        (number("Module.a.A.forward.0", "Max", "Infinity"), WARNING, "Module.a.A.forward.0.output.0.Max"),
        (number("Torch.where.0.forward", "Mean", "NaN"), WARNING, "Torch.where.0.forward.output.0.Mean"),
        (number("Torch.where.0.forward", "Mean", "-Infinity"), NOTE, "masks"),
        (number("Module.a.A.forward.0", "Mean", "-Infinity", "input_kwargs"), NOTE, "masks"),
        (number("Module.a.A.forward.0", "Mean", "NaN", "input_kwargs"), WARNING, "attention_mask.Mean"),
    ],
)
def test_nan_and_infinity_are_told_with_their_place(tmp_path, written, level, said):
    dump = read_dump(put(tmp_path, written))
    assert told(dump.problems) == [("nan-in-json", level)]
    assert said in dump.problems[0].what
    assert len(dump.entries) == 1


def test_names_and_shapes_that_lie(tmp_path):
    entries = {
        "Module.model.embed_tokens.Embedding.forward.0": {
            "input_args": [{"dtype": "torch.int64", "shape": [-1, True]}]
        },
        "Module.model.layers.99999999999.L.forward.0": {"output": "text"},
        "Module..\x1b[31m.forward.0": {"input_args": {"a": [[[{"dtype": 5, "shape": {"x": 1}}]]]}},
        "Module": {},
    }
    path = put(tmp_path, json.dumps({"data": entries}))
    assert outline(path).heads == ()
    assert [one.inputs for one in read_dump(path).entries] == [(), (), (), ()]


def test_nested_tensors_have_the_names_of_their_files(tmp_path):
    tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1, 3, 4]}
    entry = {
        "input_args": [None, tensor, [tensor, {"type": "bool", "value": True}]],
        "input_kwargs": {"position_embeddings": [tensor, tensor], "use_cache": None},
        "output": [{"last_hidden_state": tensor}],
        "parameters": {"weight": tensor},
    }
    (one,) = read_dump(put(tmp_path, json.dumps({"data": {"Module.a.A.forward.0": entry}}))).entries
    assert [tensor.name for tensor in one.tensors] == [
        "input.1",
        "input.2.0",
        "kwargs.position_embeddings.0",
        "kwargs.position_embeddings.1",
        "output.0.last_hidden_state",
        "parameters.weight",
    ]
    assert list(one.kwargs) == ["position_embeddings.0", "position_embeddings.1"]


def test_processes_give_what_one_process_gives(tmp_path, monkeypatch):
    files = write_ranks(tmp_path, Model(3), 19, 3)
    one_by_one = list(outlines(files, processes=1))
    monkeypatch.setattr("stages.dumps.outline._SEVERAL", 0)
    assert list(outlines(files, processes=2)) == one_by_one
    assert [one.path for one in one_by_one] == files
    assert {one.heads[0].rows for one in one_by_one} == {19}
    assert {len(one.main[1]) for one in one_by_one} == {3}


SCRIPT = """
import resource, sys
from pathlib import Path
from stages.dumps.outline import outline
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
entries = outline(Path(sys.argv[1])).entries
print(entries, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_does_not_grow_with_the_file(tmp_path):
    """60 MB of entries, each 60 kB: read within the window, in a process of its own."""
    path = tmp_path / "dump.json"
    tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1, 190, 4096]}
    entry = json.dumps({"output": [tensor] * 800})
    with path.open("w") as file:
        file.write('{"data": {')
        file.write(", ".join(f'"Module.model.layers.{at}.A.forward.0": {entry}' for at in range(1000)))
        file.write("}}")
    assert path.stat().st_size > 50e6
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    entries, grown = map(int, done.stdout.split())
    assert entries == 1000
    assert grown < 40_000  # KiB


def test_a_dump_of_both_kinds_of_names(tmp_path):
    train = outline(write_dump(tmp_path / "train" / "step0" / "rank0", Model(2), 11))
    infer = outline(write_dump(tmp_path / "infer" / "step0" / "rank0", Model(2, fused=True), 11))
    assert (train.heads[0].shape, infer.heads[0].shape) == ((1, 11), (11,))
    assert train.heads[0].rows == infer.heads[0].rows == 11
    assert train.stacks.keys() == infer.stacks.keys()
