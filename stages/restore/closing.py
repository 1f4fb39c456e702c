"""Whether the task can be called finished, and the evidence that says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from codemods.errors import UsageError
from locales import _
from stages.card.card import Card, SecretError
from stages.card.credentials import looks_secret
from stages.card.evidence import evidence, record
from stages.card.order import RESTORE, SCENE, STUB, VERIFY, state_of
from stages.restore.jobs import running
from stages.restore.own import Left, left_behind


class LoopOpenError(UsageError):
    """The loop with the analysis side has no end on the record."""


@dataclass(frozen=True)
class Fault:
    """Why the task is not finished."""

    what: str
    todo: str = ""


@dataclass(frozen=True)
class Closing:
    """``contradicted``: facts of ours that the tree contradicted in stage 3, for whoever keeps the recipes."""

    faults: tuple[Fault, ...]
    left: tuple[Left, ...]
    contradicted: tuple[str, ...]

    @property
    def finished(self) -> bool:
        return not self.faults

    def as_json(self) -> dict[str, Any]:
        return {
            "faults": [{"what": one.what, "todo": one.todo or None} for one in self.faults],
            "left": [one.as_json() for one in self.left],
            "contradicted": list(self.contradicted),
        }


def expect_reason(card: Card, reason: str | None) -> None:
    """Between stub rounds nothing is restored: with analysis, once the capture is verified, somebody has to have ended the
    loop. Raises LoopOpenError, SecretError."""
    if reason is not None and looks_secret(reason):
        raise SecretError(_("the reason looks like it holds a credential; nothing was restored"))
    looping = card.fact("usage") == "analysis" and (
        evidence(card, STUB) is not None or state_of(card, VERIFY)[0] == "done"
    )
    if looping and reason is None and not _ended(card):
        raise LoopOpenError(
            _("the loop with the analysis side is open: its rounds use the edits that are in place"),
            todo=_('once it is over: `probepatch restore --reason "all differences found"`, or who stopped it'),
        )


def _ended(card: Card) -> bool:
    found = evidence(card, RESTORE)
    return found is not None and bool(found.result.get("reason"))


def closing(card: Card, checkouts: Sequence[tuple[str, bool]], failed: Sequence[str] = ()) -> Closing:
    """After the reverts; ``checkouts``: each with whether nothing of ours is left in it; ``failed``: what could not be deleted."""
    left = left_behind(card)
    faults = [Fault(_("{checkout} is not restored").format(checkout=name)) for name, exact in checkouts if not exact]
    named = {name for name, _exact in checkouts}
    others = [one["checkout"] for one in card.data["edits"] if one["checkout"] not in named]
    faults += [Fault(_("{checkout} still holds edits").format(checkout=name)) for name in others]
    faults += [Fault(one) for one in failed]
    jobs = _("end it, then restore again: `probepatch preflight`, `probepatch preflight stop PID`")
    faults += [Fault(one.what, jobs) for one in running(card)]
    clean = _("`probepatch restore --clean` deletes it (AUTH_CLEAN_APPROVED_DIRS)")
    faults += [Fault(_("{path} is left").format(path=one.path), clean) for one in left]
    return Closing(tuple(faults), tuple(left), tuple(_contradicted(card)))


def _contradicted(card: Card) -> list[str]:
    found = evidence(card, SCENE)
    sides = found.result.get("sides") if found is not None else None
    return [
        f"{change['where']}: {change['what']}; {change['todo']}"
        for side in (sides if isinstance(sides, list) else ())
        for change in ((side.get("changes") if isinstance(side, dict) else None) or ())
        if isinstance(change, dict) and {"where", "what", "todo"} <= change.keys()
    ]


def close(card: Card, found: Closing, reason: str | None) -> None:
    """Record stage 9: done only where there is no fault. A reason that was given earlier stays."""
    earlier = evidence(card, RESTORE)
    reason = reason if reason is not None else (earlier.result.get("reason") if earlier is not None else None)
    summary = _("everything is as it was before") if found.finished else found.faults[0].what
    record(card, RESTORE, found.finished, summary, result={"reason": reason, **found.as_json()})
