"""Changing one file atomically, without losing what somebody else writes at the same moment.

A new version is written beside its target. Then both names are exchanged, and the old file lives on under the temporary's
name until the transaction is committed: it can be hashed again, and put back without needing space.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from codemods.errors import RefusedError
from locales import _
from patch_ledger.tree import adopt, write_all

_AT_FDCWD = -100
_NOREPLACE, _EXCHANGE = 1, 2
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}


@dataclass(frozen=True, slots=True)
class Beside:
    """The names next to a target that one transaction may use."""

    target: Path
    temp: Path  # the new version, complete; after the exchange the old one
    part: Path  # the new version while it is being written
    old: Path  # the old version, where names cannot be exchanged

    @classmethod
    def of(cls, target: Path, txn: str, index: int) -> Beside:
        name = f".probepatch-{txn}-{index}"
        return cls(target, target.with_name(name), target.with_name(f"{name}.part"), target.with_name(f"{name}.old"))


def write_new(beside: Beside, data: bytes, like: Path | None, mode: int | None) -> None:
    """Write ``data`` durably to ``beside.temp``.

    ``like`` is the file whose owner, mode and extended attributes it takes; without one, ``mode`` or the umask decides.
    Raises OSError (no space, an owner that cannot be kept).
    """
    fd = os.open(
        beside.part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600 if like else 0o666
    )
    try:
        write_all(fd, data)
        if like is not None:
            _copy_attributes(like, fd, len(data))
        else:
            adopt(beside.part)
            if mode is not None:
                os.fchmod(fd, mode)
        os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(beside.part, beside.temp)


def _copy_attributes(like: Path, fd: int, size: int) -> None:
    old, new = os.lstat(like), os.fstat(fd)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        os.fchown(fd, old.st_uid, old.st_gid)
    os.fchmod(fd, old.st_mode & 0o7777)
    if sys.platform == "linux":
        names: list[str] = []
        with suppress(OSError):  # a file system without attributes has none to keep
            names = os.listxattr(like, follow_symlinks=False)
        for name in names:
            with suppress(OSError):  # labels that only the system may set are set by it
                os.setxattr(fd, name, os.getxattr(like, name, follow_symlinks=False))
    if size == old.st_size and int(new.st_mtime) <= int(old.st_mtime):
        os.utime(fd, (old.st_atime, int(old.st_mtime) + 1))  # Python trusts bytecode of the same size and second


def exchange(beside: Beside) -> None:
    """Swap target and temporary: afterwards ``temp`` is the file that was displaced.

    Raises RefusedError when the target was replaced meanwhile or the file system knows no way.
    """
    sys.audit("probepatch.exchange", str(beside.target))
    try:
        _renameat2(beside.temp, beside.target, _EXCHANGE)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        _exchange_by_links(beside)


def _exchange_by_links(beside: Beside) -> None:
    try:
        os.link(beside.target, beside.old, follow_symlinks=False)
    except OSError as error:
        raise RefusedError(
            _("{path} cannot be replaced safely: the file system has neither exchange nor hard links").format(
                path=beside.target
            )
        ) from error
    if not os.path.samestat(os.lstat(beside.target), os.lstat(beside.old)):
        os.unlink(beside.old)
        raise RefusedError(_("{path} was replaced by another program just now").format(path=beside.target))
    os.rename(beside.temp, beside.target)
    os.rename(beside.old, beside.temp)


def place_new(beside: Beside) -> None:
    """Give the temporary its target's name as well; FileExistsError when something stands there."""
    sys.audit("probepatch.exchange", str(beside.target))
    try:
        os.link(beside.temp, beside.target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (*_UNSUPPORTED, errno.EPERM):
            raise
        _renameat2(beside.temp, beside.target, _NOREPLACE)


def move_aside(beside: Beside) -> None:
    """Take the target away, to ``temp``."""
    sys.audit("probepatch.exchange", str(beside.target))
    os.rename(beside.target, beside.temp)


def _renameat2(source: Path, target: Path, flags: int) -> None:
    """Linux ``renameat2``; OSError with ENOSYS where there is none."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if sys.platform == "linux" else None
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if call(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), ctypes.c_uint(flags)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(source), None, str(target))
