"""Layers that a dump should have and has not."""

from __future__ import annotations

import pytest

from stages.dumps.coverage import cover
from stages.dumps.outline import outline as read_outline
from tests.stages.dumps.made import outline
from tests.stages.dumps.synthetic import Model, text, write_dump, write_text

ENGINE = "Module.logits_processor.LogitsProcessor.forward.0"


def stacked(*layers: int, path: str = "model.layers", entries: int = 13):
    return outline((19,), stacks={path: dict.fromkeys(layers, entries)})


def names(coverage):
    return [one.name for one in coverage.problems]


def test_all_layers_are_there(tmp_path):
    one = read_outline(write_dump(tmp_path / "step0" / "rank0", Model(4), 19))
    assert cover([one], 4).complete is True
    assert cover([one]).complete is None  # a fifth may be missing
    assert cover([one], 5).missing == (4,)


def test_a_hole_needs_no_number_of_layers():
    coverage = cover([stacked(0, 3)])
    assert (coverage.missing, names(coverage)) == ((1, 2), ["graph-mode"])


def test_pipeline_ranks_are_taken_together():
    assert cover([stacked(0, 1), stacked(2, 3)], 4, pipeline=2).complete is True
    assert cover([stacked(0, 1), stacked(0, 1)], 4, pipeline=2).complete is True  # numbered from 0 on each
    assert cover([stacked(0, 1), stacked(0, 1)], 4).missing == (2, 3)


@pytest.mark.parametrize("path", ["visual.blocks", "model.vision_tower.encoder.layers", "mtp.layers"])
def test_the_layers_of_a_tower_are_none_of_the_model(path):
    one = outline((19,), stacks={"model.layers": {0: 13}, path: dict.fromkeys(range(24), 5)})
    assert cover([one], 2).missing == (1,)


def test_compiled_models_leave_one_entry(tmp_path):
    entry = {"output": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1, 8]}]}
    one = read_outline(write_text(tmp_path / "step0" / "rank0", text([(ENGINE, entry)])))
    assert names(cover([one], 2)) == ["near-empty", "graph-mode"]


def test_functions_only():
    one = outline((19,), modules=0, level="L1", stacks={})
    coverage = cover([one], 2)
    assert (coverage.complete, coverage.missing, names(coverage)) == (False, None, ["no-modules"])


def test_layers_that_are_all_but_empty():
    one = outline((19,), stacks={"model.layers": {0: 13, 1: 2, 2: 13, 3: 13}})
    assert names(cover([one], 4)) == ["thin-layers"]


def test_many_ranks_say_it_once():
    assert names(cover([stacked(0, 2)] * 64, 4)) == ["graph-mode"]


def test_nothing_is_covered_by_nothing():
    assert cover([], 4).complete is None
    assert cover([outline(entries=0, stacks={})], 4).layers == ()
