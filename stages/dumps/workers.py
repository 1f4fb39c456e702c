"""One function over many files, large ones in processes of their own: fresh interpreters that see no Ctrl-C, and end with us."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process, resource_tracker
from multiprocessing.connection import wait
from pathlib import Path
from typing import TypeVar

from codemods.errors import RefusedError
from locales import _

T = TypeVar("T")


class WorkerError(RefusedError):
    """A process that read dumps ended in the middle of it."""


def spread(function: Callable[[Path], T], files: Sequence[Path], processes: int, least: int) -> Iterator[T]:
    """``function`` of each file, in their order. Files of fewer than ``least`` bytes together are not worth a process's start.
    Raises WorkerError."""
    if processes < 2 or len(files) < 2 or sum(map(_size, files)) < least:
        yield from map(function, files)
        return
    others = set(active_children())
    with _as_our_own():
        pool = ProcessPoolExecutor(min(processes, len(files)), get_context("spawn"), _begin)
        answers: list[Future[T]] = [pool.submit(function, file) for file in files]
    try:
        for answer in answers:
            yield answer.result()
    except BrokenProcessPool as error:
        raise WorkerError(
            _("a process that read the dumps ended before it was done"),
            why=_("it was killed from outside, or the system has no more memory"),
            todo=_("run this again; nothing was written"),
        ) from error
    except BaseException:
        for child in set(active_children()) - others:
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


@contextmanager
def _as_our_own() -> Iterator[None]:
    """A process that starts in here finds Python's own modules, whatever PYTHONPATH holds (ours it is told), and never sees
    Ctrl-C, which is for us alone; ours waits until the end of the block."""
    resource_tracker.ensure_running()  # on its own start it would let Ctrl-C in again
    known = {name: os.environ.get(name) for name in ("PYTHONPATH", "PYTHONSAFEPATH")}
    os.environ.pop("PYTHONPATH", None)
    os.environ["PYTHONSAFEPATH"] = "1"
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for name, value in known.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _begin() -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
