"""The target's config of a round."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from codemods.errors import RefusedError, UsageError
from stages.sides import Side
from stages.stub.config import (
    LoadMissingError,
    StubConfigError,
    make_stub_config,
    read_config,
    require_load,
    world_of,
    write_stub_config,
)
from tests.stages.stub.made import TRAIN, dump, python
from tests.stages.stub.test_log import MANIFEST

FIRST = {"task": "tensor", "dump_path": "/w/dump/train", "rank": [], "step": [0], "level": "L0", "async_dump": False}


def made(first=FIRST, world_size=4, **changes):
    from pathlib import Path

    return make_stub_config({**FIRST, **first}, replace(MANIFEST, **changes), Path("/w/dump/round1/train"), world_size)


def test_the_first_config_and_the_override():
    found = made()
    assert found.notes == ()
    load = {"path": "/w/src", "modules": [TRAIN], "step": [0], "rank": [], "dump_after_load": True}
    assert found.config == {**FIRST, "dump_path": "/w/dump/round1/train", "load": load}


def test_ranks_are_named_only_where_some_are_left_out():
    assert made(ranks=[0, 2], all_ranks=False).config["load"]["rank"] == [0, 2]
    assert made(ranks=None, all_ranks=True).config["load"]["rank"] == []


def test_a_step_that_is_left_out_would_be_silently_inactive():
    assert made(step=2).config["step"] == [2]
    assert made({"step": []}, step=2).config["step"] == []
    assert made({"step": ["0-3"]}, step=2).config["step"] == ["0-3"]
    assert "step" in made(step=2).notes[0]
    # without a dump msprobe starts no step after one that load.step leaves out
    assert made({"step": ["0-3"]}, step=2, dump_after_load=False).config["step"] == [2]


def test_what_cannot_be_proved_or_loaded_is_changed_and_told():
    found = made({"task": "statistics", "level": "L1", "statistics": {}})
    assert (found.config["task"], found.config["level"]) == ("tensor", "L0")
    assert len(found.notes) == 2
    assert made({"task": "statistics"}, dump_after_load=False).config["task"] == "statistics"
    with pytest.raises(StubConfigError, match="do not exist"):
        made({"rank": [7]})


def test_the_number_of_processes_is_at_least_what_is_seen(tmp_path):
    for rank in (0, 3):
        dump(tmp_path, {}, f"step0/rank{rank}")
    manifest = replace(MANIFEST, target=str(tmp_path))
    assert world_of(manifest, FIRST) == 4
    assert world_of(manifest, {"rank": ["0-7"]}) == 8
    assert world_of(MANIFEST, FIRST) == 1


def test_a_config_stays_once_there_is_a_dump(tmp_path):
    path, folder = tmp_path / "msprobe/train.round1.json", tmp_path / "dump"
    write_stub_config(path, FIRST, folder)
    (folder / "step0").mkdir(parents=True)
    write_stub_config(path, FIRST, folder)
    with pytest.raises(RefusedError, match="a dump of this round already"):
        write_stub_config(path, {**FIRST, "level": "mix"}, folder)
    assert read_config(path) == FIRST


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000])
def test_configs_that_are_none(tmp_path, text):
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(StubConfigError):
        read_config(tmp_path / "c.json")
    with pytest.raises(UsageError):
        read_config(tmp_path / "nowhere.json")


def test_a_msprobe_without_load_is_refused(tmp_path):
    for number, (options, word) in enumerate(
        [({"load": False}, "has no module_load"), ({"msprobe": False}, "cannot be imported")]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(LoadMissingError, match=word) as error:
            require_load(Side("train", (), str(python(folder, **options))))
        assert "pip install mindstudio-probe==26.2.0" in (error.value.todo or "")
    require_load(Side("train", (), str(python(tmp_path))))


def test_configs_are_json_that_msprobe_reads(tmp_path):
    write_stub_config(tmp_path / "c.json", made().config, tmp_path / "dump")
    assert json.loads((tmp_path / "c.json").read_text())["load"]["modules"] == [TRAIN]
