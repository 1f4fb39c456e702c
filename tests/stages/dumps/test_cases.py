"""The public cases of dumps: what must be said of each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stages.dumps.coverage import cover
from stages.dumps.layout import find_folders
from stages.dumps.outline import outline as read_outline
from stages.dumps.problem import ERROR
from stages.dumps.steps import DECODE, DUMMY, PREFILL, choose_each, chosen, label_all
from stages.msprobe_config import check_config
from tests.stages.dumps.made import folder, line, outline
from tests.stages.dumps.synthetic import Model, write_dump

CASES = Path(__file__).parents[1] / "cases"


@pytest.mark.parametrize(
    ("file", "world", "errors", "warnings", "ranks", "steps"),
    [
        ("input.json", 2, ["rank"], ["level"], (4, 5), ()),
        ("input.single.json", 1, ["rank"], [], (0,), (0,)),
        ("input.range.json", 2, [], [], (0, 1), (0, 1, 2)),
    ],
)
def test_45_a_rank_list_that_is_not_there(file, world, errors, warnings, ranks, steps):
    checked = check_config(json.loads((CASES / "45-rank-list-not-present" / file).read_text()), world)
    assert [one.key for one in checked.errors] == errors
    assert [one.key for one in checked.findings if one.level == "warning"] == warnings
    assert (checked.ranks, checked.steps) == (ranks, steps)


def test_45_what_such_a_list_leaves_behind(tmp_path):
    """`rank: [1]` of two: the run ends well, and half of the dump is not there."""
    write_dump(tmp_path / "step0" / "rank1", Model(1), 3)
    write_dump(tmp_path / "step1" / "rank1", Model(1), 3)
    _folders, problems = find_folders(tmp_path)
    assert [one.name for one in problems] == ["rank-missing"]


def warm_up_steps():
    """Folders, lines and outlines of the case."""
    folders, lines, outlines = [], [], []
    for one in json.loads((CASES / "47-warm-up-and-dummy-runs" / "steps.json").read_text()):
        folders.append(folder(one["step"], one["rank"]))
        outlines.append(outline(tuple(one["input_shape"]), source="layer"))
        if one["reqs"]:
            phase = one["phase"]
            lines.append(line(one["step"], tuple(one["reqs"]), rank=one["rank"], phase=phase))
    return label_all(folders, lines, outlines)


def test_47_the_prefill_is_found_by_request_and_tokens_not_by_its_number():
    steps, _problems = warm_up_steps()
    assert [one.label for one in steps] == [DUMMY, DUMMY, PREFILL, DECODE]
    assert [one.tokens for one in steps] == [8192, 1, 19, 1]
    fit, problems = chosen(choose_each(steps, {"r1-1a2b3c4d"}, 19))
    assert [(one.folder.step, one.folder.rank) for one in fit] == [(2, 0)]
    assert not problems


@pytest.mark.parametrize(("request_id", "tokens"), [("r1-1a2b3c4d", 20), ("r2", 19)])
def test_47_where_none_fits_it_fails_and_says_why_of_each(request_id, tokens):
    steps, _problems = warm_up_steps()
    choices = choose_each(steps, {request_id}, tokens)
    fit, problems = chosen(choices)
    assert fit == ()
    assert {one.level for one in problems} == {ERROR}
    assert "no-step-fits" in {one.name for one in problems}
    told = [step.folder.step for choice in choices.values() for step, why in choice.unfit if why]
    assert sorted(told) == [0, 1, 2, 3]


def test_49_a_graph_leaves_one_layer_of_four():
    one = read_outline(CASES / "49-graph-mode-partial-dump" / "dump.json")
    assert one.entries == one.bare_count == 3
    coverage = cover([one], expected=4)
    assert coverage.complete is False
    assert {"graph-mode", "entries-without-tensors", "near-empty"} <= {problem.name for problem in coverage.problems}
    assert all("eager" in problem.todo for problem in coverage.problems if problem.name == "graph-mode")


def test_49_three_layers_of_four_are_missing(tmp_path):
    """The same with tensors: layer 0 is there, and the rest was passed by."""
    path = write_dump(tmp_path / "step0" / "rank0", Model(1), 19)
    coverage = cover([read_outline(path)], expected=4)
    assert (coverage.layers, coverage.missing, coverage.complete) == ((0,), (1, 2, 3), False)
