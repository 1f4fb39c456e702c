"""Comparable or not: lengths, padding and token ids, rank by rank."""

from __future__ import annotations

import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stages.dumps.outline import EMBEDDING
from stages.dumps.problem import ERROR
from stages.dumps.reading import read_dump
from stages.dumps.shapes import DIFFER, EQUAL, UNKNOWN, Pair, compare, pair, side_by_side
from stages.dumps.steps import label
from stages.dumps.token_ids import BACK, FRONT, OTHER, PADDING, Ids, input_file, read_ids
from stages.sides import Side, SideError
from tests.stages.dumps.made import SHA, folder, line, outline, step
from tests.stages.dumps.synthetic import Model, write_dump

OTHER_SHA = "b" * 64


def one_pair(train_shape, infer_shape, train=None, infer=None, **ids):
    trained = line(phase="log_prob", side="train", **(train or {}))
    return Pair(step(train_shape, trained), step(infer_shape, line(**(infer or {}))), **ids)


def names(verdict):
    return {one.name for one in verdict.problems}


def test_equal_and_as_long_as_the_prompt():
    verdict = compare([one_pair((1, 190), (190,), {"prompts": (190,)}, {"prompts": (190,)})])
    assert verdict.comparable is True
    assert (verdict.rows[0].prompt, verdict.rows[0].ids, verdict.problems) == (190, EQUAL, ())


@pytest.mark.parametrize(
    ("train_shape", "infer_shape", "expected"),
    [
        ((1, 256), (190,), {"padding-left", "lengths-differ"}),
        ((1, 256), (256,), {"padding-left"}),  # equal, and both wrong
        ((1, 190), (190,), set()),
        ((1, 190), (62,), {"prefix-cache-hit", "lengths-differ"}),
        ((1, 95), (190,), {"input-too-short", "lengths-differ"}),
    ],
)
def test_every_way_to_be_of_another_length(train_shape, infer_shape, expected):
    verdict = compare([one_pair(train_shape, infer_shape, {"prompts": (190,)}, {"prompts": (190,)})])
    assert names(verdict) == expected
    assert verdict.comparable is (not expected)
    assert all(one.level == ERROR for one in verdict.problems)


def test_the_response_is_told_from_padding():
    verdict = compare([one_pair((1, 25), (19,), {"token_count": 25})])
    assert names(verdict) == {"response-left", "lengths-differ"}


@pytest.mark.parametrize(
    ("ids", "name", "said"),
    [
        (Ids(32, OTHER_SHA, BACK, PADDING), "padding-left", "padding in front of it"),
        (Ids(32, OTHER_SHA, FRONT, PADDING), "padding-left", "padding behind it"),
        (Ids(32, OTHER_SHA, FRONT, OTHER), "response-left", "other tokens behind it"),
    ],
)
def test_the_saved_input_tells_where_the_padding_stands(ids, name, said):
    verdict = compare([one_pair((1, 32), (19,), train_ids=ids)])
    assert name in names(verdict)
    assert any(said in one.what for one in verdict.problems)


def test_other_tokens_of_the_same_length():
    verdict = compare([one_pair((1, 19), (19,), {"prompt_sha256": (OTHER_SHA,)})])
    assert (verdict.comparable, names(verdict), verdict.rows[0].ids) == (False, {"token-ids-differ"}, DIFFER)


@pytest.mark.parametrize(
    ("train", "infer", "train_ids", "infer_ids", "ids", "comparable"),
    [
        (None, None, None, None, UNKNOWN, None),
        (None, SHA, None, None, UNKNOWN, None),
        (None, None, Ids(19, SHA), Ids(19, SHA), EQUAL, True),
        (None, None, Ids(19, SHA), Ids(19, OTHER_SHA), DIFFER, False),
        (SHA, SHA, Ids(19, OTHER_SHA), Ids(19, SHA), DIFFER, False),
        (None, None, Ids(error="it cannot be loaded"), Ids(19, SHA), UNKNOWN, None),
    ],
)
def test_what_is_not_known_is_not_equal(train, infer, train_ids, infer_ids, ids, comparable):
    logs = {"prompt_sha256": (train,)}, {"prompt_sha256": (infer,)}
    verdict = compare([one_pair((1, 19), (19,), *logs, train_ids=train_ids, infer_ids=infer_ids)])
    assert (verdict.rows[0].ids, verdict.comparable) == (ids, comparable)


def test_a_dump_that_is_not_the_logs():
    verdict = compare([one_pair((1, 19), (19,), train_ids=Ids(19, OTHER_SHA))])
    assert names(verdict) == {"log-and-dump-differ"}


def test_logs_that_do_not_agree():
    assert "prompt-differs" in names(compare([one_pair((1, 19), (19,), {"prompts": (18,)})]))
    assert "prompt-differs" in names(compare([one_pair((1, 19), (19,))], prompt=20))


def test_without_a_length_both_may_be_padded():
    lines = {"prompts": (None,)}, {"prompts": (None,)}
    verdict = compare([one_pair((1, 19), (19,), *lines)])
    assert (verdict.comparable, names(verdict)) == (None, {"prompt-length-unknown"})


def test_no_comparison_is_a_failure():
    assert compare([]).comparable is False


def test_every_rank_counts():
    good, bad = one_pair((1, 19), (19,)), one_pair((1, 32), (19,))
    assert compare([good, good]).comparable is True
    assert compare([good, bad]).comparable is False


def ranked(*ranks):
    return [replace(step((19,), line()), folder=folder(0, rank)) for rank in ranks]


def test_pairs_are_made_rank_by_rank():
    pairs, problems = pair(ranked(1, 0), ranked(0, 1))
    assert [(one.train.folder.rank, one.infer.folder.rank) for one in pairs] == [(0, 0), (1, 1)]
    assert problems == ()
    pairs, problems = pair(ranked(0, 1), ranked(0))
    assert (len(pairs), [one.name for one in problems]) == (1, ["ranks-differ"])
    pairs, problems = pair(ranked(2, 3), ranked(0))
    assert (pairs, [one.level for one in problems]) == ((), [ERROR])


def test_one_process_of_each_is_a_pair():
    alone = [label(folder(0, None, 4711), line(), outline((19,)))]
    assert pair(alone, ranked(0))[1] == ()
    assert [one.name for one in pair(ranked(3), alone)[1]] == ["rank-differs"]


def test_modules_side_by_side(tmp_path):
    train = read_dump(write_dump(tmp_path / "train", Model(1), 19))
    infer = read_dump(write_dump(tmp_path / "infer", Model(1, fused=True), 19))
    rows = {(one.path, one.tensor): one for one in side_by_side(train, infer)}
    assert rows["model.norm", "input.0"].same
    assert rows["model.norm", "input.0"].train == (1, 19, 4096)
    assert rows["model.layers.0.self_attn.q_proj", "output.0"].infer is None
    assert rows["model.layers.0.self_attn.qkv_proj", "output.0"].train is None
    longer = read_dump(write_dump(tmp_path / "longer", Model(1, fused=True), 20))
    assert not any(one.same for one in side_by_side(train, longer))


# --- saved inputs -----------------------------------------------------------------------------------------------------


def saved(tmp_path: Path, data_name: str | None, of=None):
    dump = outline((1, 4))
    dump = replace(dump, heads=(replace(dump.heads[0], source=EMBEDDING, data_name=data_name),))
    place = replace(folder(), path=tmp_path / "step0" / "rank0")
    (place.path / "dump_tensor_data").mkdir(parents=True, exist_ok=True)
    return label(place, of or line(prompts=(3,)), dump)


@pytest.mark.parametrize(
    "name", ["../../../secret.pt", "/etc/passwd", "..", "a\0.pt", "a\\b.pt", "ids.npy", "x" * 5000 + ".pt", None]
)
def test_no_file_outside_is_opened(tmp_path, name):
    (tmp_path / "secret.pt").write_text("x")
    path, why = input_file(saved(tmp_path, name))
    assert path is None
    assert why.isprintable() and len(why) < 300


def test_links_and_pipes_are_no_tensors(tmp_path):
    one = saved(tmp_path, "ids.pt")
    file = one.folder.path / "dump_tensor_data" / "ids.pt"
    file.symlink_to("/etc/passwd")
    assert input_file(one)[0] is None
    file.unlink()
    file.write_bytes(b"x")
    assert input_file(one)[0] == file
    moved = one.folder.path / "moved"
    (one.folder.path / "dump_tensor_data").rename(moved)
    (one.folder.path / "dump_tensor_data").symlink_to(moved)
    assert input_file(one)[0] is None


FAKE = """#!%s
import sys, types
class Tensor:
    def __init__(self, ids): self.ids = ids
    def is_floating_point(self): return False
    def is_complex(self): return False
    def numel(self): return len(self.ids)
    def reshape(self, _axis): return self
    def tolist(self): return self.ids
def load(path, map_location, weights_only):
    assert weights_only is True and map_location == "cpu"
    return Tensor([int(word) for word in open(path).read().split()])
torch = types.ModuleType("torch")
torch.Tensor, torch.load = Tensor, load
sys.modules["torch"] = torch
exec(sys.stdin.read())
"""


@pytest.fixture
def side(tmp_path):
    """An interpreter whose torch reads words of digits: what the payload does with ids is the same."""
    python = tmp_path / "python"
    python.write_text(FAKE % sys.executable)
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    return Side("train", (), str(python))


PROMPT = "5,6,7"


@pytest.mark.parametrize(
    ("ids", "real", "rest"),
    [
        ("5 6 7", None, None),
        ("0 0 5 6 7", BACK, PADDING),
        ("5 6 7 0 0", FRONT, PADDING),
        ("5 6 7 8 9", FRONT, OTHER),
        ("1 2 3 4", None, None),
        ("nonsense", None, None),
    ],
)
def test_ids_are_compared_where_they_are(tmp_path, side, ids, real, rest):
    import hashlib

    sha = hashlib.sha256(PROMPT.encode()).hexdigest()
    one = saved(tmp_path, "ids.pt", line(prompts=(3,), prompt_sha256=(sha,)))
    (one.folder.path / "dump_tensor_data" / "ids.pt").write_text(ids)
    (answer,) = read_ids(side, [one])
    assert (answer.real, answer.rest) == (real, rest)
    assert (answer.sha256 == sha) is (ids == "5 6 7")
    assert bool(answer.error) is (ids == "nonsense")
    assert "nonsense" not in answer.error


def test_steps_without_a_file_ask_nobody(tmp_path):
    nobody = Side("train", (), "/nonexistent/python")
    assert [one.error != "" for one in read_ids(nobody, [saved(tmp_path, None)])] == [True]
    one = saved(tmp_path, "ids.pt")
    (one.folder.path / "dump_tensor_data" / "ids.pt").write_text("1")
    with pytest.raises(SideError):
        read_ids(nobody, [one])
