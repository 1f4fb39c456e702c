"""The request that is laid side by side, and its step on every rank: prefill, with exactly one request on both sides. What is unfit
is named, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from codemods.errors import UsageError
from locales import _
from stages.dumps.places import Association, Pair, Place
from stages.dumps.problem import Problem
from stages.dumps.records import Line
from stages.dumps.steps import CACHED, CHUNKED, DECODE, MIXED, PREFILL, UNKNOWN, Step, choose_each
from stages.sides import INFER, TRAIN

_NO_PROMPT = (DECODE, CHUNKED, CACHED, MIXED)
"""Labels of steps in which a prompt is not computed as a whole."""
_MOST_NAMES = 5000
"""Among which a slip is looked for."""


class Dumped:
    """The steps of both sides, found by the line of the log that names them."""

    def __init__(self, steps: Mapping[str, Sequence[Step]]) -> None:
        self.steps = steps
        self._by_line: dict[tuple[Path, int], Step] = {
            (step.line.path, step.line.number): step for own in steps.values() for step in own if step.line is not None
        }

        self._doubts = {
            (side, step.folder.process, step.folder.step): step.why
            for side, own in steps.items()
            for step in own
            if step.line is None and step.label == UNKNOWN
        }

    def of(self, line: Line) -> Step | None:
        return self._by_line.get((line.path, line.number))

    def doubt(self, side: str, line: Line) -> str:
        """Why no folder is surely the line's, where there are some that may be."""
        names = (f"rank{line.rank}", f"proc{line.pid}")
        return next(filter(None, (self._doubts.get((side, name, line.step)) for name in names)), "")


@dataclass(frozen=True)
class Candidate:
    """A request that is known on both sides, with a pair of places for each rank. ``unfit``: why it cannot be chosen."""

    pairs: tuple[Pair, ...]
    unfit: str

    @property
    def train(self) -> Place:
        return self.pairs[0].train

    @property
    def infer(self) -> Place:
        return self.pairs[0].infer

    def lines(self, side: str) -> list[Line]:
        """Of each rank."""
        return [(pair.train if side == TRAIN else pair.infer).line for pair in self.pairs]


def candidates(association: Association, dumped: Dumped) -> list[Candidate]:
    """In the order of the training log."""
    groups: dict[tuple[Any, ...], list[Pair]] = {}
    for pair in association.pairs:
        one, other = pair.train, pair.infer
        key = (one.request_id, one.sha256, other.request_id, one.line.step, other.line.step)
        groups.setdefault(key, []).append(pair)
    return [Candidate(tuple(pairs), _unfit(pairs, dumped)) for pairs in groups.values()]


def choose(
    found: Sequence[Candidate], association: Association, request: str | None, dumped: Dumped
) -> Candidate | None:
    """The named request; else the first fit one, those first that are a prefill by their token counts as well. Raises UsageError
    for a name that nobody logged."""
    if request is not None:
        named = [one for one in found if request in (one.train.request_id, one.infer.request_id)]
        if not named:
            _expect_known(request, association)
        found = named
    fit = [one for one in found if not one.unfit]
    return next((one for one in fit if _is_prefill(one, dumped)), next(iter(fit), None))


def _expect_known(request: str, association: Association) -> None:
    known = {place.request_id for place in _places(association)} - {None}
    if request not in known:
        near = get_close_matches(request, sorted(map(str, known))[:_MOST_NAMES], 1)
        raise UsageError(
            _("no log has a request `{name}`").format(name=request),
            todo=_("did you mean `{near}`?").format(near=near[0]) if near else _("without --request one is chosen"),
        )


def _places(association: Association) -> Iterator[Place]:
    for pair in association.pairs:
        yield from (pair.train, pair.infer)
    for mismatch in association.mismatched:
        yield from (mismatch.train, mismatch.infer)
    for doubt in association.ambiguous:
        yield from (doubt.place, *doubt.candidates)
    for one in association.unmatched:
        yield one.place


def _unfit(pairs: Iterable[Pair], dumped: Dumped) -> str:
    places = ((side, place) for pair in pairs for side, place in ((TRAIN, pair.train), (INFER, pair.infer)))
    return next(filter(None, (_why_not(side, place, dumped) for side, place in places)), "")


def _why_not(side: str, place: Place, dumped: Dumped) -> str:
    line, step = place.line, dumped.of(place.line)
    if step is None and (doubt := dumped.doubt(side, line)):
        return _("{side} step {step}: {why}").format(side=side, step=line.step, why=doubt)
    if step is None or step.outline.empty:
        return _("{side} step {step} was logged, and there is no dump of it").format(side=side, step=line.step)
    if len(line.request_ids) != 1:
        text = _("{side} step {step} holds {count} requests")
        return text.format(side=side, step=line.step, count=len(line.request_ids))
    if step.label in _NO_PROMPT:
        text = _("{side} step {step} is {label}: {why}")
        return text.format(side=side, step=line.step, label=step.label, why=step.why)
    return ""


def _is_prefill(one: Candidate, dumped: Dumped) -> bool:
    steps = [dumped.of(line) for side in (TRAIN, INFER) for line in one.lines(side)]
    return all(step is not None and step.label == PREFILL for step in steps)


def all_ranks(place: Place, lines: Iterable[Line]) -> list[Line]:
    """The lines of a side in which the place's request was computed in the same step and phase: one for each rank."""
    return [
        line
        for line in lines
        if (line.step, line.phase) == (place.line.step, place.line.phase)
        and place.request_id in line.request_ids
        and place.sha256 in line.prompt_sha256
    ]


def step_problems(
    chosen: Candidate | None, request: str | None, found: Sequence[Candidate], dumped: Dumped
) -> Iterator[Problem]:
    """What makes steps of the request unfit, on the ranks that have it; without a chosen one, of the named one or of any."""
    for side, steps in dumped.steps.items():
        if chosen is None:
            names = _ids(request, found) if request is not None else {one for step in steps for one in step.requests}
            yield from _problems_of(steps, names, None)
            continue
        place = chosen.train if side == TRAIN else chosen.infer
        if place.request_id is not None:
            own = {_process(step) for line in chosen.lines(side) if (step := dumped.of(line)) is not None}
            yield from _problems_of([one for one in steps if _process(one) in own], {place.request_id}, place.tokens)


def _ids(request: str, found: Iterable[Candidate]) -> set[str]:
    """The request's ids on both sides."""
    pairs = [(one.train.request_id, one.infer.request_id) for one in found]
    return {request, *(name for pair in pairs if request in pair for name in pair if name is not None)}


def _problems_of(steps: Iterable[Step], names: set[str], tokens: int | None) -> Iterator[Problem]:
    for choice in choose_each(steps, names, tokens).values():
        yield from choice.problems


def _process(step: Step) -> tuple[str, str]:
    return step.folder.above, step.folder.process
