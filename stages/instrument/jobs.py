"""The capture's job on a side: started apart from us, followed by its log, ended by the mark that its processes carry.

A connection that is lost does not end it: the log and the exit code lie on the side, and are looked at again.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from codemods.errors import FindingError
from locales import _
from stages.instrument.asking import ask
from stages.sides import Side, SideError


class NotStartedError(FindingError):
    """The job's own process did not start."""


@dataclass(frozen=True)
class Job:
    """``pid`` leads the job's session; ``start`` in clock ticks since boot; ``mark`` is in the environment of each of its
    processes (PROBEPATCH_RUN); ``log`` as the side sees it, with the exit code beside it (``.rc``)."""

    side: str
    prefix: tuple[str, ...]
    python: str
    pid: int
    start: int
    boot: str | None
    namespace: str | None
    mark: str
    log: str
    command: str
    devices: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "prefix": list(self.prefix)}

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Job:
        """From the card."""
        known = {name: data[name] for name in cls.__dataclass_fields__}
        return cls(**{**known, "prefix": tuple(known["prefix"])})


@dataclass(frozen=True)
class Look:
    """``code`` None while it runs; ``text`` what the log gained; ``dumps`` folders with a dump by side; ``processes`` alive;
    ``lost`` bytes of the output that did not fit on the disk."""

    code: int | None
    alive: bool
    text: str
    offset: int
    size: int
    lost: int
    processes: tuple[Mapping[str, Any], ...]
    dumps: Mapping[str, int]

    @property
    def over(self) -> bool:
        """Nothing more will come."""
        return (self.code is not None or not self.alive) and self.offset >= self.size


def start(side: Side, command: str, folder: str | None, environment: Mapping[str, str], log: str) -> Job:
    """Raises NotStartedError, SideError."""
    mark = secrets.token_hex(8)
    given = {"command": command, "folder": folder, "environment": dict(environment), "log": log, "mark": mark}
    told = ask(side, "job", {"do": "start", **given})
    if "error" in told:
        raise NotStartedError(_("the job did not start on the {side} side").format(side=side.name), why=told["error"])
    where = (told["pid"], told["start"], told["boot"], told["namespace"])
    return Job(side.name, side.prefix, side.python, *where, mark, log, command, told["devices"])


def look(side: Side, job: Job, offset: int, dumps: Mapping[str, str]) -> Look:
    """Raises SideError when the side does not answer just now."""
    given = {
        "log": job.log,
        "offset": offset,
        "pid": job.pid,
        "start": job.start,
        "mark": job.mark,
        "dumps": dict(dumps),
    }
    told = ask(side, "job", {"do": "look", **given})
    return Look(**{**told, "processes": tuple(told["processes"])})


def end(side: Side, job: Job, wait: float) -> list[dict[str, Any]]:
    """End every process of the job, politely first; those that are still there. ``wait``: seconds after each signal."""
    given = {"boot": job.boot, "namespace": job.namespace, "pid": job.pid, "start": job.start, "mark": job.mark}
    left: list[dict[str, Any]] = ask(side, "job", {"do": "end", "wait": wait, **given}, 3 * wait + 60)
    return left


def follow(side: Side, job: Job, dumps: Mapping[str, str], offline: int) -> Iterator[Look | None]:
    """A look after the other until the job is over; None for one that the side did not answer. Raises SideError after
    ``offline`` of those in a row."""
    offset, failed = 0, 0
    while True:
        try:
            seen = look(side, job, offset, dumps)
        except SideError:
            failed += 1
            if failed >= offline:
                raise
            yield None
            continue
        offset, failed = seen.offset, 0
        yield seen
        if seen.over:
            return
