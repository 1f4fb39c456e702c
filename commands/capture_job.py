"""The capture's job as it is followed from a terminal: started apart from us, looked at, ended when we are interrupted."""

from __future__ import annotations

import shutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from codemods.errors import FindingError, RefusedError
from commands.output import visible, warn
from locales import _, ngettext
from stages.card.store import changing
from stages.instrument.failures import Watch
from stages.instrument.jobs import Job, Look, end, follow, look, start
from stages.instrument.record import Prepared, note_end, note_job
from stages.sides import Side, SideError

_TURN, _OFFLINE, _GRACE = (
    1.0,
    60,
    15.0,
)  # seconds between two looks; looks in a row without an answer; seconds after a signal


class _TimeoutError(FindingError):
    """The job took longer than it was given."""


class LostError(RefusedError):
    """The connection to a side did not come back; its job was not ended."""


def run(
    card_file: Path,
    side: Side,
    typed: str,
    folder: str | None,
    environment: Mapping[str, str],
    log: str,
    wanted: Mapping[str, Prepared],
    timeout: float | None,
    shown: bool,
) -> dict[str, Any]:
    """Start, follow, and leave on the card how it ended. Raises KeyboardInterrupt when it was ended for us, NotStartedError,
    LostError."""
    with _deferred() as pressed:  # or a job would run that nobody knows of
        job = start(side, typed, folder, environment, log)
        with changing(card_file) as card:
            note_job(card, job, list(wanted))
    dumps = {name: one.dump_path for name, one in wanted.items()}
    watch, why, elsewhere = Watch(), "", not Path(log).is_file()
    last: Look | None = None
    devices = {_devices(job.devices): [job.pid]} if job.devices else {}
    try:
        with _terminable():
            if pressed:
                raise KeyboardInterrupt
            for seen in _followed(side, job, dumps, timeout, shown):
                last = seen
                watch.read(seen.text)
                if elsewhere:
                    _keep_here(log, seen.text)
                for one in seen.processes:
                    if one["devices"]:
                        devices.setdefault(_devices(one["devices"]), []).append(one["pid"])
        time.sleep(_TURN / 4)  # what ends with the command has ended
        last = look(side, job, last.offset if last is not None else 0, dumps)
        watch.read(last.text)
        left = [dict(one) for one in last.processes]
    except (_TimeoutError, KeyboardInterrupt) as error:
        why = "timeout" if isinstance(error, _TimeoutError) else "interrupted"
        if shown:
            warn(_("ending the job, with all that it started"))
        with _deferred():
            left = end(side, job, _GRACE)
    except SideError as error:
        raise LostError(
            _("the {side} side does not answer any more; the job goes on there").format(side=side.name),
            where=f"PID {job.pid}, {log}",
            why=error.why or error.what,
            todo=_("look at the log; the exit code will be in {file}").format(file=f"{log}.rc"),
        ) from error
    code = last.code if last is not None and not why else None
    counts = dict(last.dumps) if last is not None else {}
    with changing(card_file) as card:
        note_end(card, job, code, left, counts, why)
    if why == "interrupted":
        warn(_("the job was ended; its log: {log}").format(log=log))
        raise KeyboardInterrupt
    empty = sorted(name for name in wanted if not counts.get(name))
    return {
        "log": log,
        "log_lost": last.lost if last is not None else 0,
        "exit_code": code,
        "ended_by": why or None,
        "failed": code != 0 or bool(empty),
        "dumps": counts,
        "without_dump": empty,
        "devices": [{"visible": key, "pids": sorted(set(pids))[:20]} for key, pids in devices.items()],
        "failures": [vars(one) for one in watch.seen(code == 0)],
        "left": [{"pid": one["pid"], "command": one["command"]} for one in left],
    }


@contextmanager
def _deferred() -> Iterator[list[int]]:
    """Interruptions wait; those that came are in the list."""
    pressed: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda number, _frame: pressed.append(number)) for number in numbers]
    try:
        yield pressed
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


@contextmanager
def _terminable() -> Iterator[None]:
    """TERM is as an interruption from the keyboard: the job goes with us."""

    def stop(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _devices(found: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(found.items()))


def _followed(side: Side, job: Job, dumps: Mapping[str, str], timeout: float | None, shown: bool) -> Iterator[Look]:
    """Every look at the job, with a line that is redrawn on a terminal. Raises _TimeoutError, SideError."""
    begun, line = time.monotonic(), ""
    terminal = shown and sys.stderr is not None and sys.stderr.isatty()
    for seen in follow(side, job, dumps, _OFFLINE):
        took = time.monotonic() - begun
        if seen is not None:
            line = next((one for one in reversed(seen.text.splitlines()) if one.strip()), line)
            yield seen
        if terminal:
            _redraw(took, sum(seen.dumps.values()) if seen is not None else None, line)
        if timeout is not None and took > timeout and (seen is None or seen.code is None):
            raise _TimeoutError(_("the job took longer than {timeout:.0f} s").format(timeout=timeout))
        if seen is None or (seen.offset >= seen.size and not seen.over):
            time.sleep(_TURN)
    if terminal:
        click.echo("\r\x1b[K", err=True, nl=False)


def _redraw(took: float, dumps: int | None, line: str) -> None:
    folders = _("not reached") if dumps is None else ngettext("{n} dump", "{n} dumps", dumps).format(n=dumps)
    head = f"{int(took) // 60:02d}:{int(took) % 60:02d}  {folders}  "
    width = max(20, shutil.get_terminal_size().columns - len(head) - 1)
    click.echo(f"\r\x1b[K{head}{visible(line.strip())[:width]}", err=True, nl=False)


def _keep_here(log: str, text: str) -> None:
    """A copy of the log where it is not on this file system."""
    path = Path(log)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(text)
