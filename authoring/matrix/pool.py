"""Tasks spread over processes. A worker is a fresh interpreter that reads its blobs itself, and ends with us, whatever ends us."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process, resource_tracker
from multiprocessing.connection import wait
from types import TracebackType
from typing import Protocol, TypeVar

from codemods.errors import RefusedError
from codemods.recipe import Recipe
from locales import _

T = TypeVar("T", covariant=True)
Found = TypeVar("Found")
Step = Callable[[int, int], None]
"""Called with the number of tasks that are done, and of all."""

_FEW = 4  # tasks that are done sooner than a worker has started


class WorkerError(RefusedError):
    """A worker process ended in the middle of its work."""


class Work(Protocol[T]):
    """A task; it is sent to another process and its answer sent back."""

    def work(self, recipes: Sequence[Recipe]) -> T: ...


class Pool:
    """Workers that all know the same recipes. Used as a context manager; they start when there is enough to do."""

    def __init__(self, recipes: Sequence[Recipe], workers: int | None = None) -> None:
        self._recipes = tuple(recipes)
        self._workers = workers or _cpus()
        self._others = set(active_children())
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is None:
            return
        if error is not None:
            for child in set(active_children()) - self._others:
                child.terminate()
        self._pool.shutdown(cancel_futures=True)

    def run(self, tasks: Sequence[Work[Found]], step: Step) -> list[Found]:
        """The answers, in the order of the tasks. Raises WorkerError."""
        step(0, len(tasks))
        answers: dict[int, Found] = {}
        for number, answer in self._answers(tasks):
            answers[number] = answer
            step(len(answers), len(tasks))
        return [answers[number] for number in range(len(tasks))]

    def _answers(self, tasks: Sequence[Work[Found]]) -> Iterator[tuple[int, Found]]:
        if self._pool is None and (self._workers < 2 or len(tasks) < _FEW):
            yield from ((number, task.work(self._recipes)) for number, task in enumerate(tasks))
            return
        with _own_modules(), _no_interrupts():
            if self._pool is None:
                self._pool = ProcessPoolExecutor(self._workers, get_context("spawn"), _begin, (self._recipes,))
            futures = {self._pool.submit(_work, task): number for number, task in enumerate(tasks)}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise WorkerError(
                _("a worker process ended before its work was done"),
                why=_("it was killed from outside, or the system has no more memory"),
            ) from error


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _own_modules() -> Iterator[None]:
    """A process that starts in here finds Python's own modules, whatever PYTHONPATH and the folder hold; ours it is told."""
    known = {name: os.environ.get(name) for name in ("PYTHONPATH", "PYTHONSAFEPATH")}
    os.environ.pop("PYTHONPATH", None)
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        for name, value in known.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """A process that starts in here never sees Ctrl-C, which is for us alone; ours waits until the end of the block."""
    resource_tracker.ensure_running()  # on its own start it would let Ctrl-C in again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_recipes: tuple[Recipe, ...] = ()


def _begin(recipes: tuple[Recipe, ...]) -> None:
    global _recipes
    _recipes = recipes
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _work(task: Work[Found]) -> Found:
    return task.work(_recipes)
