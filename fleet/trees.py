"""From the nodes' answers to trees: the same folder seen by many nodes is one tree, and is worked on once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fleet.cluster import Answer, Call, Node
from locales import _

WHERE = """
import json, sys
from fleet.node import place_of
print(json.dumps(place_of(sys.argv[1])))
"""


@dataclass(frozen=True)
class Said:
    """A command's JSON. ``error`` is its own error, or why there is no JSON."""

    code: int | None
    data: dict[str, Any]
    error: str = ""


@dataclass(frozen=True)
class Seen:
    """A tree as one node sees it. ``place`` names the folder, whoever looks at it."""

    node: Node
    place: str
    root: str
    said: tuple[Said, ...]
    python: str = ""


@dataclass(frozen=True)
class Group:
    """One tree and the nodes that see it; the first of them does the work."""

    seen: tuple[Seen, ...]

    @property
    def first(self) -> Seen:
        return self.seen[0]

    @property
    def name(self) -> str:
        others = len(self.seen) - 1
        return f"{self.first.node.name} (+{others})" if others else self.first.node.name


@dataclass(frozen=True)
class Trouble:
    """Why a node cannot take part."""

    node: Node
    why: str


def said(call: Call) -> Said:
    """What a command printed with --json."""
    if call.code is None:
        return Said(None, {}, call.err)
    try:
        data = json.loads(call.out)
    except ValueError:
        return Said(call.code, {}, _last(call.err) or _("it printed no JSON"))
    if not isinstance(data, dict):
        return Said(call.code, {"value": data})
    error = data.get("error")
    if isinstance(error, dict):
        return Said(call.code, data, _whole(error))
    return Said(call.code, data)


def _whole(error: dict[str, Any]) -> str:
    findings = [one for one in error.get("findings", []) if isinstance(one, dict)] or [error]
    parts = [f"{one.get('where') or ''}: {one.get('what')}".removeprefix(": ") for one in findings[:3]]
    why = error.get("why")
    return "; ".join(parts) + (f" ({why})" if why and not error.get("findings") else "")


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def grouped(seen: Iterable[Seen]) -> list[Group]:
    """Trees in the order of their first nodes."""
    by_place: dict[str, list[Seen]] = {}
    for one in seen:
        by_place.setdefault(one.place, []).append(one)
    return [Group(tuple(nodes)) for nodes in by_place.values()]


def lost(answers: Iterable[Answer]) -> list[Trouble]:
    return [Trouble(one.node, one.lost) for one in answers if one.lost]
