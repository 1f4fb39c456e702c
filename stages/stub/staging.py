"""A folder that is there whole or not at all, made by one process at a time."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from codemods.errors import RefusedError
from locales import _

_LOCK = ".lock"


@contextmanager
def staged(final: Path) -> Iterator[Path]:
    """A folder beside ``final`` to write into, which becomes ``final`` when the block ends without exception, and goes otherwise.
    What a killed process left of it is thrown away. Raises RefusedError."""
    part = final.with_name(f".{final.name}.part")
    _refuse_existing(final)
    try:
        part.mkdir(parents=True, exist_ok=True)
        lock = os.open(part / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise _refused(part, error) from error
    try:
        _take(lock, part)
        try:
            _refuse_existing(final)
            _empty(part)
            yield part
            (part / _LOCK).unlink()
            os.rename(part, final)
        except BaseException as error:
            shutil.rmtree(part, ignore_errors=True)
            if isinstance(error, OSError):
                raise _refused(final, error) from error
            raise
    finally:
        os.close(lock)


def _refused(path: Path, error: OSError) -> RefusedError:
    return RefusedError(_("{path} cannot be written").format(path=path), why=error.strerror or str(error))


def _refuse_existing(final: Path) -> None:
    if os.path.lexists(final):
        raise RefusedError(
            _("the sources of this round are there already"),
            where=str(final),
            todo=_("the next instruction has the next round's number"),
        )


def _take(lock: int, part: Path) -> None:
    """The lock dies with its process; a lock file that was moved or removed meanwhile is not ours."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        ours = os.path.samestat(os.fstat(lock), os.stat(part / _LOCK))
    except OSError:
        ours = False
    if not ours:
        raise RefusedError(
            _("another process is preparing this round"), where=str(part), todo=_("wait for it, then see what it made")
        )


def _empty(part: Path) -> None:
    for one in part.iterdir():
        if one.is_dir() and not one.is_symlink():
            shutil.rmtree(one)
        elif one.name != _LOCK:
            one.unlink()
