"""Stop processes that the preflight found, by exact PID, after all of them proved to be the processes that were recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from codemods.errors import RefusedError, UsageError
from locales import _
from stages.card.card import Card, now
from stages.card.order import COMMANDS, PREFLIGHT
from stages.card.permissions import demand
from stages.card.typed import to_type
from stages.preflight.asking import ask
from stages.preflight.left import left
from stages.preflight.places import SIDES, side

GONE = ("ended", "killed", "gone")


class NotStoppedError(RefusedError):
    """Nothing was signalled: a PID may not be stopped from here, or is not the process that was recorded."""


@dataclass(frozen=True)
class Stopped:
    """``did``: ended, killed, gone (before we came), running, forbidden."""

    pid: int
    did: str
    kind: str | None
    command: str

    def as_json(self) -> dict[str, Any]:
        return dict(vars(self))


def stop(card: Card, pids: Sequence[int], at: str | None, kill: bool, wait: float) -> list[Stopped]:
    """TERM, wait, and KILL only with ``kill``; recorded in the card. ``at``: the place, where a PID is in more than one. Raises
    NotPermittedError, UsageError, NotStoppedError, SideError."""
    demand(card, "AUTH_STOP_RUNNING_SERVICES")
    known = left(card)
    if not known:
        raise UsageError(
            _("no preflight has been run: which processes these are is not known"),
            todo=_("next: `{command}`").format(command=to_type(card, COMMANDS[PREFLIGHT])),
        )
    records = [_record(known.get("processes", []), pid, at) for pid in dict.fromkeys(pids)]
    place = records[0]["place"]
    others = [one["pid"] for one in records if one["place"] != place]
    if others:
        raise UsageError(
            _("these are of different places: {pids}").format(pids=", ".join(map(str, pids))),
            todo=_("stop them in two calls, with --side"),
        )
    told = ask(
        side(card, place),
        "stop",
        {
            "boot": records[0]["boot"],
            "namespace": records[0]["namespace"],
            "targets": [{"pid": one["pid"], "start": one["start"]} for one in records],
            "kill": kill,
            "wait": wait,
        },
        limit=2 * wait + 60,
    )
    if told["refused"]:
        raise NotStoppedError(
            _("nothing was stopped"),
            why="; ".join(_why(pid, word) for pid, word in told["refused"].items()),
            todo=_("run `probepatch preflight` again: it tells what is there now"),
        )
    done = [Stopped(one["pid"], told["did"][str(one["pid"])], one["kind"], one["command"]) for one in records]
    _write(card, place, done)
    return done


def _record(known: Sequence[dict[str, Any]], pid: int, at: str | None) -> dict[str, Any]:
    found = [one for one in known if one["pid"] == pid and at in (None, one["place"])]
    if not found:
        raise NotStoppedError(
            _("PID {pid} is none of the processes that the preflight found").format(pid=pid),
            todo=_("run `probepatch preflight` again; only what it lists can be stopped"),
        )
    if len(found) > 1:
        raise UsageError(
            _("PID {pid} is in more than one place").format(pid=pid), todo="--side " + " | --side ".join(SIDES)
        )
    one = found[0]
    if one["nested"]:
        raise NotStoppedError(
            _("PID {pid} lives in a PID namespace of its own, where it is {inside}").format(
                pid=pid, inside=one["inside"]
            ),
            why=_("it is visible here, but should be ended only inside its container"),
            todo=_("`docker exec CONTAINER kill {inside}`, or make the container a side of the card").format(
                inside=one["inside"]
            ),
        )
    return one


def _why(pid: str, word: str) -> str:
    words: dict[str, Callable[[], str]] = {
        "rebooted": lambda: _("the machine is not the one of the preflight, or was started again since"),
        "namespace": lambda: _("this is another PID namespace than at the preflight"),
        "init": lambda: _("it holds up its namespace"),
        "ourselves": lambda: _("it is this program or one that it runs in"),
        "another": lambda: _("the number is another process's now"),
        "nested": lambda: _("it lives in a PID namespace of its own"),
    }
    return f"{pid}: {words[word]()}"


def _write(card: Card, place: str, done: Sequence[Stopped]) -> None:
    result = card.data["stages"][str(PREFLIGHT)]["result"]
    result.setdefault("stopped", []).extend({"at": now(), "place": place, **vars(one)} for one in done)
    gone = {one.pid for one in done if one.did in GONE}
    result["processes"] = [
        one for one in result["processes"] if (one["place"], one["pid"]) not in {(place, pid) for pid in gone}
    ]
    card.note(
        _("stopped at {place}: {what}").format(place=place, what=", ".join(f"{one.pid} {one.did}" for one in done))
    )
