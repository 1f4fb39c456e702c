"""The cards: which tool tells of them, who holds them, and whether their memory is back to what it was before."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from locales import _
from stages.preflight.asking import ask
from stages.preflight.finding import OK, PROBLEM, UNKNOWN, Finding
from stages.preflight.places import HERE, Place, Process
from stages.preflight.smi import npu, nvidia, rocm
from stages.preflight.smi.card import Card, Holder, UnreadableError
from stages.sides import SideError

TOOLS: Mapping[str, tuple[ModuleType, tuple[tuple[str, ...], ...]]] = {
    "npu-smi": (npu, (npu.COMMAND,)),
    "nvidia-smi": (nvidia, nvidia.COMMANDS),
    "rocm-smi": (rocm, (rocm.COMMAND,)),
}
_LIMIT = 60  # seconds; a tool whose driver is gone may hang
_OF_HARDWARE = {"ascend": "npu-smi", "cuda": "nvidia-smi", "rocm": "rocm-smi"}
_SLACK_MB, _SLACK, _IDLE = 256, 0.02, 0.10
"""Memory is back when it is at most this much, or this share of the card, above its baseline; without a baseline a card that
nobody is seen on may have this share in use (drivers and firmware keep some)."""
_BAD = ("alarm", "critical", "fault")


@dataclass(frozen=True)
class Seen:
    """A card at the place whose tool told of it. ``somewhere``: holders that the tool does not tie to one card."""

    place: Place
    card: Card
    somewhere: tuple[Holder, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.place.name}/{self.card.vendor}/{self.card.id}"

    def as_json(self) -> dict[str, Any]:
        holders = self.card.holders
        return {
            "key": self.key,
            "index": self.card.index,
            "name": self.card.name,
            "health": self.card.health,
            "used_mb": self.card.used,
            "total_mb": self.card.total,
            "holders": None if holders is None else [vars(one) for one in holders],
        }


def see(
    places: Sequence[Place], found: Mapping[str, Mapping[str, str | None]], hardware: str | None
) -> tuple[list[Seen], list[Finding]]:
    """Ask every tool that is there; ``found``: place to tool to its path. A card that two places of a host tell of counts once."""
    seen: list[Seen] = []
    findings: list[Finding] = []
    for place in places:
        tools = [name for name, path in found.get(place.name, {}).items() if path and name in TOOLS]
        wanted = _OF_HARDWARE.get(hardware or "")
        if place.is_side and not ({wanted} & set(tools) if wanted else tools):
            findings.append(_no_tool(place, wanted, hardware))
        for tool in tools:
            try:
                cards, somewhere = _ask(place, tool)
            except (SideError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
                why = error.what if isinstance(error, SideError) else str(error)[:200] or type(error).__name__
                what = _("{tool} does not answer as it should: {why}").format(tool=tool, why=why)
                findings.append(Finding("cards", place.name, UNKNOWN, what, _("run it there by hand")))
                continue
            known = {(one.place.where["boot"], one.card.vendor, one.card.id) for one in seen}
            seen += [
                Seen(place, card, somewhere)
                for card in cards
                if (place.where["boot"], card.vendor, card.id) not in known
            ]
    return seen, findings


def _ask(place: Place, tool: str) -> tuple[list[Card], tuple[Holder, ...]]:
    module, commands = TOOLS[tool]
    told = ask(place.side, "tool", {"commands": [list(command) for command in commands], "limit": _LIMIT}, 3 * _LIMIT)
    for one in told:
        if one["code"] != 0:
            said = (one["out"] or one["err"]).strip().splitlines()
            raise UnreadableError(said[0] if said else _("exit code {code}").format(code=one["code"]))
    outputs = [one["out"] for one in told]
    return module.parse(outputs), tuple(rocm.processes(outputs[0])) if module is rocm else ()


def _no_tool(place: Place, wanted: str | None, hardware: str | None) -> Finding:
    if hardware == "cpu":
        return Finding("cards", place.name, OK, _("no card is used: the hardware is cpu"))
    tools = wanted or ", ".join(TOOLS)
    what = _("not found here: {tools}; whether a card is free is not known").format(tools=tools)
    return Finding(
        "cards", place.name, UNKNOWN, what, _("look by hand on the host, or set hardware=cpu if no card is used")
    )


def holders(seen: Sequence[Seen], places: Sequence[Place]) -> list[tuple[Place, int]]:
    """(place, PID) of every holder that can be seen as a process."""
    told = [(one, holder) for one in seen for holder in (*(one.card.holders or ()), *one.somewhere)]
    found = (at_place(one.place, holder, places) for one, holder in told)
    return [(at[0], at[1].pid) for at in found if at is not None]


def at_place(place: Place, holder: Holder, places: Sequence[Place]) -> tuple[Place, Process] | None:
    """The process that a tool means. Its number may be of another namespace, where ours is somebody else's: the number inside
    decides when the tool tells it, else the name has to agree."""
    host = [place, *(one for one in places if one is not place and one.where["boot"] == place.where["boot"])]
    for where in host:
        for one in where.processes:
            if one.pid == holder.pid and (
                _alike(holder.name, one) if holder.inside is None else one.inside[-1] == holder.inside
            ):
                return where, one
    if holder.inside is not None:
        for one in place.processes:
            if one.pid == holder.inside and not one.nested and _alike(holder.name, one):
                return place, one
    return None


def _alike(name: str, one: Process) -> bool:
    """Tools cut names short and leave out signs; an empty one says nothing against."""
    told = re.sub(r"\W|_", "", name.rpartition("/")[2]).lower()[:12]
    names = [re.sub(r"\W|_", "", word).lower() for word in (one.name, one.argv[0], one.argv[0].rpartition("/")[2])]
    return not told or any(word[: len(told)] == told[: len(word)] for word in names if word)


def check(
    seen: Sequence[Seen],
    places: Sequence[Place],
    baseline: Mapping[str, int],
    visible: Collection[int] | None,
    keep: Collection[int],
) -> list[Finding]:
    """``baseline``: MB by card, from a run in which nobody held it; ``visible``: the baseline command's cards, None for all."""
    return [_card(one, places, baseline.get(one.key), visible, keep) for one in seen]


def _card(
    one: Seen, places: Sequence[Place], base: int | None, visible: Collection[int] | None, keep: Collection[int]
) -> Finding:
    card = one.card
    what = _("{vendor} {index} ({name}): {used} of {total} MB used").format(
        vendor=card.vendor,
        index="?" if card.index is None else card.index,
        name=card.name or "?",
        used="?" if card.used is None else card.used,
        total="?" if card.total is None else card.total,
    )
    facts = {**one.as_json(), "baseline_mb": base}
    place = one.place.name
    if visible is not None and card.index is not None and card.index not in visible:
        return Finding("cards", place, OK, what + _("; the baseline command does not use it"), facts=facts)
    if (card.health or "").lower() in _BAD:
        what += _("; its health is {health}").format(health=card.health)
        return Finding("cards", place, PROBLEM, what, _("have it looked after, or use another card"), facts)
    if card.holders:
        return _held(one, places, what, keep, facts)
    state, more, todo = _memory(one, base)
    return Finding("cards", place, state, f"{what}; {more}", todo, facts)


def _held(one: Seen, places: Sequence[Place], what: str, keep: Collection[int], facts: dict[str, Any]) -> Finding:
    words: list[str] = []
    stops: list[tuple[str, int]] = []
    kept = 0
    for holder in one.card.holders or ():
        memory = "" if holder.memory is None else f", {holder.memory} MB"
        found = at_place(one.place, holder, places)
        if found is None:
            words.append(
                _("PID {pid} ({name}{memory}), not visible here").format(
                    pid=holder.pid, name=holder.name or "?", memory=memory
                )
            )
            continue
        where, process = found
        inside = _(", PID {pid} in its container").format(pid=process.inside[-1]) if process.nested else ""
        words.append(f"PID {process.pid} ({process.name}{memory}{inside})")
        if process.pid in keep:
            kept += 1
        elif not process.nested:
            stops.append((where.name, process.pid))
    what += _("; held by {who}").format(who="; ".join(words))
    if kept == len(words):
        return Finding("cards", one.place.name, OK, what + _("; it stays, on the user's word"), facts=facts)
    return Finding("cards", one.place.name, PROBLEM, what, _stop(stops), facts)


def _stop(stops: Sequence[tuple[str, int]]) -> str:
    if not stops:
        return _("stop it where it lives: on the host or in its container")
    where = stops[0][0]
    pids = " ".join(str(pid) for name, pid in stops if name == where)
    side = "" if where == HERE else f" --side {where}"
    return _("stop it: `probepatch preflight stop {pids}{side}`").format(pids=pids, side=side)


def _memory(one: Seen, base: int | None) -> tuple[str, str, str]:
    """(state, what, todo) of a card on which nobody is seen."""
    card = one.card
    nobody = _("nobody is on it") if card.holders is not None else _("who holds it is not told")
    if one.somewhere and card.holders is None:
        pids = " ".join(str(holder.pid) for holder in one.somewhere)
        nobody = _("held, this one or another, by PID {pids}").format(pids=pids)
    look = _("look on the host who holds it; a container sees only its own processes")
    if card.used is None or not card.total:
        return UNKNOWN, nobody, look
    if base is not None:
        above = card.used - base
        if above <= max(_SLACK_MB, _SLACK * card.total):
            state = OK if card.holders is not None or not one.somewhere else UNKNOWN
            return (
                state,
                _("{nobody}; back at its baseline of {base} MB").format(nobody=nobody, base=base),
                "" if state == OK else look,
            )
        return (
            PROBLEM,
            _("{nobody}; {above} MB above its baseline of {base} MB").format(nobody=nobody, above=above, base=base),
            look,
        )
    if card.holders is None or card.used > _IDLE * card.total:
        return UNKNOWN, nobody + _("; no baseline of it is known"), look
    return OK, nobody, ""


def baselines(seen: Sequence[Seen], before: Mapping[str, int]) -> dict[str, int]:
    """What is known of idle cards after this look: an earlier value stays."""
    now = {
        one.key: one.card.used
        for one in seen
        if one.card.holders == ()
        and one.card.used is not None
        and one.card.total
        and one.card.used <= _IDLE * one.card.total
    }
    return {**now, **before}
