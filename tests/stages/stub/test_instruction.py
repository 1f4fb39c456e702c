"""What an instruction may hold: our own check and the published schema say the same; bombs get one line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import jsonschema
import pytest

import stages.stub
from codemods.errors import UsageError
from stages.stub.form import problems
from stages.stub.instruction import StubInstructionError, read_instruction
from stages.stub.rules import NAMES
from stages.stub.schema import instruction_schema
from tests.cli.test_commands import answer
from tests.cli.test_shell import ROOT, run
from tests.stages.stub.made import TRAIN, instruction, module

EXAMPLE = Path(stages.stub.__file__).with_name("stub_instruction.example.json")


def test_the_example_is_valid_and_the_schema_is_published():
    found = read_instruction(EXAMPLE)
    assert (found.round, found.target_side, found.source_round, found.step) == (1, "train", 0, None)
    assert len(found.entries) == len(found.modules) == 3
    published = json.loads((ROOT / "docs/schemas/stub-instruction.json").read_text())
    assert published == instruction_schema()
    jsonschema.Draft202012Validator.check_schema(published)
    jsonschema.validate(found.data, published)
    assert json.loads(run("stub", "schema").stdout) == published
    assert json.loads(run("stub", "schema", "--example", "--json").stdout) == found.data


def test_every_rule_has_a_form_and_a_sentence():
    forms = instruction_schema()["properties"]["modules"]["items"]["properties"]["transform"]["items"]["oneOf"]
    assert [one["properties"]["rule"]["const"] for one in forms] == list(NAMES)
    assert all(one["description"] for one in forms)
    files = {path.stem for path in (Path(stages.stub.__file__).parent / "rules").glob("*.py")}
    assert files == {"__init__", *NAMES}


QKV = {"rule": "split_qkv", "part": "q", "layout": "contiguous", "q_heads": 4, "kv_heads": 2, "head_dim": 16}
WRONG = {
    "no round": {"round": None},
    "round 0": {"round": 0},
    "round true": {"round": True},
    "round 1.0": {"round": 1.5},
    "a side that is none": {"target_side": "both"},
    "an unknown key": {"target": "train"},
    "dump_after_load as text": {"dump_after_load": "yes"},
    "no modules": {"modules": []},
    "modules as an object": {"modules": {}},
    "a boundary with a line break": {"isolate_boundary": "a\nb"},
    "no transform": {"modules": [module(transform=None)]},
    "a rule that is none": {"modules": [module(transform=[{"rule": "renam"}])]},
    "a rule without its key": {"modules": [module(transform=[{"rule": "slice"}])]},
    "a rule with another's key": {"modules": [module(transform=[{"rule": "rename", "axis": 0}])]},
    "a rule's key of another kind": {"modules": [module(transform=[{**QKV, "q_heads": "4"}])]},
    "a layout that is none": {"modules": [module(transform=[{**QKV, "layout": "megatron"}])]},
    "33 rules": {"modules": [module(transform=[{"rule": "rename"}] * 33)]},
    "an axis beyond all": {"modules": [module(transform=[{"rule": "concat", "axis": 9}])]},
    "backward": {"modules": [module(target=TRAIN.replace("forward", "backward"))]},
    "no Module.": {"modules": [module(target=TRAIN.removeprefix("Module."))]},
    "no number": {"modules": [module(target=TRAIN.removesuffix(".0"))]},
    "a path in the entry": {"modules": [module(target="Module.../../x.Y.forward.0")]},
    "an output": {"modules": [module(argument="output.0")]},
    "a tensor in a tuple": {"modules": [module(argument="kwargs.position_embeddings.0")]},
    "no .pt file": {"modules": [module(source="step0/rank0/dump.json")]},
    "no source": {"modules": [module(source=[])]},
    "a negative rank": {"modules": [module(rank=-1)]},
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_refused_by_us_and_by_the_schema(tmp_path, what):
    path = instruction(tmp_path / "i.json", **WRONG[what])
    with pytest.raises(StubInstructionError):
        read_instruction(path)
    data = json.loads(path.read_text())
    assert list(problems(instruction_schema(), data))
    assert not jsonschema.Draft202012Validator(instruction_schema()).is_valid(data)


CONTRADICTING = {
    "one side with itself": ({"source_side": "train"}, "the same side"),
    "a source from the future": ({"source_round": 1}, "source_round"),
    "the same twice": ({"modules": [module(), module()]}, "stands twice"),
    "two tensors left": ({"modules": [module(source=["a.pt", "b.pt"], transform=[])]}, "2 tensors, not one"),
    "q, k and no v": (
        {"modules": [module(source=["a.pt", "b.pt"], transform=[{**QKV, "rule": "fuse_qkv"}])]},
        "part",
    ),
}
CONTRADICTING["q, k and no v"][0]["modules"][0]["transform"][0].pop("part")


@pytest.mark.parametrize("what", CONTRADICTING)
def test_what_contradicts_itself_is_refused(tmp_path, what):
    changes, word = CONTRADICTING[what]
    with pytest.raises(StubInstructionError) as error:
        read_instruction(instruction(tmp_path / "i.json", **changes))
    text = " ".join([error.value.what, *error.value.details])
    assert word in text or "makes one of 3 tensors, and there are 2" in text


def test_a_near_name_is_offered(tmp_path):
    for changes, near in (
        ({"modules": [module(transform=[{"rule": "split_qvk"}])]}, "split_qkv"),
        ({"isolate_boundry": "x"}, "isolate_boundary"),
    ):
        with pytest.raises(StubInstructionError, match=near):
            read_instruction(instruction(tmp_path / "i.json", **changes))


BOMBS = {
    "deep": b'{"round":' + b"[" * 200_000,
    "no JSON": b"{'round': 1}",
    "cut": b'{"round": 1',
    "NaN": b'{"round": NaN}',
    "twice": b'{"round": 1, "round": 2}',
    "digits": b'{"round": ' + b"9" * 100_000 + b"}",
    "not UTF-8": b'{"round": "\xff"}',
    "a list": b"[]",
    "empty": b"",
    "large": b" " * (5 << 20),
}


@pytest.mark.parametrize("what", BOMBS)
def test_bombs_get_one_line(tmp_path, what):
    path = tmp_path / "i.json"
    path.write_bytes(BOMBS[what])
    done = run("stub", "prepare", path)
    assert done.returncode == 4
    assert "Traceback" not in done.stderr
    assert len(done.stderr) < 4000
    assert answer("error", "stub", "prepare", path, code=4)["error"]["kind"] == "stub-instruction"


def test_4096_modules_are_read_and_one_more_is_not(tmp_path):
    modules = [module(target=f"Module.m{number}.M.forward.0") for number in range(4097)]
    assert len(read_instruction(instruction(tmp_path / "i.json", *modules[1:])).modules) == 4096
    with pytest.raises(StubInstructionError, match="4097 items"):
        read_instruction(instruction(tmp_path / "i.json", *modules))


def test_what_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "nowhere", Path("/dev/zero")):
        with pytest.raises(UsageError):
            read_instruction(path)
