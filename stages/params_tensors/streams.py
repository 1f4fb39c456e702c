"""The bytes of a view in order, a chunk at a time: files are opened once, and nothing is read that is not wanted."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from locales import _
from stages.params_tensors.tensors import TensorFileError, View

CHUNK = 1 << 18  # bytes: two of them stay in a core's cache


class Files:
    """Open files by path, for all threads: ``os.preadv`` has no position of its own."""

    def __init__(self) -> None:
        self._open: dict[Path, int] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Files:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)

    def descriptor(self, path: Path) -> int:
        with self._lock:
            if path not in self._open:
                self._open[path] = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            return self._open[path]


class Stream:
    """A view's bytes, row-major."""

    def __init__(self, view: View, files: Files) -> None:
        self._files, self._runs = files, _runs(view)
        self._path: Path | None = None
        self._at = self._left = 0

    def fill(self, buffer: memoryview) -> None:
        """The next bytes, as many as the buffer holds. Raises TensorFileError."""
        done = 0
        while done < len(buffer):
            if not self._left:
                self._path, self._at, self._left = next(self._runs)
                continue
            assert self._path is not None
            part = buffer[done : done + self._left]
            try:
                got = os.preadv(self._files.descriptor(self._path), [part], self._at)
            except OSError as error:
                raise TensorFileError(
                    _("the file cannot be read"), where=str(self._path), why=error.strerror
                ) from error
            if not got:
                raise TensorFileError(_("the file became shorter while it was read"), where=str(self._path))
            done, self._at, self._left = done + got, self._at + got, self._left - got

    def skip(self, count: int) -> None:
        """Go on ``count`` bytes without reading them."""
        while count:
            if not self._left:
                self._path, self._at, self._left = next(self._runs)
            step = min(count, self._left)
            count, self._at, self._left = count - step, self._at + step, self._left - step


def _runs(view: View) -> Iterator[tuple[Path, int, int]]:
    """(file, offset, length) of the stretches that follow one another in memory."""
    outer = 1
    for size in view.shape[: view.axis]:
        outer *= size
    if not view.length or not outer:
        return
    for number in range(outer):
        for leaf in view.leaves:
            length = leaf.length // outer
            assert leaf.file is not None
            if length:
                yield leaf.file, leaf.offset + number * length, length
