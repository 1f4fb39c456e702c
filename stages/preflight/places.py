"""The places that matter: both sides behind their prefixes, and this host where they share its kernel.

Two places with the same boot id and PID namespace are one: a side without a prefix is here.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from codemods.errors import UsageError
from locales import _
from stages.card.card import Card
from stages.preflight.asking import ask
from stages.preflight.finding import OK, PROBLEM, UNKNOWN, Finding
from stages.sides import INFER, TRAIN, Side, SideError

HERE = "here"
SIDES = (TRAIN, INFER)


@dataclass(frozen=True)
class Process:
    """``start``: clock ticks since boot; ``inside``: its PIDs from this namespace inwards; more than one: it lives in a namespace
    of its own, and only there it should be stopped."""

    pid: int
    parent: int
    start: int
    name: str
    argv: tuple[str, ...]
    namespace: str | None
    inside: tuple[int, ...]

    @property
    def nested(self) -> bool:
        return len(self.inside) > 1


@dataclass(frozen=True)
class Place:
    """``names``: train, infer, here, as far as they are this place; ``side`` reaches it; ``answered``: by each name the interpreter
    that did, with its prefix; ``mine``: our own line of ancestors."""

    names: tuple[str, ...]
    answered: dict[str, dict[str, Any]]
    side: Side
    where: dict[str, Any]
    processes: tuple[Process, ...]
    mine: frozenset[int]
    listening: dict[int, tuple[int, ...]]

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def is_side(self) -> bool:
        return any(name in SIDES for name in self.names)

    def key(self, process: Process) -> tuple[Any, ...]:
        """The same for one process from wherever it is seen."""
        return (self.where["boot"], process.start, process.inside[-1])


def here() -> Side:
    return Side(HERE, (), sys.executable)


def side(card: Card, name: str) -> Side:
    """By its name; this host is a side, too."""
    return here() if name == HERE else Side.of(card, name)


def visit(card: Card, ports: Sequence[int]) -> tuple[list[Place], list[Finding]]:
    """Go to every place once. A side that cannot be reached, or whose interpreter nobody told, is a problem."""
    places: list[Place] = []
    findings: list[Finding] = []
    for name in SIDES:
        try:
            place = _go(side(card, name), ports)
        except (SideError, UsageError) as error:
            findings.append(
                Finding("side", name, PROBLEM, " ".join(filter(None, (error.what, error.why))), error.todo or "")
            )
            continue
        findings.append(_reached(name, place))
        _add(places, place)
    if any(place.is_side for place in places):
        host = _go(here(), ports)
        if any(place.where["boot"] == host.where["boot"] for place in places):
            _add(places, host)
    return places, findings


def _go(to: Side, ports: Sequence[int]) -> Place:
    told = ask(to, "processes", {"ports": list(ports)})
    processes = tuple(
        Process(
            one["pid"],
            one["parent"],
            one["start"],
            one["name"],
            tuple(one["argv"]),
            one["namespace"],
            tuple(one["inside"]),
        )
        for one in told["processes"]
    )
    listening = {int(port): tuple(pids) for port, pids in told["listening"].items()}
    answered = {key: told["where"][key] for key in ("host", "python", "version")} | {"prefix": list(to.prefix)}
    return Place((to.name,), {to.name: answered}, to, told["where"], processes, frozenset(told["mine"]), listening)


def _add(places: list[Place], new: Place) -> None:
    for number, old in enumerate(places):
        if new.where["boot"] and all(new.where[key] == old.where[key] for key in ("boot", "namespace")):
            places[number] = Place(
                (*old.names, *new.names),
                old.answered | new.answered,
                old.side,
                old.where,
                old.processes,
                old.mine | new.mine,
                new.listening | old.listening,
            )
            return
    places.append(new)


def _reached(name: str, place: Place) -> Finding:
    where = place.where
    what = _("{python} (Python {version}) on {host} answers").format(**where)
    if not where["proc"]:
        return Finding(
            "side", name, UNKNOWN, what + _("; it has no /proc, so its processes and ports are unknown"), facts=where
        )
    return Finding("side", name, OK, what, facts=where)


def our_own(places: Sequence[Place]) -> set[tuple[Any, ...]]:
    """The keys of ourselves and our ancestors, from wherever they are seen."""
    return {place.key(one) for place in places for one in place.processes if one.pid in place.mine}
