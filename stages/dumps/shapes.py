"""Whether the chosen steps of both sides can be compared: as many tokens on both as the prompt has, the same ones, rank by rank.

Equal lengths are not enough: where both sides are padded to the same width, they are equal and wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from locales import _, ngettext
from stages.dumps.entry import FORWARD, Tensor, parse_name
from stages.dumps.problem import ERROR, WARNING, Problem
from stages.dumps.reading import Dump
from stages.dumps.steps import TODO, Step
from stages.dumps.token_ids import BACK, PADDING, Ids
from stages.sides import INFER, TRAIN

EQUAL, DIFFER, UNKNOWN = "equal", "differ", "unknown"


@dataclass(frozen=True)
class Pair:
    """One process of each side, with the token ids of the saved inputs where they were read."""

    train: Step
    infer: Step
    train_ids: Ids | None = None
    infer_ids: Ids | None = None


@dataclass(frozen=True)
class Row:
    """What was compared of a pair. ``prompt``: real tokens; ``ids``: equal, differ or unknown; ``comparable``: None is unknown."""

    train: Step
    infer: Step
    prompt: int | None
    ids: str
    comparable: bool | None
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class Verdict:
    """``comparable`` is True only where every pair is, and there is one."""

    rows: tuple[Row, ...]
    comparable: bool | None
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class ShapeRow:
    """A module's tensor on both sides, None where a side has none. ``same``: equal, but for a batch axis of one."""

    path: str
    tensor: str
    train: tuple[int, ...] | None
    infer: tuple[int, ...] | None
    same: bool


def pair(train: Sequence[Step], infer: Sequence[Step]) -> tuple[tuple[Pair, ...], tuple[Problem, ...]]:
    """The processes of both sides, rank by rank; one process on each side is a pair whatever it is called."""
    if len(train) == 1 == len(infer):
        here, there = train[0].folder.rank or 0, infer[0].folder.rank or 0
        if here == there:
            return (Pair(train[0], infer[0]),), ()
        what = _("the request is on rank {train} of the training and on rank {infer} of the inference side")
        problem = Problem("rank-differs", WARNING, what.format(train=here, infer=there), _where(train[0]))
        return (Pair(train[0], infer[0]),), (problem,)
    of_train = {one.folder.rank: one for one in train if one.folder.rank is not None}
    of_infer = {one.folder.rank: one for one in infer if one.folder.rank is not None}
    pairs = tuple(Pair(of_train[rank], of_infer[rank]) for rank in sorted(of_train.keys() & of_infer.keys()))
    alone = len(train) + len(infer) - 2 * len(pairs)
    if not alone:
        return pairs, ()
    what = ngettext(
        "{count} process has no counterpart: {train} of the training and {infer} of the inference side hold the request",
        "{count} processes have no counterpart: {train} of the training and {infer} of the inference side hold the request",
        alone,
    ).format(count=alone, train=len(train), infer=len(infer))
    todo = _("the same TP, PP, CP and DP on both sides, and no balancing of batches")
    return pairs, (Problem("ranks-differ", WARNING if pairs else ERROR, what, "", todo),)


def compare(pairs: Sequence[Pair], prompt: int | None = None) -> Verdict:
    """``prompt``: real tokens of the request's prompt, where more is known of it than the logs say."""
    if not pairs:
        what = _("there is nothing to compare: no pair of steps")
        return Verdict((), False, (Problem("nothing-compared", ERROR, what),))
    rows = tuple(_row(one, prompt) for one in pairs)
    problems = tuple(dict.fromkeys(problem for row in rows for problem in row.problems))
    answers = [row.comparable for row in rows]
    return Verdict(rows, False if False in answers else None if None in answers else True, problems)


def _row(one: Pair, prompt: int | None) -> Row:
    length, problems = _prompt(one, prompt)
    problems += _length(TRAIN, one.train, one.train_ids, length)
    problems += _length(INFER, one.infer, one.infer_ids, length)
    tokens = one.train.tokens, one.infer.tokens
    if None not in tokens and tokens[0] != tokens[1]:
        what = _("the inputs differ in length: {train} tokens on the training, {infer} on the inference side")
        text = what.format(train=tokens[0], infer=tokens[1])
        problems.append(Problem("lengths-differ", ERROR, text, _where(one.train)))
    equal, more = _ids(one)
    problems += more
    failed = any(problem.level == ERROR for problem in problems)
    sure = length is not None and equal == EQUAL and None not in tokens
    return Row(one.train, one.infer, length, equal, False if failed else True if sure else None, tuple(problems))


def _prompt(one: Pair, prompt: int | None) -> tuple[int | None, list[Problem]]:
    """Real tokens of the prompt, if everybody who knows says the same."""
    train, infer = one.train.prompt_tokens, one.infer.prompt_tokens
    known = {length for length in (prompt, train, infer) if length is not None}
    if len(known) == 1:
        return known.pop(), []
    if not known:
        what = _("no log says how long the prompt is: equal inputs may both be padded")
        return None, [Problem("prompt-length-unknown", WARNING, what, _where(one.train))]
    lengths = ", ".join(map(str, sorted(known)))
    what = _("it is not agreed how long the prompt is: {lengths} tokens").format(lengths=lengths)
    return None, [Problem("prompt-differs", ERROR, what, _where(one.train), _("are these steps of one request?"))]


def _length(side: str, step: Step, ids: Ids | None, prompt: int | None) -> list[Problem]:
    if step.tokens is None:
        what = _("{side}: the dump does not show how many tokens went in").format(side=side)
        return [Problem("tokens-unknown", WARNING, what, _where(step), _("level L0 or mix, and no scope or list"))]
    if prompt is None or step.tokens == prompt:
        return []
    what = _("{side}: the input has {tokens} tokens, the prompt {prompt}")
    given = what.format(side=side, tokens=step.tokens, prompt=prompt)
    if step.tokens < prompt:
        name = step.problem or "input-too-short"
    else:
        name = step.problem if step.problem == "response-left" else "padding-left"
        if ids is not None and ids.real:
            name = "padding-left" if ids.rest == PADDING else "response-left"
            kind = _("padding") if ids.rest == PADDING else _("other tokens")
            end = _("in front of it") if ids.real == BACK else _("behind it")
            given = _("{given}; {kind} {end}").format(given=given, kind=kind, end=end)
    return [Problem(name, ERROR, given, _where(step), TODO[name])]


def _ids(one: Pair) -> tuple[str, list[Problem]]:
    """By the hashes that the logs have, and by those of the saved inputs, which are what was computed."""
    problems = [
        *_other_than_logged(TRAIN, one.train, one.train_ids),
        *_other_than_logged(INFER, one.infer, one.infer_ids),
    ]
    train, infer = _logged(one.train), _logged(one.infer)
    both_logged = train is not None and infer is not None
    saved = [ids.sha256 for ids in (one.train_ids, one.infer_ids) if ids is not None and ids.sha256]
    both_saved = len(saved) == 2 and one.train.tokens == one.infer.tokens
    if (both_logged and train != infer) or (both_saved and saved[0] != saved[1]):
        todo = _("the same tokenizer and chat template on both sides, and the prompt's ids handed over, not its text")
        what = _("the token ids of the prompt differ")
        return DIFFER, [*problems, Problem("token-ids-differ", ERROR, what, _where(one.train), todo)]
    if both_logged or both_saved:
        return EQUAL, problems
    what = _("whether the token ids are equal is not known: a log has no hash of them, and the inputs were not read")
    errors = [ids.error for ids in (one.train_ids, one.infer_ids) if ids is not None and ids.error]
    todo = _("task tensor, and the interpreter of both sides")
    text = f"{what} ({errors[0]})" if errors else what
    return UNKNOWN, [*problems, Problem("token-ids-unknown", WARNING, text, _where(one.train), todo)]


def _other_than_logged(side: str, step: Step, ids: Ids | None) -> list[Problem]:
    logged = _logged(step)
    if ids is not None and ids.error:
        what = _("{side}: the saved input was not held against the log: {why}").format(side=side, why=ids.error)
        return [Problem("input-not-read", WARNING, what, _where(step))]
    if ids is None or not ids.sha256 or logged is None or ids.sha256 == logged or ids.rows != step.prompt_tokens:
        return []
    what = _("{side}: the saved input holds other tokens than the log says").format(side=side)
    return [Problem("log-and-dump-differ", ERROR, what, _where(step), _("are they of one run?"))]


def _logged(step: Step) -> str | None:
    """The hash of the only request's prompt."""
    return step.line.prompt_sha256[0] if step.line is not None and len(step.line.prompt_sha256) == 1 else None


def _where(step: Step) -> str:
    return str(step.folder.path)


def side_by_side(train: Dump, infer: Dump) -> tuple[ShapeRow, ...]:
    """Inputs and outputs of the modules of both sides, in the training side's order, then those of the inference side alone."""
    left, right = _by_path(train), _by_path(infer)
    rows = []
    for path, tensor in dict.fromkeys((*left, *right)):
        mine, other = left.get((path, tensor)), right.get((path, tensor))
        same = mine is not None and other is not None and squeezed(mine.shape) == squeezed(other.shape)
        rows.append(ShapeRow(path, tensor, mine.shape if mine else None, other.shape if other else None, same))
    return tuple(rows)


def squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    """[1, P, H] is [P, H]."""
    return shape[1:] if len(shape) > 1 and shape[0] == 1 else shape


def _by_path(dump: Dump) -> dict[tuple[str, str], Tensor]:
    """Of the first call of each module."""
    found: dict[tuple[str, str], Tensor] = {}
    for entry in dump.entries:
        name = parse_name(entry.name)
        if name is None or not name.module or name.kind != FORWARD or name.call:
            continue
        for tensor in (*entry.inputs, *entry.kwargs.values(), *entry.outputs):
            found[name.path, tensor.name] = tensor
    return found
