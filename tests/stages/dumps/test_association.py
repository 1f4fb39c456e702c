"""Which request belongs to which sample: exact, by rule, by hash, and never by guessing."""

from __future__ import annotations

from pathlib import Path

import pytest

from stages.dumps.association import Association, associate
from stages.dumps.records import read_records
from stages.dumps.request_ids import RULES, origins
from tests.stages.dumps.written import step, write_steps

CASES = Path(__file__).parent.parent / "cases"
UUID = "0f9c2d4e-1111-4222-8333-abcdefabcdef"


def tie(tmp_path: Path, train, infer) -> Association:
    """Each side: the lines of its rank 0, or of several ranks by number."""
    for side, ranks in (("train", train), ("infer", infer)):
        for rank, lines in (ranks if isinstance(ranks, dict) else {0: ranks}).items():
            write_steps(tmp_path / side, side, lines, rank)
    return associate(*(read_records(tmp_path / side, side).lines for side in ("train", "infer")))


def sample(*ids: str | None, **more) -> dict:
    return step(ids, phase="log_prob", **more)


def pairs(found: Association) -> dict[str | None, tuple[str | None, str]]:
    return {pair.train.request_id: (pair.infer.request_id, pair.rule) for pair in found.pairs}


def problems(found: Association) -> set[str]:
    return {problem.name for problem in found.problems}


def case_38():
    case = CASES / "38-request-id-suffix"
    return [read_records(case / side, side).lines for side in ("train", "infer")]


def test_38_an_engine_s_suffix():
    found = associate(*case_38())
    assert {pair.train.request_id: (pair.infer.line.step, pair.rule) for pair in found.pairs} == {
        "req-7": (0, "vllm-suffix"),
        UUID: (1, "exact"),
        "req-8": (2, "vllm-suffix+openai-server-index"),
        "job-deadbeef": (5, "exact"),
    }
    (doubt,) = found.ambiguous
    assert (doubt.place.request_id, [place.line.step for place in doubt.candidates]) == ("req-9", [3, 4])
    assert found.unmatched == ()
    (problem,) = (one for one in found.problems if one.name == "request-ambiguous")
    assert problem.what == "req-9: 2 requests of the engine fit"


def test_38_prefixes_need_their_rule():
    found = associate(*case_38(), rules=tuple(rule for rule in RULES if rule.name == "vllm-suffix"))
    assert "req-8" not in pairs(found)
    assert {one.place.request_id for one in found.unmatched} == {"req-8", "cmpl-req-8-0-99ae74c8"}


@pytest.mark.parametrize(
    ("engine_id", "callers"),
    [
        ("r-1a2b3c4d", {"r": ("vllm-suffix",)}),
        ("r-1a2b3c4d-1a2b3c4d", {"r-1a2b3c4d": ("vllm-suffix",)}),
        ("r-1A2B3C4D", {}),
        ("r-1a2b3c4", {}),
        ("-1a2b3c4d", {}),
        (UUID, {}),
        (f"{UUID}-1a2b3c4d", {UUID: ("vllm-suffix",)}),
        ("chatcmpl-r", {"r": ("openai-server",)}),
        ("cmpl-r-0", {"r-0": ("openai-server",), "r": ("openai-server-index",)}),
        ("r-0", {}),
        ("r_P-1a2b3c4d", {"r_P": ("vllm-suffix",), "r": ("vllm-suffix", "verl-prefill")}),
        ("r_D-1a2b3c4d", {"r_D": ("vllm-suffix",)}),
        (
            "1_r-1a2b3c4d",
            {"r-1a2b3c4d": ("vllm-sample",), "1_r": ("vllm-suffix",), "r": ("vllm-sample", "vllm-suffix")},
        ),
        ("a" * 100_000, {}),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else "",
)
def test_what_callers_an_engine_s_id_may_come_from(engine_id, callers):
    assert origins(engine_id) == callers


def test_the_same_id_goes_before_every_rule(tmp_path):
    requests = [step(["job-deadbeef"]), step(["job-deadbeef-00000000"])]
    found = tie(tmp_path, [sample("job"), sample("job-deadbeef")], requests)
    assert pairs(found) == {"job-deadbeef": ("job-deadbeef", "exact")}
    assert {one.place.request_id for one in found.unmatched} == {"job", "job-deadbeef-00000000"}


def test_fewer_rules_go_before_more(tmp_path):
    found = tie(tmp_path, [sample("r"), sample("r_P")], [step(["r_P-1a2b3c4d"])])
    assert pairs(found) == {"r_P": ("r_P-1a2b3c4d", "vllm-suffix")}


def test_an_id_that_two_samples_may_have_given(tmp_path):
    found = tie(tmp_path, [sample("r"), sample("r-0")], [step(["cmpl-r-0"])])
    assert (found.pairs, {one.place.request_id for one in found.ambiguous}) == ((), {"r", "r-0"})


def test_decode_lines_and_probes_are_no_prefill(tmp_path):
    others = [step(["r"], phase=phase) for phase in ("decode", "health_check", "draft", "idle")]
    found = tie(tmp_path, [sample("r")], [*others, step([])])
    assert found.pairs == ()
    assert found.unmatched[0].reason == "the engine logged no prompt"
    assert "nothing-associated" in problems(found)


def test_a_whole_prefill_goes_before_its_parts(tmp_path):
    """Prefill and decode apart, behind one proxy: both engines know the id, and only one of them computes the prompt."""
    lines = [step(["cmpl-r-0-aaaaaaaa"], phase="chunked_prefill", pid=1), step(["cmpl-r-0-bbbbbbbb"], pid=2)]
    found = tie(tmp_path, [sample("r")], lines)
    assert pairs(found) == {"r": ("cmpl-r-0-bbbbbbbb", "vllm-suffix+openai-server-index")}


def test_where_there_are_only_chunks_the_first_one_is_tied(tmp_path):
    chunks = [step(["r"], phase="chunked_prefill", computed_tokens=[done]) for done in (0, 2, 4)]
    found = tie(tmp_path, [sample("r")], chunks)
    assert [(pair.infer.phase, pair.infer.line.step) for pair in found.pairs] == [("chunked_prefill", 0)]
    assert found.ambiguous == ()


def test_a_request_in_a_mixed_step_by_its_own_phase(tmp_path):
    mixed = step(["old", "r"], phase="mixed", phases=["decode", "prefill"])
    (pair,) = tie(tmp_path, [sample("r"), sample("old")], [mixed]).pairs
    assert (pair.train.request_id, pair.infer.index) == ("r", 1)


def test_several_requests_of_a_step(tmp_path):
    found = tie(tmp_path, [sample("a", "b", prompt="p")], [step(["b-00000001", "a-00000002"], prompt="p")])
    assert [(pair.train.index, pair.infer.index, pair.checked) for pair in found.pairs] == [(0, 1, True), (1, 0, True)]


def test_the_same_id_with_other_tokens_is_a_mismatch(tmp_path):
    found = tie(
        tmp_path,
        [sample("a", prompt="p"), sample("b", prompt_tokens=[4])],
        [step(["a"], prompt="q"), step(["b"], prompt_tokens=[6])],
    )
    assert found.pairs == ()
    assert [one.reason for one in found.mismatched] == [
        "both prompts have 5 tokens, but not the same ones",
        "the sample's prompt has 4 tokens, the request's 6",
    ]
    errors = [one.name for one in found.problems if one.level == "error"]
    assert errors == ["tokens-differ", "tokens-differ", "nothing-associated"]


def test_hashes_part_what_an_id_stands_for(tmp_path):
    """verl's full_determinism: one id for every turn of a conversation, and again in the next training step."""
    train = [sample("det-0", prompt="p"), sample("det-0", prompt="q")]
    infer = [step([f"det-0-0000000{at}"], prompt=prompt) for at, prompt in enumerate("qpx")]
    found = tie(tmp_path, train, infer)
    assert [(pair.train.line.step, pair.infer.line.step) for pair in found.pairs] == [(0, 1), (1, 0)]
    assert found.ambiguous == ()


def test_an_id_used_twice_is_ambiguous(tmp_path):
    found = tie(tmp_path, [sample("r")], [step(["r"]), step(["r"])])
    (doubt,) = found.ambiguous
    assert doubt.reason == "logged 2 times on one rank, by one process"
    found = tie(tmp_path / "2", [sample("r")], [step(["r"], pid=1), step(["r"], pid=2)])
    assert "an earlier run's lines?" in found.ambiguous[0].reason


def test_the_log_prob_forward_goes_before_the_training_step(tmp_path):
    found = tie(tmp_path, [step(["r"], phase="update_actor"), sample("r")], [step(["r"])])
    assert [pair.train.line.phase for pair in found.pairs] == ["log_prob"]


def test_ranks_one_by_one(tmp_path):
    train = {rank: [sample("r", prompt="p")] for rank in (2, 3)}
    infer = {rank: [step(["r-1a2b3c4d"], prompt="p")] for rank in (0, 1)}
    found = tie(tmp_path, train, infer)
    assert [(pair.train.line.rank, pair.infer.line.rank) for pair in found.pairs] == [(2, 0), (3, 1)]


def test_unequal_numbers_of_ranks(tmp_path):
    infer = {rank: [step(["a", "b"], prompt="p")] for rank in (0, 1)}
    found = tie(tmp_path, {1: [sample("a", prompt="p")], 3: [sample("b", prompt="p")]}, infer)
    assert [(pair.train.line.rank, pair.infer.line.rank) for pair in found.pairs] == [(1, 1), (3, 0)]
    assert "rank-counts-differ" in problems(found)


@pytest.mark.parametrize(("train_id", "infer_id"), [(None, "e-1a2b3c4d"), ("r", None), (None, None)])
def test_without_ids_on_a_side_the_hash_ties(tmp_path, train_id, infer_id):
    requests = [step([infer_id], prompt="p"), step([infer_id], prompt="q")]
    found = tie(tmp_path, [sample(train_id, prompt="p")], requests)
    assert [(pair.rule, pair.checked, pair.infer.line.step) for pair in found.pairs] == [("prompt_sha256", True, 0)]
    assert "tied-by-hash" in problems(found)


def test_without_ids_on_a_side_equal_prompts_are_ambiguous(tmp_path):
    found = tie(tmp_path, [sample(None, None, prompt="p")], [step(["e1", "e2"], prompt="p")])
    (doubt,) = found.ambiguous
    assert (found.pairs, len(doubt.candidates)) == ((), 4)
    assert doubt.reason == "ids are missing, and the same prompt is in 2 samples and 2 requests"
    assert found.unmatched == ()


def test_ids_that_do_not_fit_are_not_tied_by_hash(tmp_path):
    found = tie(tmp_path, [sample("r", prompt="p")], [step(["e"], prompt="p")])
    assert found.pairs == ()
    assert found.unmatched[0].reason == "no request has this id, but e has the same tokens"


def test_without_id_and_hash_there_is_nothing_to_go_by(tmp_path):
    found = tie(tmp_path, [sample(None)], [step([None])])
    assert [one.place.line.side for one in found.unmatched] == ["train", "infer"]


def test_problems_stay_few(tmp_path):
    found = tie(tmp_path, [sample(*(f"r{at}" for at in range(500)))], [step([f"e{at}" for at in range(300)])])
    assert (len(found.unmatched), len(found.problems)) == (800, 23)
    told = {problem.what for problem in found.problems}
    assert {"480 more samples have no request", "300 requests belong to no training sample"} <= told
