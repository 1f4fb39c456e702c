"""Which captured step of the engine computed the prompt of which training sample.

By request id: the same id first, then what the engines' rules make of it, the fewest rules first. Where a side has no ids, by the
hash of the prompt's token ids, as long as it is unique. What is tied is checked with that hash: the same id with other tokens is a
mismatch. Of several candidates none is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from locales import _
from stages.dumps.places import Ambiguous, Association, Mismatch, Pair, Place, Unmatched, best, same_tokens
from stages.dumps.problem import ERROR, NOTE, WARNING, Problem
from stages.dumps.records import Line
from stages.dumps.request_ids import EXACT, RULES, SHA256, Rule, origins
from stages.sides import TRAIN

__all__ = ["Ambiguous", "Association", "Mismatch", "Pair", "Place", "Unmatched", "associate"]

_IDLE = ("decode", "health_check", "draft", "idle")
"""Phases of the engines' lines in which no prompt is computed."""
_MOST_PROBLEMS = 20
"""Of one kind; the rest is counted."""
K = TypeVar("K")


def associate(train: Iterable[Line], infer: Iterable[Line], rules: tuple[Rule, ...] = RULES) -> Association:
    """Lines of both sides -> who belongs to whom. Where an id stands for several prompts, their hashes part them."""
    tying = _Tying(_places(train), [place for place in _places(infer) if place.phase not in _IDLE])
    tying.by_id(rules)
    tying.by_hash()
    tying.leave()
    return tying.result()


def _places(lines: Iterable[Line]) -> list[Place]:
    return [Place(line, index) for line in lines for index in range(len(line.request_ids))]


def _grouped(places: Iterable[Place], key: Callable[[Place], K]) -> dict[K, list[Place]]:
    groups: dict[K, list[Place]] = {}
    for place in places:
        groups.setdefault(key(place), []).append(place)
    return groups


def _distinct(places: list[Place]) -> int:
    """How many requests these are; those without an id as often as one process logged them."""
    anonymous = Counter(place.process for place in places if place.request_id is None)
    return len({place.request_id for place in places} - {None}) + max(anonymous.values(), default=0)


class _Tying:
    """``train`` and ``infer`` hold what is still to be tied, by request id; None for places without."""

    def __init__(self, train: list[Place], infer: list[Place]) -> None:
        self.train = _grouped(train, lambda place: place.request_id)
        self.infer = _grouped(infer, lambda place: place.request_id)
        self.pairs: list[Pair] = []
        self.unmatched: list[Unmatched] = []
        self.ambiguous: list[Ambiguous] = []
        self.mismatched: list[Mismatch] = []
        self.uneven = 0
        self.prompts = bool(infer)

    def by_id(self, rules: tuple[Rule, ...]) -> None:
        """A request that has its own id on the other side is out of question for every rule."""
        for name in [name for name in self.train if name is not None and name in self.infer]:
            self._tie(self.train.pop(name), self.infer.pop(name), EXACT)
        claims: dict[int, dict[str, dict[str, str]]] = {}  # number of rules -> training id -> engine id -> rules
        for engine_id in filter(None, self.infer):
            for origin, names in origins(engine_id, rules).items():
                if origin in self.train:
                    claims.setdefault(len(names), {}).setdefault(origin, {})[engine_id] = "+".join(names)
        for _count, claimed in sorted(claims.items()):
            self._claimed(claimed)

    def _claimed(self, claimed: dict[str, dict[str, str]]) -> None:
        """Ids that lie the same number of rules apart."""
        left = {
            origin: [one for one in engines if one in self.infer]
            for origin, engines in claimed.items()
            if origin in self.train
        }
        wanted = Counter(one for engines in left.values() for one in engines)
        taken: set[str] = set()
        for origin, engines in left.items():
            if not engines:
                continue
            samples = self.train.pop(origin)
            candidates = [place for one in engines for place in self.infer[one]]
            taken.update(engines)
            if any(wanted[one] > 1 for one in engines):
                self._doubt(samples[0], candidates, _("the request's id may have come from several samples'"))
            else:
                self._tie(samples, candidates, claimed[origin][engines[0]])
        for one in taken:
            del self.infer[one]

    def _tie(self, samples: list[Place], candidates: list[Place], rule: str) -> None:
        for group in _grouped(best(samples), lambda place: place.sha256).values():
            verdicts = [(place, same_tokens(group[0], place)) for place in candidates]
            fitting = [place for place, same in verdicts if same] or [place for place, same in verdicts if same is None]
            if fitting:
                self._one(group, best(fitting), rule)
            else:
                self._differ(group[0], best(candidates)[0], rule)

    def _one(self, samples: list[Place], candidates: list[Place], rule: str) -> None:
        """Ranks of a model-parallel group log the same request each; anything beyond that is one too many."""
        found = len({place.request_id for place in candidates})
        if found > 1:
            self._doubt(samples[0], candidates, _("{count} requests of the engine fit").format(count=found))
            return
        by_rank = []
        for places in (samples, candidates):
            ranks = _grouped(places, lambda place: place.process[0])
            most = max(ranks.values(), key=len)
            if len(most) > 1:
                reason = _("logged {count} times on one rank, by one process")
                if len({place.process for place in most}) > 1:
                    reason = _("logged {count} times on one rank, by several processes: an earlier run's lines?")
                self._doubt(samples[0], most, reason.format(count=len(most)))
                return
            by_rank.append({rank: of_rank[0] for rank, of_rank in sorted(ranks.items())})
        self._by_rank(rule, *by_rank)

    def _by_rank(self, rule: str, samples: dict[int, Place], candidates: dict[int, Place]) -> None:
        """In the order of the ranks; of unequal numbers those that both have, or else the lowest."""
        couples = list(zip(samples.values(), candidates.values(), strict=False))
        if len(samples) != len(candidates):
            self.uneven += 1
            common = [(samples[rank], candidates[rank]) for rank in samples if rank in candidates]
            couples = common or couples[:1]
        self.pairs += [Pair(one, other, rule, same_tokens(one, other) is True) for one, other in couples]

    def by_hash(self) -> None:
        """Only where at least one of the two has no id: ids on both sides that do not fit mean something."""
        samples, requests = (
            _grouped((place for places in side.values() for place in places if place.sha256), lambda one: one.sha256)
            for side in (self.train, self.infer)
        )
        done: set[Place] = set()
        for digest, of_train in samples.items():
            of_infer = requests.get(digest, [])
            if not of_infer or all(place.request_id for place in (*of_train, *of_infer)):
                continue
            done.update(of_train, of_infer)
            self._hashed(best(of_train), best(of_infer))
        for side in (self.train, self.infer):
            for name, places in list(side.items()):
                side[name] = [place for place in places if place not in done]

    def _hashed(self, samples: list[Place], requests: list[Place]) -> None:
        counts = [_distinct(samples), _distinct(requests)]
        if counts == [1, 1]:
            self._one(samples, requests, SHA256)
            return
        reason = _("ids are missing, and the same prompt is in {train} samples and {infer} requests")
        self._doubt(samples[0], [*samples, *requests], reason.format(train=counts[0], infer=counts[1]))

    def leave(self) -> None:
        """What is left over has its reason."""
        known = {place.sha256: name for name, places in self.infer.items() for place in places if place.sha256}
        for name, places in self.train.items():
            for group in _grouped(places, lambda place: place.sha256).values():
                self.unmatched.append(Unmatched(group[0], self._reason(name, group[0], known)))
        for places in self.infer.values():
            for group in _grouped(places, lambda place: place.sha256).values():
                self.unmatched.append(Unmatched(best(group)[0], _("no training sample has this id")))

    def _reason(self, name: str | None, place: Place, known: dict[str, str | None]) -> str:
        if not self.prompts:
            return _("the engine logged no prompt")
        if place.sha256 in known:
            return _("no request has this id, but {other} has the same tokens").format(other=known[place.sha256])
        if name is None:
            return _("it has no id, and no request has its tokens")
        return _("no request has this id or one that comes from it")

    def _doubt(self, place: Place, candidates: list[Place], reason: str) -> None:
        self.ambiguous.append(Ambiguous(place, tuple(candidates), reason))

    def _differ(self, one: Place, other: Place, rule: str) -> None:
        reason = _("the sample's prompt has {train} tokens, the request's {infer}")
        if one.tokens == other.tokens:
            reason = _("both prompts have {train} tokens, but not the same ones")
        self.mismatched.append(Mismatch(one, other, rule, reason.format(train=one.tokens, infer=other.tokens)))

    def result(self) -> Association:
        self.pairs.sort(key=lambda pair: _order(pair.train))
        self.ambiguous.sort(key=lambda one: _order(one.place))
        self.mismatched.sort(key=lambda one: _order(one.train))
        self.unmatched.sort(key=lambda one: (one.place.line.side != TRAIN, *_order(one.place)))
        return Association(
            pairs=tuple(self.pairs),
            unmatched=tuple(self.unmatched),
            ambiguous=tuple(self.ambiguous),
            mismatched=tuple(self.mismatched),
            problems=tuple(self._problems()),
        )

    def _problems(self) -> Iterator[Problem]:
        todo = _("look where the request id is set on each side")
        for wrong in self.mismatched[:_MOST_PROBLEMS]:
            yield Problem("tokens-differ", ERROR, _named(wrong.train, wrong.reason), wrong.train.line.where, todo)
        for doubt in self.ambiguous[:_MOST_PROBLEMS]:
            yield Problem("request-ambiguous", WARNING, _named(doubt.place, doubt.reason), doubt.place.line.where)
        samples = [one for one in self.unmatched if one.place.line.side == TRAIN]
        for one in samples[:_MOST_PROBLEMS]:
            yield Problem("request-unmatched", WARNING, _named(one.place, one.reason), one.place.line.where)
        yield from self._counted(len(samples))
        if not self.pairs:
            yield Problem("nothing-associated", ERROR, _("no training sample is tied to a request of the engine"))

    def _counted(self, samples: int) -> Iterator[Problem]:
        for count, what in (
            (len(self.mismatched), _("{count} more samples have other tokens than their requests")),
            (len(self.ambiguous), _("{count} more samples are ambiguous")),
            (samples, _("{count} more samples have no request")),
        ):
            if count > _MOST_PROBLEMS:
                yield Problem("more-requests", WARNING, what.format(count=count - _MOST_PROBLEMS))
        hashed = sum(pair.rule == SHA256 for pair in self.pairs)
        unchecked = sum(not pair.checked for pair in self.pairs)
        for name, count, what in (
            ("tied-by-hash", hashed, _("{count} pairs are tied by their prompt's hash: a side has no request ids")),
            (
                "not-cross-checked",
                unchecked,
                _("{count} pairs are tied by id alone: a side logged no hash of the prompt"),
            ),
            ("rank-counts-differ", self.uneven, _("{count} requests were computed on more ranks of one side")),
            (
                "request-without-sample",
                len(self.unmatched) - samples,
                _("{count} requests belong to no training sample"),
            ),
        ):
            if count:
                yield Problem(name, NOTE, what.format(count=count))


def _order(place: Place) -> tuple[str, int, int]:
    return (str(place.line.path), place.line.number, place.index)


def _named(place: Place, reason: str) -> str:
    name = _("a sample without an id") if place.request_id is None else place.request_id
    return _("{name}: {reason}").format(name=name, reason=reason)
