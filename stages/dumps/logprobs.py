"""How far the two sides' log-probs of the prompts' tokens are apart: |exp(train) - exp(infer)| for tokens 1 to P - 1.

Joined by request and by token. What does not fit is refused, never padded, cut or shifted; what was not computed is None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from locales import _
from stages.dumps.association import associate
from stages.dumps.problem import ERROR, NOTE, WARNING, Problem
from stages.dumps.records import Line, Prefill
from stages.dumps.sampling import Sampling, Semantics, check_semantics
from stages.sides import INFER, TRAIN

_POSITIVE = 1e-2
"""A log-prob may be above 0 by rounding, but not by this."""
_SHIFT_RATIO = 0.1
_NOISE = 1e-6
_MOST_PROBLEMS = 20


@dataclass(frozen=True)
class Spread:
    """Of |exp(train) - exp(infer)| over ``count`` tokens; ``std`` of the population, as the training log prints it."""

    count: int
    mean: float
    max: float
    std: float


@dataclass(frozen=True)
class Compared:
    """One request. ``differences`` by position: the first is that of token 1. Where nothing was computed there are none, ``spread``
    is None and ``reason`` says why."""

    train: Prefill
    infer: Prefill
    rule: str
    differences: tuple[float, ...]
    spread: Spread | None
    reason: str = ""


@dataclass(frozen=True)
class Differences:
    """``spread`` over the tokens of all requests that were computed; None when there are none: not computed, which is not 0."""

    compared: tuple[Compared, ...]
    spread: Spread | None
    problems: tuple[Problem, ...]


def spread(differences: Sequence[float]) -> Spread | None:
    if not differences:
        return None
    mean = math.fsum(differences) / len(differences)
    variance = math.fsum((one - mean) ** 2 for one in differences) / len(differences)
    return Spread(len(differences), mean, max(differences), math.sqrt(variance))


def prefill_differences(train: Iterable[Prefill], infer: Iterable[Prefill] = ()) -> Differences:
    """``train``, ``infer``: the log-probs found in each side's folder.

    The training side's file may hold the engine's as well, as the trainer got them; the engine's own record goes first.
    """
    lines = list(train)
    samples = [line for line in lines if line.side == TRAIN]
    joined = _Joined()
    for others in ([line for line in infer if line.side == INFER], [line for line in lines if line.side == INFER]):
        joined.add([sample for sample in samples if _key(sample) not in joined.couples], others)
    compared, problems = [], joined.problems(samples)
    for _place, (sample, other, rule) in sorted(joined.couples.items(), key=lambda item: item[0]):
        one, said = compare(sample, other, rule)
        compared.append(one)
        problems += said
    total = spread([value for one in compared for value in one.differences])
    if total is None:
        what = _("the difference of the prompts' log-probs was not computed")
        todo = _("PREFILL_LOGPROB_DIFF=1 on both sides writes what it needs")
        problems.append(Problem("prefill-not-computed", NOTE, what, "", todo))
    return Differences(tuple(compared), total, tuple(_bounded(problems)))


def _key(line: Prefill) -> tuple[str, int]:
    return (str(line.path), line.number)


class _Joined:
    """Training lines and the engine's that belong to them, by the rules of association."""

    def __init__(self) -> None:
        self.couples: dict[tuple[str, int], tuple[Prefill, Prefill, str]] = {}
        self.doubts: dict[tuple[str, int], Problem] = {}
        self.wrong: list[Problem] = []

    def add(self, samples: list[Prefill], others: list[Prefill]) -> None:
        if not samples or not others:
            return
        known = {_key(line): line for line in (*samples, *others)}
        found = associate(map(_as_line, samples), map(_as_line, others))
        for pair in found.pairs:
            train, infer = (known[str(place.line.path), place.line.number] for place in (pair.train, pair.infer))
            self.couples[_key(train)] = (train, infer, pair.rule)
        for doubt in found.ambiguous:
            what = _("{name}: {reason}").format(name=doubt.place.request_id or "-", reason=doubt.reason)
            key = (str(doubt.place.line.path), doubt.place.line.number)
            self.doubts[key] = Problem("prefill-ambiguous", WARNING, what, doubt.place.line.where)
        for one in found.mismatched:
            what = _("{name}: {reason}").format(name=one.train.request_id or "-", reason=one.reason)
            self.wrong.append(Problem("prefill-tokens-differ", ERROR, what, one.train.line.where))

    def problems(self, samples: list[Prefill]) -> list[Problem]:
        doubts = [problem for key, problem in self.doubts.items() if key not in self.couples]
        alone = len(samples) - len(self.couples) - len(doubts) - len(self.wrong)
        told = [*self.wrong, *doubts]
        if alone > 0:
            what = _("{count} prompts have log-probs on the training side only").format(count=alone)
            told.append(Problem("prefill-one-sided", WARNING, what))
        return told


def _as_line(line: Prefill) -> Line:
    return Line(
        side=line.side,
        path=line.path,
        number=line.number,
        rank=line.rank,
        pid=line.pid,
        step=0,
        phase="prefill",
        request_ids=(line.request_id,),
        prompt_sha256=(line.prompt_sha256,),
        prompt_tokens=(line.n_tokens,),
    )


def compare(train: Prefill, infer: Prefill, rule: str = "exact") -> tuple[Compared, list[Problem]]:
    """One request's difference; or none, and why."""
    meaning = check_semantics(Sampling(train.mode, train.temperature), Sampling(infer.mode, infer.temperature))
    problem = (
        _refused(train, meaning) or _lengths(train, infer) or _not_finite(train, infer) or _no_logprobs(train, infer)
    )
    if problem:
        return Compared(train, infer, rule, (), None, problem.what), [problem]
    differences = tuple(
        abs(math.exp(one) - math.exp(other)) for one, other in zip(train.logprobs, infer.logprobs, strict=True)
    )
    of_all = spread(differences)
    if of_all is None:
        what = _("not computed: a prompt of one token has no log-prob")
        return Compared(train, infer, rule, (), None, what), [Problem("prefill-empty", NOTE, what, train.where)]
    notes = [Problem("prefill-processed", NOTE, note, train.where) for note in meaning.notes]
    return Compared(train, infer, rule, differences, of_all), [*notes, *_hints(train, infer, of_all)]


def _refused(train: Prefill, meaning: Semantics) -> Problem | None:
    if meaning.comparable:
        return None
    todo = _("both sides have to give raw log-probs at temperature 1")
    return Problem("prefill-sampling-differs", ERROR, "; ".join(meaning.reasons), train.where, todo)


def _lengths(train: Prefill, infer: Prefill) -> Problem | None:
    counts = (len(train.logprobs), len(infer.logprobs))
    if train.n_tokens == infer.n_tokens and set(counts) == {train.n_tokens - 1}:
        return None
    what = _(
        "log-probs: {train} on the training side, {infer} on the inference side; a prompt of {tokens} tokens has {wanted}"
    )
    told = what.format(train=counts[0], infer=counts[1], wanted=train.n_tokens - 1, tokens=train.n_tokens)
    if train.n_tokens != infer.n_tokens:
        what = _("a prompt of {train} tokens on the training side, of {infer} on the inference side")
        told = what.format(train=train.n_tokens, infer=infer.n_tokens)
    todo = _("nothing is padded or cut: find the side that gives too few or too many")
    return Problem("prefill-length", ERROR, told, train.where, todo)


def _not_finite(train: Prefill, infer: Prefill) -> Problem | None:
    for line in (train, infer):
        at = next((at for at, value in enumerate(line.logprobs) if not math.isfinite(value)), None)
        if at is not None:
            what = _("the {side} side's log-prob at position {at} (of token {token}) is {value}")
            told = what.format(side=line.side, at=at, token=at + 1, value=line.logprobs[at])
            return Problem("prefill-not-finite", ERROR, told, line.where)
    return None


def _no_logprobs(train: Prefill, infer: Prefill) -> Problem | None:
    for line in (train, infer):
        at = next((at for at, value in enumerate(line.logprobs) if value > _POSITIVE), None)
        if at is not None:
            what = _("the {side} side's value at position {at} is above 0: logits, or probabilities, but no log-prob")
            return Problem("prefill-not-logprobs", ERROR, what.format(side=line.side, at=at), line.where)
    return None


def _hints(train: Prefill, infer: Prefill, found: Spread) -> list[Problem]:
    """What the difference looks like. A hint only: nothing is shifted or filled in."""
    hints = []
    for one, other, where in (
        (train.logprobs[1:], infer.logprobs[:-1], _("the training side is one token late")),
        (train.logprobs[:-1], infer.logprobs[1:], _("the inference side is one token late")),
    ):
        moved = spread([abs(math.exp(a) - math.exp(b)) for a, b in zip(one, other, strict=True)])
        if moved and moved.count > 1 and found.mean > _NOISE and moved.mean <= found.mean * _SHIFT_RATIO:
            what = _("looks like an off-by-one: {where}; shifted, the mean would be {moved:.3g} instead of {mean:.3g}")
            told = what.format(where=where, moved=moved.mean, mean=found.mean)
            todo = _("the log-prob of token t comes from the logits at t - 1")
            hints.append(Problem("prefill-off-by-one", WARNING, told, train.where, todo))
    for line, values, others in ((train, train.logprobs, infer.logprobs), (infer, infer.logprobs, train.logprobs)):
        filled = next((at for at in (0, len(values) - 1) if values[at] == 0.0 and others[at] < -_POSITIVE), None)
        if filled is not None:
            what = _("the {side} side's log-prob at position {at} is exactly 0, a probability of 1: filled in?")
            hints.append(Problem("prefill-filled", WARNING, what.format(side=line.side, at=filled), line.where))
    return hints


def _bounded(problems: list[Problem]) -> list[Problem]:
    kept: list[Problem] = []
    counts: dict[str, int] = {}
    for one in problems:
        counts[one.name] = counts.get(one.name, 0) + 1
        if counts[one.name] <= _MOST_PROBLEMS:
            kept.append(one)
    for name, count in counts.items():
        if count > _MOST_PROBLEMS:
            kept.append(
                Problem(name, WARNING, _("the same in {count} more requests").format(count=count - _MOST_PROBLEMS))
            )
    return kept


def by_position(differences: Sequence[float], most: int = 512) -> list[tuple[int, float, float]]:
    """For a plot of one request: (first token's position, mean, max) of at most ``most`` stretches of tokens."""
    width = max(1, math.ceil(len(differences) / most))
    parts = [(at + 1, differences[at : at + width]) for at in range(0, len(differences), width)]
    return [(position, math.fsum(part) / len(part), max(part)) for position, part in parts]
