"""Whether every process that the capture started is gone: asked on its side, by the mark that it carries."""

from __future__ import annotations

from dataclasses import dataclass

from locales import _
from stages.card.card import Card
from stages.instrument.jobs import Job, look
from stages.instrument.record import runs_of
from stages.sides import Side, SideError


@dataclass(frozen=True)
class Running:
    """A job that is not over. ``pids`` as its side sees them; empty where the side did not answer, and ``why`` says so."""

    side: str
    pids: tuple[int, ...]
    why: str = ""

    @property
    def what(self) -> str:
        if self.why:
            return _("whether a job on the {side} side still runs is unknown: {why}").format(
                side=self.side, why=self.why
            )
        pids = ", ".join(map(str, self.pids))
        return _("a job on the {side} side still runs: PID {pids}").format(side=self.side, pids=pids)


def running(card: Card) -> list[Running]:
    """Jobs that were not seen to end with all their processes."""
    found = []
    for run in runs_of(card):
        try:
            ended = run["ended"]
            if ended is not None and not ended["left"]:
                continue
            job = Job.read(run["job"])
        except (KeyError, TypeError, AttributeError):
            found.append(Running("?", (), _("its record on the task card is not of its form")))
            continue
        try:
            seen = look(Side(job.side, job.prefix, job.python), job, 0, {})
        except SideError as error:
            found.append(Running(job.side, (), error.what))
            continue
        if seen.processes:
            found.append(Running(job.side, tuple(int(one["pid"]) for one in seen.processes)))
    return found
