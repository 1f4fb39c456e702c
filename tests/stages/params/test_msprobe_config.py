"""msprobe's config, made and checked against the job that it is for."""

from __future__ import annotations

import pytest

from stages.msprobe_config import MsprobeConfigError, check_config, make_config

BASE = {"task": "tensor", "dump_path": "/tmp/d", "rank": [], "step": [0], "level": "L0"}
ENTRY = "Module.model.layers.0.Layer.forward.0"


@pytest.mark.parametrize(
    ("change", "key", "level"),
    [
        ({"rank": ["1-0"]}, "rank", "error"),
        ({"rank": [-1]}, "rank", "error"),
        ({"rank": [True]}, "rank", "error"),
        ({"rank": "0"}, "rank", "error"),
        ({"rank": ["0-9999999"]}, "rank", "error"),
        ({"rank": [8]}, "rank", "error"),
        ({"step": [10**7]}, "step", "error"),
        ({"level": "L9"}, "level", "error"),
        ({"level": "L1"}, "level", "warning"),
        ({"task": "all"}, "task", "error"),
        ({"task": "nan_check"}, "task", "warning"),
        ({"dump_path": None}, "dump_path", "error"),
        ({"dump_path": "here"}, "dump_path", "warning"),
        ({"tensor": {"data_mode": ["sideways"]}}, "tensor.data_mode", "error"),
        ({"load": {"path": "/s"}}, "load.modules", "error"),
        ({"load": {"modules": [ENTRY]}}, "load.path", "error"),
        ({"load": {"path": "/s", "modules": ["layers.0"]}}, "load.modules", "error"),
        ({"load": {"path": "/s", "modules": [ENTRY, ENTRY]}}, "load.modules", "error"),
        ({"level": "L1", "load": {"path": "/s", "modules": [ENTRY]}}, "level", "error"),
    ],
)
def test_what_would_dump_nothing_is_told(change, key, level):
    findings = check_config({**BASE, **change}, 8).findings
    assert [(one.key, one.level) for one in findings] == [(key, level)]


@pytest.mark.parametrize("rank", [[], None, [0, 7], ["0-7"], ["1", " 2 - 3 "]])
def test_ranks_that_exist(rank):
    assert not check_config({**BASE, "rank": rank}, 8).findings


def test_what_is_made_is_valid():
    config = make_config("/d", world_size=2, ranks=(0, 1), load={"path": "/s", "modules": [ENTRY]})
    assert check_config(config, 2).valid
    assert make_config("/d", world_size=1, ranks=(0,))["rank"] == []
    with pytest.raises(MsprobeConfigError, match="rank 4 do not exist, world size 2"):
        make_config("/d", world_size=2, ranks=(4,))


@pytest.mark.parametrize("config", [None, [], "x"])
def test_what_is_no_config(config):
    assert not check_config(config, 1).valid
