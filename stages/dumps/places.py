"""A request's place in a log, and what ties two of them together or keeps them apart."""

from __future__ import annotations

from dataclasses import dataclass

from stages.dumps.problem import Problem
from stages.dumps.records import Line


@dataclass(frozen=True, slots=True)
class Place:
    """One request of a line."""

    line: Line
    index: int

    @property
    def request_id(self) -> str | None:
        return self.line.request_ids[self.index]

    @property
    def sha256(self) -> str | None:
        return self.line.prompt_sha256[self.index]

    @property
    def tokens(self) -> int | None:
        return self.line.prompt_tokens[self.index]

    @property
    def phase(self) -> str | None:
        return self.line.phase_of(self.index)

    @property
    def process(self) -> tuple[int, int, str]:
        """Rank and pid, and the file: two engines may well have a rank 0 each."""
        return (-1 if self.line.rank is None else self.line.rank, self.line.pid or 0, str(self.line.path))


@dataclass(frozen=True)
class Pair:
    """``rule``: exact, prompt_sha256, or names of request_ids.RULES joined by +. ``checked``: both hashes are there, and equal."""

    train: Place
    infer: Place
    rule: str
    checked: bool


@dataclass(frozen=True)
class Unmatched:
    place: Place
    reason: str


@dataclass(frozen=True)
class Ambiguous:
    """``place``: the training sample's (its first); ``candidates``: the places, of either side, between which nothing decides."""

    place: Place
    candidates: tuple[Place, ...]
    reason: str


@dataclass(frozen=True)
class Mismatch:
    """The ids belong together, the tokens do not."""

    train: Place
    infer: Place
    rule: str
    reason: str


@dataclass(frozen=True)
class Association:
    """Each in the order of the training log. ``unmatched`` holds both sides' places, an engine request's first one only."""

    pairs: tuple[Pair, ...]
    unmatched: tuple[Unmatched, ...]
    ambiguous: tuple[Ambiguous, ...]
    mismatched: tuple[Mismatch, ...]
    problems: tuple[Problem, ...]


_ORDER = {"prefill": 0, "log_prob": 0, "update_actor": 1, None: 1}
_PART = 2
"""Of every other phase: chunked_prefill, say."""


def best(places: list[Place]) -> list[Place]:
    """Those in which the whole prompt is computed at once, else those of which nothing is known, else the first part.

    Where prefill and decode are apart, this leaves the decode side out; of the training step and the log-prob forward before
    it, the step.
    """
    least = min((_ORDER.get(place.phase, _PART) for place in places), default=_PART)
    return _first_parts(places) if least == _PART else [one for one in places if _ORDER.get(one.phase, _PART) == least]


def _first_parts(places: list[Place]) -> list[Place]:
    """A process computes the parts of a prompt one after the other: they are one request."""
    seen: dict[tuple[tuple[int, int, str], str | None, str | None], Place] = {}
    for place in places:
        seen.setdefault((place.process, place.request_id, place.sha256), place)
    return list(seen.values())


def same_tokens(one: Place, other: Place) -> bool | None:
    """None where a hash is missing and the counts do not say no."""
    if None not in (one.tokens, other.tokens) and one.tokens != other.tokens:
        return False
    return one.sha256 == other.sha256 if one.sha256 and other.sha256 else None
