"""The order of the stages: each needs the evidence of the one before it, and restoring is reachable from everywhere once an edit
was made.

Dump only: 0 to 7, then 9. With analysis: 0 to 9.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from codemods.errors import RefusedError
from locales import _
from stages.card.card import PERMISSIONS, Card
from stages.card.evidence import DONE, evidence, stale
from stages.card.typed import to_type

TASK, PREFLIGHT, PERMIT, SCENE, INPUTS, PARAMS, INSTRUMENT, VERIFY, STUB, RESTORE = range(10)
NAMES = {
    TASK: _("task card"),
    PREFLIGHT: _("preflight"),
    PERMIT: _("permissions"),
    SCENE: _("scene"),
    INPUTS: _("input alignment"),
    PARAMS: _("parameter alignment"),
    INSTRUMENT: _("instrument"),
    VERIFY: _("verify the capture"),
    STUB: _("stubbed re-capture"),
    RESTORE: _("restore"),
}
COMMANDS = {
    TASK: "probepatch task set usage=dump|analysis model.path=…",
    PREFLIGHT: "probepatch preflight",
    PERMIT: "probepatch task permit",
    SCENE: "probepatch scene",
    INPUTS: "probepatch inputs check SCRIPT",
    PARAMS: "probepatch params report",
    INSTRUMENT: "probepatch capture prepare",
    VERIFY: "probepatch dumps verify",
    STUB: "probepatch stub prepare",
    RESTORE: "probepatch restore",
}
NEEDED = ("usage", "model.path", "train.framework", "infer.framework", "baseline_command", "artifacts")
"""Facts without which no stage after 0 can begin."""


class OutOfOrderError(RefusedError):
    """A stage was called before the one that it rests on; nothing was done."""


@dataclass(frozen=True)
class Step:
    """``state``: done, next, blocked, failed, stale, or not needed (for this usage)."""

    stage: int
    name: str
    state: str
    why: str


def path_of(card: Card) -> tuple[int, ...]:
    """The stages that the card's usage goes through, in order."""
    if card.fact("usage") == "dump":
        return tuple(stage for stage in range(10) if stage != STUB)
    return tuple(range(10))


def missing_facts(card: Card) -> list[str]:
    return [name for name in NEEDED if card.fact(name) is None]


def command_of(card: Card, stage: int) -> str:
    """What is typed for a stage; for the first one with the facts that are still unknown."""
    wanted = " ".join(f"{name}=…" for name in missing_facts(card)) if stage == TASK else ""
    if stage == VERIFY and not _was_run(card):
        return "probepatch capture run"
    return f"probepatch task set {wanted}" if wanted else COMMANDS[stage]


def _was_run(card: Card) -> bool:
    """Whether a run is on record, or a verification: the job may have been started by hand."""
    made = evidence(card, INSTRUMENT)
    return bool(made is not None and made.result.get("runs")) or evidence(card, VERIFY) is not None


def state_of(card: Card, stage: int) -> tuple[str, str]:
    """(state, why): done, failed, stale or open."""
    if stage == TASK:
        missing = missing_facts(card)
        return ("open", _("unknown: {names}").format(names=", ".join(missing))) if missing else ("done", "")
    if stage == PERMIT:
        asked = [name for name in PERMISSIONS if name in card.data["permissions"]]
        return ("done", "") if len(asked) == len(PERMISSIONS) else ("open", _("not all permissions were asked for"))
    found = evidence(card, stage)
    if found is None:
        return "open", ""
    if found.state != DONE:
        return "failed", found.summary
    changed = stale(card, found)
    return ("stale", changed) if changed else ("done", found.summary)


def closed(card: Card) -> bool:
    """Whether the task was restored, and nothing stands any more: what the evidence rests on is as it was before, and no matter."""
    return not card.data["edits"] and state_of(card, RESTORE)[0] == "done"


def _closed(card: Card, stage: int, wanted: bool) -> Step:
    if not wanted:
        return Step(stage, NAMES[stage], "not needed", _("usage is dump only"))
    found = evidence(card, stage)
    if found is None:
        why = "" if stage in (TASK, PERMIT) else _("restored before it")
        return Step(stage, NAMES[stage], "not needed" if why else "done", why)
    return Step(stage, NAMES[stage], found.state, found.summary)


def _once_edited(card: Card) -> bool:
    return bool(card.data["edits"]) or any(evidence(card, stage) is not None for stage in (INSTRUMENT, RESTORE))


def steps(card: Card) -> list[Step]:
    """All ten stages with their states; the first that is not done is the next one."""
    path, out, blocked = path_of(card), [], ""
    if closed(card):
        return [_closed(card, stage, stage in path) for stage in range(10)]
    for stage in range(10):
        if stage not in path:
            out.append(Step(stage, NAMES[stage], "not needed", _("usage is dump only")))
            continue
        state, why = state_of(card, stage)
        if state == "done" and not blocked:
            out.append(Step(stage, NAMES[stage], "done", why))
        elif blocked:
            reachable = stage == RESTORE and _once_edited(card)
            word, because = ("failed", why) if state == "failed" else ("next", "")
            out.append(Step(stage, NAMES[stage], *((word, because) if reachable else ("blocked", blocked))))
        else:
            out.append(Step(stage, NAMES[stage], "next" if state == "open" else state, why))
            blocked = _("stage {stage} ({name}) is not done").format(stage=stage, name=NAMES[stage])
    return out


def require(card: Card, stage: int) -> None:
    """Refuse a stage whose predecessors are not done or do not hold any more. Raises OutOfOrderError."""
    if stage == RESTORE and _once_edited(card):
        return
    for earlier in (one for one in path_of(card) if one < stage):
        state, why = state_of(card, earlier)
        if state != "done":
            raise OutOfOrderError(
                _("stage {stage} ({name}) cannot begin: stage {earlier} ({other}) is {state}").format(
                    stage=stage, name=NAMES[stage], earlier=earlier, other=NAMES[earlier], state=_word(state)
                ),
                why=why or None,
                todo=_("next: `{command}`").format(command=to_type(card, command_of(card, earlier))),
            )


def _word(state: str) -> str:
    words: dict[str, Callable[[], str]] = {
        "open": lambda: _("not done"),
        "failed": lambda: _("failed"),
        "stale": lambda: _("not true any more"),
    }
    return words[state]()
