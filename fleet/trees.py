"""From the nodes' answers to trees: the same folder seen by many nodes is one tree, and is worked on once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fleet.cluster import Call, Node
from locales import _

_SHOWN = 8  # names


@dataclass(frozen=True)
class Said:
    """A command's JSON. ``error`` is its own error, or why there is no JSON."""

    code: int | None
    data: dict[str, Any]
    error: str = ""


@dataclass(frozen=True, eq=False)
class Seen:
    """A tree as one node sees it: ``tree`` is what `fleet tree` told of it, ``said`` the answers to other calls, ``python`` the
    version of the node's interpreter."""

    node: Node
    tree: dict[str, Any]
    said: tuple[Said, ...]
    python: str = ""

    @property
    def root(self) -> str:
        return str(self.tree["checkout"]["import_root"])


@dataclass(frozen=True, eq=False)
class Group:
    """One tree and the nodes that see it; the first of them does the work."""

    seen: tuple[Seen, ...]

    @property
    def first(self) -> Seen:
        return self.seen[0]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.node.name for one in self.seen)


@dataclass(frozen=True)
class Trouble:
    """Why a node cannot take part."""

    node: Node
    why: str


def told(troubles: Iterable[Trouble]) -> list[str]:
    """One line for each reason, with the nodes that have it."""
    nodes: dict[str, list[str]] = {}
    for one in troubles:
        nodes.setdefault(one.why, []).append(one.node.name)
    return [f"{short(names)}: {why}" for why, names in nodes.items()]


def short(names: Sequence[str]) -> str:
    """The names, or the first of them and how many more there are."""
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else _("{names} and {n} more").format(names=shown, n=len(names) - _SHOWN)


def said(call: Call) -> Said:
    """What a command printed with --json, whatever else the node's interpreter printed around it."""
    if call.code is None:
        return Said(None, {}, call.err)
    try:
        start = call.out.index("{\n")
        data, _end = json.JSONDecoder().raw_decode(call.out, start)
    except ValueError:
        return Said(call.code, {}, _last(call.err) or _("it printed no JSON"))
    error = data.get("error")
    return Said(call.code, data, _whole(error) if isinstance(error, dict) else "")


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
        by_place.setdefault(str(one.tree["place"]), []).append(one)
    return [Group(tuple(nodes)) for nodes in by_place.values()]
