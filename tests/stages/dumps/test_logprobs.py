"""The difference of the prompts' log-probs: computed where both sides fit token by token, else refused by name."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from stages.dumps.logprobs import Differences, by_position, compare, prefill_differences
from stages.dumps.printed import check_printed, read_printed
from stages.dumps.records import Prefill, read_records
from stages.dumps.sampling import PROCESSED, Sampling, check_semantics
from tests.stages.dumps.written import digest, prefill, write_prefills

CASES = Path(__file__).parent.parent / "cases"
RAW = Sampling("raw", 1.0)


def line(side: str, logprobs, n_tokens: int, mode: str | None = "raw", temperature: float | None = 1.0) -> Prefill:
    place = (side, Path(f"{side}.jsonl"), 1, 0, 7)
    return Prefill(*place, "r", n_tokens, None, tuple(logprobs), mode, temperature)


def case_41(name: str):
    cases = json.loads((CASES / "41-logprob-shift-and-fill/input.json").read_text())["cases"]
    (given,) = (one for one in cases if one["id"] == name)
    return compare(*(line(side, given[side], given["prompt_len"]) for side in ("train", "infer")))


def test_41_a_list_that_is_too_short():
    found, (problem,) = case_41("short")
    assert (found.spread, found.differences, problem.name, problem.level) == (None, (), "prefill-length", "error")
    assert problem.what == "log-probs: 4 on the training side, 3 on the inference side; a prompt of 5 tokens has 4"


def test_41_shifted_by_one_is_a_difference_with_a_hint():
    found, (problem,) = case_41("shifted")
    assert (problem.name, problem.level) == ("prefill-off-by-one", "warning")
    assert "off-by-one: the training side is one token late" in problem.what
    assert found.spread is not None
    assert found.spread.mean == pytest.approx((0.367756 + 0.232544 + 0.471195 + 0.556744) / 4, abs=1e-5)


def test_41_nan_is_named_with_its_position():
    found, (problem,) = case_41("nan")
    assert (found.spread, problem.name) == (None, "prefill-not-finite")
    assert problem.what == "the train side's log-prob at position 1 (of token 2) is nan"


def test_41_equal_is_zero_and_empty_is_not_computed():
    found, problems = case_41("good")
    assert (found.spread.mean, found.spread.max, found.spread.std, problems) == (0.0, 0.0, 0.0, [])
    found, (problem,) = case_41("empty")
    assert (found.spread, problem.name) == (None, "prefill-empty")
    assert found.reason == "not computed: a prompt of one token has no log-prob"


def case_42(name: str):
    given = YAML(typ="safe").load(CASES / "42-raw-vs-processed-logprobs/input.yaml")[name]
    sampling = given["sampling"]
    assert given["trainer"]["divides_logits_by_temperature"]
    train = Sampling(PROCESSED, sampling["temperature"])
    return check_semantics(train, Sampling(given["engine"]["logprobs_mode"], **sampling))


def test_42_raw_log_probs_of_a_sampling_engine_are_refused():
    assert case_42("a").reasons == (
        "temperature 0.6 with raw log-probs on the infer side: they come before the temperature",
        "top_p 0.9 and top_k -1 on the infer side cut the distribution: 1 and off are needed",
        "sampling semantics differ: processed on the training side, raw on the inference side",
    )


def test_42_processed_on_both_sides_passes_with_a_note_and_temperature_one_without():
    found = case_42("b")
    assert found.comparable
    assert found.notes == ("processed at temperature 0.6 on both sides: not the model's own log-probs",)
    assert case_42("c") == check_semantics(RAW, RAW)
    assert case_42("c").comparable


@pytest.mark.parametrize(
    ("train", "infer"),
    [
        (Sampling(None, 1.0), RAW),
        (RAW, Sampling("raw", None)),
        (Sampling("raw", 0.6), Sampling("raw", 0.6)),
        (Sampling("processed", 0.6), Sampling("processed", 0.7)),
        (Sampling("processed", 0.0), Sampling("processed", 0.0)),
        (RAW, Sampling("raw_logits", 1.0)),
        (RAW, Sampling("raw", 1.0, top_k=50)),
    ],
)
def test_what_is_unknown_or_means_something_else_is_refused_before_anything_is_computed(train, infer):
    assert not check_semantics(train, infer).comparable


def test_a_refused_request_has_no_number():
    found, (problem,) = compare(line("train", [-1.0], 2), line("infer", [-1.0], 2, "processed", 0.6))
    assert (found.spread, found.differences, problem.name) == (None, (), "prefill-sampling-differs")


def test_what_is_processed_alike_is_computed_and_said(tmp_path):
    both = {"logprobs_mode": "processed", "temperature": 0.6}
    found = read(tmp_path, [prefill("a", [-1.0], **both)], [prefill("a", [-1.0], "infer", **both)])
    assert (found.spread.mean, [(one.name, one.level) for one in found.problems]) == (
        0.0,
        [("prefill-processed", "note")],
    )


@pytest.mark.parametrize(
    ("values", "name"), [([12.5, -1.0], "prefill-not-logprobs"), ([-math.inf, -1.0], "prefill-not-finite")]
)
def test_values_that_are_no_log_probs(values, name):
    for sides in ((values, [-1.0, -1.0]), ([-1.0, -1.0], values)):
        found, (problem,) = compare(line("train", sides[0], 3), line("infer", sides[1], 3))
        assert (found.spread, problem.name) == (None, name)


def test_a_zero_where_the_other_side_is_unsure_looks_filled_in():
    _found, problems = compare(line("train", [-1.0, -2.0, -1.5], 4), line("infer", [-1.0, -2.0, 0.0], 4))
    assert [one.name for one in problems] == ["prefill-filled"]
    assert "position 2" in problems[0].what


def test_lengths_that_agree_and_are_still_wrong():
    _found, (problem,) = compare(line("train", [-1.0, -1.0], 2), line("infer", [-1.0, -1.0], 2))
    assert problem.name == "prefill-length"


# --- joined by request ------------------------------------------------------------------------------------------------


def read(tmp_path: Path, train, infer=()) -> Differences:
    write_prefills(tmp_path / "train", train)
    write_prefills(tmp_path / "infer", infer)
    return prefill_differences(*(read_records(tmp_path / side, side).prefills for side in ("train", "infer")))


def test_from_two_files_by_the_rules_of_association(tmp_path):
    train = [prefill("a", [-1.0, -2.0]), prefill("b", [-3.0])]
    found = read(tmp_path, train, [prefill("b-1a2b3c4d", [-3.0], "infer"), prefill("a", [-1.0, -2.5], "infer")])
    assert [(one.train.request_id, one.rule) for one in found.compared] == [("a", "exact"), ("b", "vllm-suffix")]
    gap = math.exp(-2) - math.exp(-2.5)
    assert found.spread is not None
    assert (found.spread.count, found.spread.max) == (3, pytest.approx(gap))
    assert (found.spread.mean, found.spread.std) == (pytest.approx(gap / 3), pytest.approx(gap * math.sqrt(2) / 3))
    assert found.problems == ()


def test_from_one_file_that_holds_both_sides(tmp_path):
    found = read(tmp_path, [prefill("a", [-1.0]), prefill("a", [-1.0], "infer")])
    assert (len(found.compared), found.spread.mean) == (1, 0.0)


def test_the_engine_s_own_record_goes_before_what_the_trainer_got(tmp_path):
    carried = [prefill("a", [-1.0]), prefill("a", [-9.0], "infer"), prefill("b", [-1.0]), prefill("b", [-1.0], "infer")]
    found = read(tmp_path, carried, [prefill("a-1a2b3c4d", [-1.0], "infer")])
    assert [one.infer.path.parts[-3] for one in found.compared] == ["infer", "train"]
    assert (found.spread.max, found.problems) == (0.0, ())


def test_other_tokens_under_the_same_id(tmp_path):
    train = [prefill("a", [-1.0], prompt_sha256=digest("p"))]
    found = read(tmp_path, train, [prefill("a", [-1.0], "infer", prompt_sha256=digest("q"))])
    assert (found.spread, [one.name for one in found.problems]) == (
        None,
        ["prefill-tokens-differ", "prefill-not-computed"],
    )


def test_one_side_only_is_not_computed(tmp_path):
    found = read(tmp_path, [prefill("a", [-1.0])], [prefill("x", [-1.0], "infer")])
    assert (found.compared, found.spread) == ((), None)
    assert [one.name for one in found.problems] == ["prefill-one-sided", "prefill-not-computed"]
    assert prefill_differences(()).spread is None


def test_equal_prompts_without_ids_are_ambiguous(tmp_path):
    both = {"prompt_sha256": digest("p")}
    train = [prefill(None, [-1.0], **both), prefill(None, [-1.0], **both)]
    found = read(tmp_path, train, [prefill(None, [-1.0], "infer", **both)])
    assert (found.spread, found.problems[0].name) == (None, "prefill-ambiguous")


def test_one_bad_request_does_not_hide_the_others(tmp_path):
    train = [prefill("a", [-1.0, math.nan]), prefill("b", [-1.0, -1.0])]
    found = read(tmp_path, train, [prefill(name, [-1.0, -1.0], "infer") for name in "ab"])
    assert (found.spread.count, [one.spread is None for one in found.compared]) == (2, [True, False])
    assert [one.level for one in found.problems] == ["error"]


def test_positions_for_a_plot_are_few_and_lose_no_peak():
    values = [0.0] * 5000
    values[4321] = 0.5
    found = by_position(values)
    assert len(found) <= 512
    assert max(largest for _position, _mean, largest in found) == 0.5
    assert by_position([0.25, 0.5]) == [(1, 0.25, 0.25), (2, 0.5, 0.5)]


# --- against the training log -----------------------------------------------------------------------------------------


def said(mean: float, largest: float, deviation: float) -> str:
    numbers = zip(("mean", "max", "std"), (mean, largest, deviation), strict=True)
    return " ".join(f"prefill_logprob_diff_{name}={value:g}" for name, value in numbers)


def logged(tmp_path: Path, text: str):
    log = tmp_path / "train.log"
    log.write_bytes(text.encode())
    return read_printed(log)


@pytest.fixture
def found(tmp_path) -> Differences:
    train = [prefill(name, [-1.0, -2.0 - at / 10, -0.5]) for at, name in enumerate("abcd")]
    return read(tmp_path, train, [prefill(name, [-1.01, -2.0, -0.5], "infer") for name in "abcd"])


def spread_of(found: Differences, first: int, last: int) -> tuple[float, float, float]:
    values = [value for one in found.compared[first:last] for value in one.differences]
    mean = sum(values) / len(values)
    return mean, max(values), math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))


def test_what_was_printed_for_all_requests_or_for_a_step_s(tmp_path, found):
    for first, last in ((0, 4), (0, 2), (2, 4), (1, 2)):
        printed = logged(tmp_path, said(*spread_of(found, first, last)) + "\n")
        assert (len(printed.prints), check_printed(printed, found)) == (1, ())


def test_behind_ray_s_prefix_colours_and_a_progress_bar(tmp_path, found):
    bar = "Training:  10%|#    | 1/10\rTraining:  20%|##   | 2/10\r"
    text = f"{bar}\x1b[36m(WorkerDict pid=4242)\x1b[0m {said(*spread_of(found, 0, 4))}\r\n"
    (one,) = logged(tmp_path, text).prints
    assert one.pid == 4242
    assert one.where.endswith("train.log:1")


def test_a_print_that_the_records_do_not_give_is_named(tmp_path, found):
    mean, largest, deviation = spread_of(found, 0, 4)
    for wrong in (
        (mean * 1.001, largest, deviation),
        (mean, largest * 1.001, deviation),
        (mean, largest, deviation * 2),
    ):
        (problem,) = check_printed(logged(tmp_path, said(*wrong)), found)
        assert (problem.name, problem.where[-2:]) == ("prefill-print-differs", ":1")


@pytest.mark.parametrize("text", ["nan nan nan", "-0.1 0.5 0.1", "0.6 0.5 0.1", "0.1 1.5 0.1", "inf inf nan"])
def test_a_print_that_cannot_be_is_an_error(tmp_path, found, text):
    (problem,) = check_printed(logged(tmp_path, said(*map(float, text.split()))), found)
    assert (problem.name, problem.level) == ("prefill-print-implausible", "error")


def test_nothing_printed_and_what_the_trainer_left_out(tmp_path, found):
    (problem,) = check_printed(logged(tmp_path, "all went well\n"), found)
    assert problem.name == "prefill-not-printed"
    for text in (
        "prefill_logprob_diff: not computed (3 of 4 requests: the rollout's prompt has other tokens)",
        "WARNING prefill_logprob_diff not computed for 3 of 4 samples: no inference side",
    ):
        first, _second = check_printed(logged(tmp_path, text), found)
        assert (first.name, "3 of 4" in first.what) == ("prefill-print-missing", True)
    assert [one.name for one in read_printed(tmp_path / "none.log").problems] == ["log-unreadable"]
