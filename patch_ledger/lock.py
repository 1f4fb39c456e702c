"""One lock per real tree, held by everything that writes. It dies with its process, so it is never stale."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from codemods.errors import RefusedError
from locales import _
from patch_ledger.tree import adopt, check_own, read_file, write_all

NAME = "lock"


def _open(place: Path) -> int:
    """A descriptor of the lock file, made with its folder when needed."""
    while True:
        try:
            if not place.is_dir():
                place.mkdir()
                adopt(place)
            check_own(place / NAME)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            return os.open(place / NAME, flags, 0o666)
        except (FileNotFoundError, FileExistsError):
            if not place.parent.is_dir():
                raise  # else another process made or removed the folder just now


def _still_there(fd: int, path: Path) -> bool:
    """Whether ``path`` is the locked file: the process before us may have removed it with its folder."""
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False


def _refused(place: Path, fd: int) -> RefusedError:
    holder = os.pread(fd, 400, 0).decode("utf-8", "replace").split()
    if len(holder) == 3 and not _is_dead(holder[0], holder[1]):
        what = _("locked by pid {pid} on {host} since {time}").format(pid=holder[0], host=holder[1], time=holder[2])
    else:
        what = _("locked by another process")
    return RefusedError(what, where=str(place / NAME), todo=_("wait for it to end, then run this again"))


def worker(place: Path) -> int | None:
    """The process that holds the lock, as far as its note and this host tell; reads only."""
    try:
        pid, host, _since = (read_file(place / NAME, largest=400) or b"").decode("utf-8", "replace").split()
    except (RefusedError, ValueError):
        return None
    if host != os.uname().nodename or not pid.isdecimal() or _is_dead(pid, host):
        return None
    return int(pid)


def _is_dead(pid: str, host: str) -> bool:
    """Whether the note in the lock file was left by a killed process: who holds the lock now has not written its own yet."""
    if host != os.uname().nodename or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False


@contextmanager
def locked(place: Path) -> Iterator[None]:
    """Hold the lock of the ledger at ``place``.

    Raises RefusedError at once when another process holds it, or when the folder cannot be written.
    """
    while True:
        try:
            fd = _open(place)
        except OSError as error:
            raise RefusedError(
                _("the ledger's folder {place} cannot be written: {reason}").format(place=place, reason=error.strerror),
                todo=_("run as the owner of the tree"),
            ) from error
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise _refused(place, fd) from error
            if not _still_there(fd, place / NAME):
                continue
            adopt(place / NAME)
            os.ftruncate(fd, 0)
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            with suppress(OSError):  # a full disk must not keep anybody from reverting
                write_all(fd, f"{os.getpid()} {os.uname().nodename} {now}\n".encode())
            try:
                yield
            finally:
                os.ftruncate(fd, 0)
            return
        finally:
            os.close(fd)
