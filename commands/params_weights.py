"""``probepatch params weights``."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from commands.output import json_option
from commands.tensor_sides import both, finish, may_begin, options_of, two_sides, write_inventory_payload
from locales import _


@click.command(
    help=_(
        "Compare the weights of both sides to the bit, NaNs and the sign of zeros included; what differs is told with its first"
        " index and the largest difference. Memory stays small whatever the size."
    )
)
@two_sides
@click.option(
    "--threads", type=click.IntRange(1, 64), help=_("how many tensors at a time (one for each CPU, at most 8)")
)
@json_option
def command(
    train: Path | None,
    infer: Path | None,
    payload: Path | None,
    out: Path | None,
    threads: int | None,
    task: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Exit code 1 when anything is not exact, or nothing could be compared."""
    import tempfile

    if payload is not None:
        write_inventory_payload(payload)
        return 0
    paths = both(train, infer)
    wish = options_of(**options)
    card = may_begin(task)
    from stages.params_tensors.alignment import open_both, weights

    with tempfile.TemporaryDirectory(prefix="probepatch-") as scratch:
        opened = open_both(*paths, wish, Path(scratch))
        with _progress(opened.bytes_to_compare) as step:
            report = weights(opened, threads, step)
        return finish(report, card, out, task, as_json)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], object]]:
    """A bar on standard error, on a terminal only."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    lock, waiting = threading.Lock(), 0
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(_("comparing"), total=total)

        def step(done: int) -> None:
            nonlocal waiting
            with lock:
                waiting += done
                if waiting >= 1 << 24:
                    bar.advance(task, waiting)
                    waiting = 0

        yield step
        bar.advance(task, waiting)
