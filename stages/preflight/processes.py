"""Leftover processes of engines, Ray and trainers: which, where they can be stopped, and under which PID there."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from locales import _, ngettext
from stages.card.credentials import looks_secret
from stages.preflight import kinds
from stages.preflight.finding import OK, PROBLEM, UNKNOWN, Finding
from stages.preflight.places import Place, Process, our_own

_LONGEST = 100  # characters of a command


@dataclass(frozen=True)
class Leftover:
    """``place``: where it can be stopped, and ``pid`` its number there; with ``nested`` it was only seen from outside: ``inside``
    is its PID in its own namespace, which no side of the card is."""

    place: str
    pid: int
    start: int
    boot: str | None
    namespace: str | None
    kind: str | None
    command: str
    nested: bool
    inside: int
    on_side: bool
    kept: bool = False

    def as_json(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key != "on_side"}


def collect(places: Sequence[Place], others: Iterable[tuple[Place, int]], keep: Collection[int]) -> list[Leftover]:
    """The leftovers of all places, each once, and ``others``: processes that hold a card or a port, whatever they are. ``keep``:
    PIDs that are there on purpose. Ourselves and our ancestors are none."""
    ours = our_own(places)
    wanted = {(place.name, pid) for place, pid in others}
    found: dict[tuple[Any, ...], Leftover] = {}
    for place in places:
        named = _named(place)
        for one in place.processes:
            key = place.key(one)
            if key in ours or not (one.pid in named or (place.name, one.pid) in wanted):
                continue
            new = _leftover(place, one, named.get(one.pid))
            old = found.get(key)
            if old is None or (old.nested and not new.nested):
                found[key] = new
            elif old.kind is None and new.kind is not None:
                found[key] = replace(old, kind=new.kind)
    return [replace(one, kept=one.pid in keep) for one in found.values()]


def _named(place: Place) -> dict[int, str]:
    """PID: kind. A child has the kind of the nearest ancestor that has one."""
    by_pid = {one.pid: one for one in place.processes}
    own = {
        pid: kind for pid, one in by_pid.items() if pid not in place.mine and (kind := kinds.kind(one.argv)) is not None
    }
    out = {}
    for one in place.processes:
        line, at = [], one.pid
        while at in by_pid and at not in line and at not in place.mine:
            if at in own:
                out[one.pid] = own[at]
                break
            line.append(at)
            at = by_pid[at].parent
        if one.pid not in out and one.parent == 1 and kinds.is_spawned(one.argv):
            out[one.pid] = kinds.ORPHAN
    return out


def _leftover(place: Place, one: Process, kind: str | None) -> Leftover:
    return Leftover(
        place=place.name,
        pid=one.pid,
        start=one.start,
        boot=place.where["boot"],
        namespace=place.where["namespace"],
        kind=kind,
        command=shown(one),
        nested=one.nested,
        inside=one.inside[-1],
        on_side=place.is_side,
    )


def shown(one: Process) -> str:
    """The command for people, without anything that looks like a credential."""
    text = " ".join(one.argv).strip() if len(one.argv) == 1 else shlex.join(one.argv)
    text = " ".join(text.split())
    if looks_secret(text) or any(looks_secret(f"{a}={b}") for a, b in zip(one.argv, one.argv[1:], strict=False)):
        return one.name + _(" (its command has a credential)")
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def check(leftovers: Sequence[Leftover], places: Sequence[Place], hardware: str | None = None) -> list[Finding]:
    """One finding for each kind and place. On a machine without cards leftovers hold none: they are told, and no problem;
    that one holds a port is ports.check's."""
    groups: dict[tuple[str, str, bool, bool], list[Leftover]] = {}
    for one in leftovers:
        if one.kind is not None:
            groups.setdefault((one.place, one.kind, one.nested or not one.on_side, one.kept), []).append(one)
    findings = [_finding(*key, group, hardware) for key, group in sorted(groups.items())]
    if not findings and places:
        seen = sum(len(place.processes) for place in places)
        names = ", ".join(name for place in places for name in place.names)
        what = _("none of vLLM, SGLang, Ray or a trainer among {seen} processes").format(seen=seen)
        findings.append(Finding("processes", names, OK, what))
    return findings


def _finding(
    place: str, kind: str, elsewhere: bool, kept: bool, group: list[Leftover], hardware: str | None
) -> Finding:
    pids = " ".join(str(one.pid) for one in group)
    count = len(group)
    what = ngettext("{kind}: {count} process runs: {pids}", "{kind}: {count} processes run: {pids}", count).format(
        kind=kind, count=count, pids=_some(pids.split())
    )
    what += f" ({group[0].command})"
    facts = {"pids": [one.pid for one in group]}
    if kept:
        return Finding("processes", place, OK, _("{what}; it stays, on the user's word").format(what=what), facts=facts)
    if hardware == "cpu" and not elsewhere:
        what = _("{what}; they hold no card: the hardware is cpu").format(what=what)
        return Finding("processes", place, OK, what, facts=facts)
    if not elsewhere:
        state = UNKNOWN if kind == kinds.ORPHAN else PROBLEM
        todo = _("stop what is not needed: `probepatch preflight stop {pids}{side}`; keep what is: --keep PID").format(
            pids=pids, side="" if place == "here" else f" --side {place}"
        )
        return Finding("processes", place, state, what, todo, facts)
    if group[0].nested:
        inside = _some([str(one.inside) for one in group])
        what = _("{what}; visible here, killable only inside its container, where its PID is {inside}").format(
            what=what, inside=inside
        )
    else:
        what = _("{what}; on this host, in the namespace of neither side").format(what=what)
    todo = _("whether it disturbs is not known: ask whose it is, and stop it where it lives")
    return Finding("processes", place, UNKNOWN, what, todo, facts)


def _some(words: list[str], most: int = 8) -> str:
    return " ".join(words[:most]) + (" …" if len(words) > most else "")
