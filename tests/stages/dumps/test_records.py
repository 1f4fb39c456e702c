"""Reading the logs beside the dumps: everything that is wrong is named, and nothing else is lost by it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from stages.dumps import jsonl, records
from stages.dumps.records import read_records
from tests.stages.dumps.written import digest, prefill, step, write_prefills, write_steps


def names(found: records.Records) -> list[str]:
    return [problem.name for problem in found.problems]


def log(root: Path, *texts: str) -> Path:
    path = root / "rank0/dispatch_log.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(texts).encode())
    return root


def test_what_the_engine_logged(tmp_path):
    more = {"computed_tokens": [0, 0], "scheduled_tokens": [5, 5], "token_count": 10, "phases": ["prefill", "decode"]}
    write_steps(tmp_path, "infer", [step(["a", None], prompt="p", time="2026-01-02T03:04:05", **more)], rank=3)
    found = read_records(tmp_path, "infer")
    (line,) = found.lines
    assert (line.rank, line.pid, line.step, line.request_ids) == (3, 7, 0, ("a", None))
    assert (line.computed, line.scheduled, line.token_count) == ((0, 0), (5, 5), 10)
    assert (line.phase_of(0), line.phase_of(1)) == ("prefill", "decode")
    assert line.prompt_sha256 == (digest("p"), digest("p"))
    assert line.where == f"{tmp_path}/rank3/dispatch_log.jsonl:1"
    assert found.problems == ()


def test_token_ids_in_the_log_go_no_further(tmp_path):
    write_steps(tmp_path, "infer", [step(["a"], prompt_token_ids=[[90001, 90002]])])
    assert "90001" not in repr(read_records(tmp_path, "infer"))


def test_folders_here_and_one_further_down_by_rank(tmp_path):
    for rank in (10, 2):
        write_steps(tmp_path, "train", [step([f"r{rank}"])], rank)
    write_steps(tmp_path / "update_actor", "train", [step(["below"])], 5)
    (tmp_path / "rank2b").mkdir()
    (tmp_path / "again").symlink_to(tmp_path)
    found = read_records(tmp_path, "train")
    assert [line.request_ids[0] for line in found.lines] == ["r2", "below", "r10"]
    assert found.problems == ()


def test_no_log_at_all_is_said_and_is_no_failure(tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        found = read_records(folder, "infer")
        assert (found.lines, [(one.name, one.level) for one in found.problems]) == ((), [("no-log", "note")])


def test_a_torn_last_line_is_a_note(tmp_path):
    whole = json.dumps(step(["a"]))
    found = read_records(log(tmp_path, whole + "\n", whole[:-30]), "infer")
    assert (len(found.lines), [(one.name, one.level) for one in found.problems]) == (1, [("torn-last-line", "note")])
    assert found.problems[0].where.endswith("dispatch_log.jsonl:2")


def test_a_last_line_without_newline_counts(tmp_path):
    assert len(read_records(log(tmp_path, json.dumps(step(["a"]))), "infer").lines) == 1


def test_a_line_torn_in_the_middle_is_an_error(tmp_path):
    whole = json.dumps(step(["a"]))
    found = read_records(log(tmp_path, whole[:20], whole + "\n", json.dumps(step(["b"], pid=8)) + "\n"), "infer")
    assert [(one.name, one.level, one.where[-2:]) for one in found.problems] == [("log-not-json", "error", ":1")]
    assert [line.request_ids for line in found.lines] == [("b",)]


@pytest.mark.parametrize(
    ("change", "name", "said"),
    [
        ({"step": -1}, "log-wrong-value", "`step` is -1"),
        ({"step": True}, "log-wrong-value", "`step` is true"),
        ({"step": float("nan")}, "log-wrong-value", "`step` is nan"),
        ({"step": 10**30}, "log-wrong-value", "`step` is a huge number"),
        ({"pid": "7"}, "log-wrong-value", "`pid` is text"),
        ({"rank": 1}, "log-rank-differs", "`rank` is 1, but the folder is rank0"),
        ({"prompt_tokens": [-5]}, "log-wrong-value", "`prompt_tokens[0]` is -5"),
        ({"prompt_tokens": [5.5]}, "log-wrong-value", "`prompt_tokens[0]` is a fraction"),
        ({"prompt_tokens": [5, 5]}, "log-lengths-differ", "2 elements for 1 requests"),
        ({"prompt_sha256": ["xyz"]}, "log-wrong-value", "`prompt_sha256[0]` is text"),
        ({"request_ids": "a"}, "log-wrong-value", "`request_ids` is text, where a list belongs"),
        ({"request_ids": ["a\u001b[31m"]}, "log-wrong-value", "`request_ids[0]` is text"),
        ({"request_ids": ["a" * 5000]}, "log-wrong-value", "`request_ids[0]` is text"),
        ({"request_ids": [[[]]]}, "log-wrong-value", "`request_ids[0]` is a list"),
        ({"scheduled_tokens": [float("inf")]}, "log-wrong-value", "`scheduled_tokens[0]` is inf"),
        ({"computed_tokens": [0, 0]}, "log-lengths-differ", "`computed_tokens` has 2"),
    ],
)
def test_a_value_that_cannot_be_is_named_with_its_place(tmp_path, change, name, said):
    wrong = json.dumps(step(["a"]) | change) + "\n"
    found = read_records(log(tmp_path, wrong, json.dumps(step(["b"], step=1)) + "\n"), "infer")
    assert [line.request_ids for line in found.lines] == [("b",)]
    (problem,) = found.problems
    assert (problem.name, problem.level, problem.where[-2:]) == (name, "error", ":1")
    assert said in problem.what


@pytest.mark.parametrize(
    ("text", "name"),
    [
        pytest.param("[1, 2]", "log-not-an-object", id="a list"),
        pytest.param("null", "log-not-an-object", id="null"),
        pytest.param('{"step": 0, "step": 1}', "log-duplicate-key", id="a key twice"),
        pytest.param("{}", "log-key-missing", id="no keys"),
        pytest.param("[" * 100_000, "log-not-json", id="deep"),
        pytest.param('{"step": ' + "9" * 5000 + "}", "log-not-json", id="many digits"),
        pytest.param("\0\0\0\0", "log-not-json", id="a hole"),
        pytest.param("\ufeff{}", "log-not-json", id="a byte order mark"),
    ],
)
def test_lines_of_another_kind(tmp_path, text, name):
    assert names(read_records(log(tmp_path, text, "\n"), "infer")) == [name]


def test_bytes_that_are_no_text(tmp_path):
    (log(tmp_path, "") / "rank0/dispatch_log.jsonl").write_bytes(b'{"phase": "\xff"}\n')
    (problem,) = read_records(tmp_path, "infer").problems
    assert (problem.name, problem.what) == ("log-not-json", "not UTF-8 at byte 11")


def test_a_huge_line_is_passed_over_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonl, "LONGEST_LINE", 1000)
    found = read_records(log(tmp_path, "x" * 5_000_000, "\n", json.dumps(step(["a"])) + "\n"), "infer")
    assert (names(found), len(found.lines), found.lines[0].number) == (["log-huge-line"], 1, 2)


def test_more_steps_or_log_probs_than_anyone_can_hold(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "MOST_LINES", 3)
    monkeypatch.setattr(records, "MOST_LOGPROBS", 3)
    write_steps(tmp_path, "infer", [step(["a"])] * 5)
    write_prefills(tmp_path, [prefill("a", [-1.0, -1.0]), prefill("b", [-1.0, -1.0]), prefill("c", [-1.0])])
    found = read_records(tmp_path, "infer")
    assert (len(found.lines), len(found.prefills), names(found)) == (3, 1, ["log-too-long", "log-too-long"])


def test_a_hundred_wrong_lines_are_counted(tmp_path):
    found = read_records(log(tmp_path, "{}\n" * 100), "infer")
    assert names(found) == ["log-key-missing"] * 20 + ["more-wrong-lines"]
    assert found.problems[-1].what.startswith("80 ")


def test_a_copied_line_is_left_out_and_a_contradiction_is_an_error(tmp_path):
    lines = [step(["a"], step=4), step(["a"], step=4, time="later"), step(["b"], step=4)]
    found = read_records(write_steps(tmp_path, "infer", lines), "infer")
    assert [(one.name, one.level) for one in found.problems] == [
        ("step-logged-twice", "warning"),
        ("step-lines-differ", "error"),
    ]
    assert [line.request_ids for line in found.lines] == [("a",), ("b",)]  # of the two nobody takes one


def test_log_probs_of_a_request_stand_once_but_those_without_an_id_are_each_their_own(tmp_path):
    named = [prefill("a", [-1.0]), prefill("a", [-1.0]), prefill("a", [-2.0])]
    found = read_records(write_prefills(tmp_path, [*named, prefill(None, [-1.0]), prefill(None, [-1.0])]), "infer")
    assert names(found) == ["prefill-logged-twice", "prefill-lines-differ"]
    assert [one.request_id for one in found.prefills] == [None, None]


def test_two_runs_in_one_folder_are_told(tmp_path):
    write_steps(tmp_path, "infer", [step(["a"], pid=1)])
    write_steps(tmp_path, "infer", [step(["a"], pid=2)])
    found = read_records(tmp_path, "infer")
    assert ([line.pid for line in found.lines], names(found)) == ([1, 2], ["several-processes"])


def test_both_sides_in_one_folder(tmp_path):
    write_steps(tmp_path, "infer", [step(["a"])])
    write_steps(tmp_path, "train", [step(["b"])])
    found = read_records(tmp_path, "train")
    assert ([line.request_ids for line in found.lines], names(found)) == ([("b",)], ["shared-dump-path"])


def test_log_probs_keep_what_is_wrong_in_them_for_whoever_computes(tmp_path):
    values = [-1.0, float("nan"), float("-inf"), -2]
    write_prefills(tmp_path, [prefill("a", values, "infer", prompt_sha256=digest("p")), prefill("a", [-1.0])])
    found = read_records(tmp_path, "train")
    assert found.problems == ()
    assert [(line.side, line.n_tokens, line.mode, line.rank) for line in found.prefills] == [
        ("infer", 5, "raw", 0),
        ("train", 2, "raw", 0),
    ]
    assert repr(found.prefills[0].logprobs) == "(-1.0, nan, -inf, -2.0)"


@pytest.mark.parametrize(
    "change",
    [
        {"logprobs": [None]},
        {"logprobs": [True]},
        {"logprobs": "x"},
        {"logprobs": [10**400]},
        {"n_tokens": 0},
        {"side": "both"},
        {"temperature": float("nan")},
        {"temperature": "1"},
        {"logprobs_mode": 3},
    ],
    ids=lambda change: "-".join(change),
)
def test_log_prob_lines_of_wrong_types(tmp_path, change):
    found = read_records(write_prefills(tmp_path, [prefill("a", [-1.0]) | change]), "infer")
    assert (found.prefills, names(found)) == ((), ["log-wrong-value"])


def test_what_is_no_file_is_not_opened(tmp_path):
    (tmp_path / "rank0").mkdir()
    os.mkfifo(tmp_path / "rank0/dispatch_log.jsonl")
    (tmp_path / "rank0/prefill_logprobs.jsonl").symlink_to("nowhere")
    assert names(read_records(tmp_path, "infer")) == ["log-not-a-file", "log-not-a-file", "no-log"]
