"""What a captured step is, and which one fits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stages.dumps.outline import outline as read_outline
from stages.dumps.problem import ERROR, NOTE, WARNING
from stages.dumps.steps import (
    CACHED,
    CHUNKED,
    DECODE,
    DUMMY,
    EMPTY,
    MIXED,
    PADDED,
    PREFILL,
    UNKNOWN,
    choose,
    choose_each,
    chosen,
    label,
    label_all,
)
from tests.stages.dumps.made import folder, line, outline, step
from tests.stages.dumps.synthetic import HEADER, write_text

TWO = ("a", "b")


@pytest.mark.parametrize(
    ("shape", "of", "name", "problem"),
    [
        ((19,), line(), PREFILL, ""),
        ((1, 19), line(phase="log_prob"), PREFILL, ""),
        ((1, 29), line(requests=TWO, prompts=(19, 10)), PREFILL, ""),
        ((2, 19), line(requests=TWO, prompts=(19, 10)), PADDED, "padding-left"),
        ((1, 32), line(), PADDED, "padding-left"),
        ((1, 27), line(phase="log_prob", token_count=27), PADDED, "response-left"),
        ((1, 32), line(phase="log_prob", token_count=27), PADDED, "padding-left"),
        ((1,), line(phase="decode", computed=(19,), scheduled=(1,)), DECODE, ""),
        ((4,), line(phase="chunked_prefill", computed=(0,), scheduled=(4,)), CHUNKED, "chunked-prefill"),
        ((7,), line(computed=(12,), scheduled=(7,)), CACHED, "prefix-cache-hit"),
        ((7,), line(), CACHED, "prefix-cache-hit"),
        ((7,), line(phase="log_prob"), UNKNOWN, "input-too-short"),
        ((20,), line(phase="mixed", requests=TWO, prompts=(19, 10)), MIXED, ""),
        ((20,), line(phases=("prefill", "decode"), requests=TWO, prompts=(19, 10)), MIXED, ""),
        ((19,), line(phase="health_check"), DUMMY, "warm-up-captured"),
        ((19,), line(phase="idle", requests=()), DUMMY, "warm-up-captured"),
        ((19,), line(prompts=(None,)), UNKNOWN, ""),
        ((8192,), None, DUMMY, "warm-up-captured"),
    ],
)
def test_a_step_is_told_by_its_line_and_its_tokens(shape, of, name, problem):
    one = step(shape, of)
    assert (one.label, one.problem) == (name, problem)
    assert one.why


def test_without_a_log_nothing_is_guessed():
    one = step((19,), None, logged=False)
    assert (one.label, one.tokens) == (UNKNOWN, 19)


def test_what_went_in_is_not_always_to_be_seen():
    one = label(folder(), line(), outline())
    assert (one.label, one.tokens) == (UNKNOWN, None)


def test_an_empty_dump_is_empty_whatever_the_log_says(tmp_path):
    dump = read_outline(write_text(tmp_path / "step0" / "rank0", HEADER))
    assert label(folder(), line(), dump).label == EMPTY


def test_hidden_states_tell_where_there_is_no_embedding():
    one = label(folder(), line(), outline((1, 19, 64), source="layer"))
    assert (one.label, one.tokens) == (PREFILL, 19)


@pytest.mark.parametrize(
    ("rows", "problem"), [((512, 19), "warm-up-captured"), ((5, 3), ""), ((19, 512), "")]
)  # a dummy run before the prefill; micro-batches in one step; something after it
def test_several_forwards_in_one_step(rows, problem):
    one = label(folder(), line(), outline(*((each,) for each in rows)))
    assert (one.label, one.problem) == (MIXED, problem)
    assert all(str(each) in one.why for each in rows)


def test_an_embedding_that_is_shared_is_called_twice_and_is_one_forward():
    assert label(folder(), line(), outline((19,), (19,))).label == PREFILL


def run_of_an_engine():
    """A profile run, two requests in one step, the request alone, its decode steps, and once more from the cache."""
    lines = [
        line(1, TWO, (19, 10)),
        line(2, ("a",)),
        line(3, ("a",), phase="decode", computed=(19,)),
        line(4, ("a-again",), computed=(16,)),
        line(5, ("other",)),
    ]
    shapes = [(8192,), (29,), (19,), (1,), (3,), (19,)]
    return label_all([folder(at) for at in range(6)], lines, [outline(shape) for shape in shapes])


def test_the_step_that_fits_and_why_the_others_do_not():
    steps, problems = run_of_an_engine()
    assert [(one.name, one.level) for one in problems] == [("warm-up-captured", WARNING)]
    choice = choose(steps, {"a"}, 19)
    assert choice.step is steps[2]
    reasons = {one.folder.step: why for one, why in choice.unfit}
    assert reasons.keys() == {0, 1, 3, 4, 5}
    assert "2 requests" in reasons[1] and "decode" in reasons[3] and "cache" in reasons[4]
    assert [(one.name, one.level) for one in choice.problems] == [("several-requests", WARNING)]


def test_the_cause_has_its_name_where_none_fits():
    choice = choose(run_of_an_engine()[0], {"a-again"}, 19)
    assert choice.step is None
    assert {(one.name, one.level) for one in choice.problems} == {
        ("warm-up-captured", ERROR),
        ("prefix-cache-hit", ERROR),
        ("no-step-fits", ERROR),
    }


def test_a_length_that_is_known_better_than_by_the_log():
    names = {one.name for one in choose([step((19,), line())], {"r"}, 11).problems}
    assert names == {"padding-left", "no-step-fits"}
    assert choose([step((19,), line())], {"r"}, None).step is not None


def test_no_step_is_taken_because_it_is_the_only_one():
    assert choose([step((19,), None, logged=False)], {"r"}, 19).step is None
    assert chosen({})[1][0].name == "no-step-fits"


def test_the_first_of_two_that_fit():
    choice = choose([step((19,), line(4), 4), step((19,), line(2), 2)], {"r"}, 19)
    assert choice.step is not None and choice.step.folder.step == 2
    assert "first" in choice.unfit[0][1]


def test_a_data_parallel_rank_without_the_request_is_no_failure():
    folders = [folder(0, 0), folder(0, 1)]
    lines = [line(rank=0), line(requests=("other",), rank=1)]
    steps, _problems = label_all(folders, lines, [outline((19,)), outline((19,))])
    fit, problems = chosen(choose_each(steps, {"r"}, 19))
    assert [one.folder.rank for one in fit] == [0]
    assert problems == ()


def test_folders_by_process_have_the_lines_of_the_process():
    steps, _problems = label_all([folder(0, None, 4711), folder(0, None, 4712)], [line()], [outline((19,))] * 2)
    assert [one.label for one in steps] == [PREFILL, DUMMY]


def test_a_log_of_two_runs_tells_of_the_last():
    lines = [line(0, ("old",), number=1, pid=1), line(0, number=2, pid=2)]
    steps, problems = label_all([folder(0)], lines, [outline((19,))])
    assert steps[0].requests == ("r",)
    assert [(one.name, one.level) for one in problems] == [("earlier-runs", NOTE)]


def test_two_processes_that_wrote_at_once_are_not_told_apart():
    lines = [line(at, number=at + 1, pid=at % 2) for at in range(4)]
    steps, problems = label_all([folder(0)], [*lines, line(0, number=9, pid=0)], [outline((19,))])
    assert [one.name for one in problems] == ["two-writers"]
    assert steps[0].label == UNKNOWN


def test_a_folder_for_each_process_above_the_steps():
    lines = [line(0, ("r",), pid=7, path=Path("/d/7/rank0/log")), line(0, ("s",), pid=8, path=Path("/d/8/rank0/log"))]
    folders = [folder(0, above="7"), folder(0, above="8"), folder(0, above="other")]
    steps, _problems = label_all(folders, lines, [outline((19,))] * 3)
    assert [one.requests for one in steps] == [("r",), ("s",), ()]
    assert "2 lines" in steps[2].why


def test_steps_carry_no_token():
    text = str(replace(step((19,), line()), line=None))
    assert "token_ids" not in text
