"""What stage 6 leaves on the task card, and what its runs add to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from locales import _
from stages.card.card import Card, now
from stages.card.evidence import FAILED, evidence, record
from stages.card.order import INSTRUMENT, VERIFY, state_of
from stages.instrument.jobs import Job
from stages.sides import INFER, TRAIN

FACTS = (
    "artifacts",
    *(f"{side}.{name}" for side in (TRAIN, INFER) for name in ("framework", "version", "prefix", "python", "checkout")),
)


@dataclass(frozen=True)
class Prepared:
    """One side as it is instrumented. ``checkout`` None where nothing is patched; ``native``: the engine dumps by itself."""

    checkout: str | None
    recipes: tuple[str, ...]
    native: bool
    config: str
    dump_path: str
    world_size: int
    environment: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "recipes": list(self.recipes), "environment": dict(self.environment)}

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Prepared:
        known = {name: data[name] for name in cls.__dataclass_fields__}
        return cls(**{**known, "recipes": tuple(known["recipes"])})


def _result(sides: Mapping[str, Prepared], switches: Mapping[str, str], change_list: str) -> dict[str, Any]:
    shown = {name: one.as_json() for name, one in sides.items()}
    return {"sides": shown, "switches": dict(switches), "change_list": change_list}


def leave(card: Card, sides: Mapping[str, Prepared], switches: Mapping[str, str], change_list: str) -> None:
    """The evidence of stage 6; the runs that an earlier one told of stay on record."""
    result, runs = _result(sides, switches, change_list), runs_of(card)
    names = "; ".join(f"{name}: {', '.join(one.recipes) or _('no recipe')}" for name, one in sides.items())
    record(
        card,
        INSTRUMENT,
        True,
        _("both sides are instrumented ({names})").format(names=names),
        files=[Path(one.config) for one in sides.values()],
        facts=FACTS,
        result=result | ({"runs": runs} if runs else {}),
    )


def same(card: Card, sides: Mapping[str, Prepared], switches: Mapping[str, str], change_list: str) -> bool:
    """Whether the card says just this already, and it holds."""
    found = evidence(card, INSTRUMENT)
    if found is None or state_of(card, INSTRUMENT)[0] != "done":
        return False
    told = {key: value for key, value in found.result.items() if key != "runs"}
    return told == _result(sides, switches, change_list)


def prepared(card: Card) -> dict[str, Prepared]:
    """The sides by name; empty before stage 6."""
    found = evidence(card, INSTRUMENT)
    return {name: Prepared.read(one) for name, one in found.result["sides"].items()} if found is not None else {}


def runs_of(card: Card) -> list[dict[str, Any]]:
    """Every job that was started, oldest first: see :func:`note_job`."""
    found = evidence(card, INSTRUMENT)
    runs: list[dict[str, Any]] = list(found.result.get("runs", ())) if found is not None else []
    return runs


def note_job(card: Card, job: Job, sides: Sequence[str]) -> None:
    """A job that was started: its PID, start and mark, so that it can be looked for; ``ended`` follows."""
    verified = evidence(card, VERIFY)
    if verified is not None and verified.state == FAILED:  # of what was there before this job
        del card.data["stages"][str(VERIFY)]
    runs = card.data["stages"][str(INSTRUMENT)]["result"].setdefault("runs", [])
    runs.append({"at": now(), "sides": list(sides), "job": job.as_json(), "ended": None})
    card.note(_("a job was started on the {side} side: PID {pid}").format(side=job.side, pid=job.pid))


def note_end(
    card: Card, job: Job, code: int | None, left: Sequence[Mapping[str, Any]], dumps: Mapping[str, int], why: str
) -> None:
    """How a job ended: ``code`` None when it was not told, ``left`` the processes of it that are still there."""
    for run in card.data["stages"][str(INSTRUMENT)]["result"]["runs"]:
        if run["job"]["mark"] == job.mark:
            there = [{"pid": one["pid"], "start": one["start"]} for one in left]
            run["ended"] = {"at": now(), "code": code, "why": why or None, "left": there, "dumps": dict(dumps)}
    card.note(_("the job with PID {pid} ended with {code}").format(pid=job.pid, code="?" if code is None else code))
