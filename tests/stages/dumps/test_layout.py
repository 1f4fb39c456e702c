"""The folders of a dump, as they are found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stages.dumps.layout import EMPTY, FILLED, WITHOUT, find_folders
from stages.dumps.problem import ERROR, NOTE, WARNING
from tests.stages.dumps.synthetic import HEADER, Model, text, write_text

FULL = text(Model(1).entries(3))


def write(root: Path, *places: str, written: str | bytes = FULL) -> None:
    for place in places:
        write_text(root / place, written)


def found(root: Path):
    folders, problems = find_folders(root)
    return [(one.above, one.step, one.process, one.state) for one in folders], [
        (one.name, one.level) for one in problems
    ]


@pytest.mark.parametrize(
    ("place", "folder"),
    [
        ("step0/rank0", ("", 0, "rank0", FILLED)),
        ("step0/proc123", ("", 0, "proc123", FILLED)),
        ("step_4/rank_2", ("", 4, "rank2", FILLED)),
        ("4711/step1/rank0", ("4711", 1, "rank0", FILLED)),
        ("update_actor/step0/rank0", ("update_actor", 0, "rank0", FILLED)),
        (
            "profile/step_7/actor_compute_log_prob/step0/rank0",
            ("profile/step_7/actor_compute_log_prob", 0, "rank0", FILLED),
        ),
    ],
)
def test_every_layout_is_taken_as_it_is(tmp_path, place, folder):
    write(tmp_path, place)
    (tmp_path / place / "dump_tensor_data" / "step9" / "rank9").mkdir(parents=True)
    folders, problems = found(tmp_path)
    assert folders == [folder]
    assert [name for name, _level in problems if name != "rank-missing"] == []


def test_a_part_of_it_may_be_given(tmp_path):
    write(tmp_path, "step3/rank0", "step3/rank1")
    assert [one[1:3] for one in found(tmp_path / "step3")[0]] == [(3, "rank0"), (3, "rank1")]
    assert found(tmp_path / "step3" / "rank1") == ([("", 3, "rank1", FILLED)], [])


def test_trailing_empty_steps_are_told_from_holes(tmp_path):
    write(tmp_path, "step0/rank0", "step2/rank0")
    write(tmp_path, "step1/rank0", "step3/rank0", written=HEADER)
    write(tmp_path, "step4/rank0", written=b"")
    (tmp_path / "step5" / "rank0").mkdir(parents=True)
    (tmp_path / "step6").mkdir()
    folders, problems = found(tmp_path)
    assert [state for *_more, state in folders] == [FILLED, EMPTY, FILLED, EMPTY, EMPTY, WITHOUT]
    assert sorted(problems) == [
        ("empty-step", ERROR),
        ("empty-step", WARNING),
        ("no-dump-json", ERROR),
        ("trailing-step-empty", NOTE),
        ("trailing-step-empty", NOTE),
    ]


def test_a_dump_of_empty_steps_only_is_no_trailing_step(tmp_path):
    write(tmp_path, "step0/rank0", written=HEADER)
    assert found(tmp_path)[1] == [("empty-step", ERROR)]


@pytest.mark.parametrize("name", ["missing", "empty", "file"])
def test_nothing_is_an_error_not_no_difference(tmp_path, name):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    folders, problems = found(tmp_path / name)
    assert folders == []
    assert ("no-dump", ERROR) in problems


def test_ranks_that_are_not_everywhere(tmp_path):
    write(tmp_path, "step0/rank0", "step0/rank1", "step1/rank0", "step1/proc9")
    assert sorted(found(tmp_path)[1]) == [("ranks-and-processes", WARNING), ("ranks-differ", WARNING)]


def test_links_lead_nowhere(tmp_path):
    inside, outside = tmp_path / "dump", tmp_path / "outside"
    write(outside, "step0/rank0")
    write(inside, "step1/rank1")
    (inside / "step0").symlink_to(outside / "step0")
    (inside / "loop").symlink_to(inside)
    (inside / "step1" / "rank0").symlink_to(outside / "step0" / "rank0")
    (inside / "step2").symlink_to("nowhere")
    (inside / "step3" / "rank1").mkdir(parents=True)
    (inside / "step3" / "rank1" / "dump.json").symlink_to(outside / "step0" / "rank0" / "dump.json")
    folders, problems = found(inside)
    assert folders == [("", 1, "rank1", FILLED), ("", 3, "rank1", WITHOUT)]
    assert [name for name, _level in problems].count("link") == 4


def test_the_dump_path_itself_may_be_a_link(tmp_path):
    write(tmp_path / "real", "step0/rank0")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert len(found(tmp_path / "link")[0]) == 1
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert found(tmp_path / "loop")[1] == [("no-dump", ERROR)]


def test_hostile_names(tmp_path):
    write(tmp_path, "step0/rank0")
    for name in ("step99999999999", "step-1", "stepX\n\x1b[31m", "STEP0", "step0/rank99999999999", "step0/other"):
        (tmp_path / name / "rank0").mkdir(parents=True)
        (tmp_path / name / "rank0" / "dump.json").write_text(FULL)
    folders, problems = find_folders(tmp_path)
    assert [(one.step, one.process) for one in folders] == [(0, "rank0")]
    odd = [one for one in problems if one.name == "odd-folder"]
    assert len(odd) == 4
    assert all(one.what.isprintable() for one in problems)


def test_a_folder_below_which_there_is_no_end(tmp_path):
    place = tmp_path
    for _number in range(40):
        place = place / "a"
    write(place, "step0/rank0")
    assert found(tmp_path) == ([], [("no-dump", ERROR)])


def test_what_is_no_file_does_not_hold_it_up(tmp_path):
    (tmp_path / "step0" / "rank0").mkdir(parents=True)
    os.mkfifo(tmp_path / "step0" / "rank0" / "dump.json")
    assert found(tmp_path)[0] == [("", 0, "rank0", FILLED)]
