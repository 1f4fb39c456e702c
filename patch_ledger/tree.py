"""The tree that is written to, and the rule that nothing outside it ever is."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from codemods.errors import InvalidError, RefusedError
from locales import _

DOT_FOLDER = ".probepatch"
_CLOSED = {".git", DOT_FOLDER}
_LARGEST_FILE = 64 << 20  # bytes; a source file is thousands of times smaller


class Tree(Protocol):
    """What the ledger needs to know of a checkout (``codemods.checkout.Tree`` is one)."""

    @property
    def root(self) -> Path:
        """The real path of the tree; every path in the ledger is relative to it, with ``/``."""

    @property
    def git_dir(self) -> Path | None:
        """The git directory of this work tree when git tracks its files, else None."""


def is_relative(path: str) -> bool:
    """Whether ``path`` is a clean relative path: no ``..``, no empty part, not within ``.git`` or our own folder."""
    if not path or "\0" in path or len(path) > 4096:
        return False
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return all(part not in ("", ".", "..") and part.casefold() not in _CLOSED for part in path.split("/"))


def resolve(root: Path, path: str) -> Path:
    """The real file behind ``path``; symbolic links inside the tree are followed.

    Raises RefusedError when the path is not a clean relative one or leads out of the tree.
    """
    if not is_relative(path):
        raise RefusedError(_("{path} is not a path inside the tree").format(path=ascii(path)))
    real = Path(os.path.realpath(root / path))
    if not real.is_relative_to(root) or not is_relative(real.relative_to(root).as_posix()):
        raise RefusedError(
            _("{path} leads out of the tree, to {real}").format(path=path, real=real),
            where=path,
            todo=_("patch that tree instead, or replace the link by a copy of the file"),
        )
    return real


def canonical(root: Path, path: str) -> str:
    """The path of the real file behind ``path``, relative to the root: one name per file in the ledger."""
    return resolve(root, path).relative_to(root).as_posix()


def read_file(path: Path, shown: str | None = None, largest: int = _LARGEST_FILE) -> bytes | None:
    """The bytes of a regular file that is no symbolic link; None when there is none.

    Raises RefusedError for anything else (a link, a pipe, a directory), for a file that may not be read, and for one of
    more than ``largest`` bytes.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise RefusedError(
            _("{path} cannot be read: {reason}").format(path=shown or path, reason=error.strerror)
        ) from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise RefusedError(_("{path} is not a regular file").format(path=shown or path))
        return _read_all(fd, shown or str(path), largest)
    finally:
        os.close(fd)


def _read_all(fd: int, shown: str, largest: int) -> bytes:
    if os.fstat(fd).st_size > largest:
        raise RefusedError(_("{path} is larger than {n} bytes").format(path=shown, n=largest))
    parts: list[bytes] = []
    try:
        while sum(map(len, parts)) <= largest and (part := os.read(fd, 1 << 20)):
            parts.append(part)
    except OSError as error:
        raise RefusedError(_("{path} cannot be read: {reason}").format(path=shown, reason=error.strerror)) from error
    data = b"".join(parts)
    if len(data) > largest:
        raise RefusedError(_("{path} is larger than {n} bytes").format(path=shown, n=largest))
    return data


def check_own(path: Path, *, folder: bool = False) -> None:
    """Raises InvalidError when something stands at a place of the ledger's own that we did not make.

    A link there, symbolic or hard, would have us write or delete elsewhere.
    """
    try:
        info = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    if folder and stat.S_ISDIR(info.st_mode):
        return
    if not folder and stat.S_ISREG(info.st_mode) and info.st_nlink <= 1:
        return
    what = _("{path} is not a folder of our making") if folder else _("{path} is not a file of our making")
    raise InvalidError(
        what.format(path=path), why=_("it may be a link to something else"), todo=_("look at it, and remove it by hand")
    )


def remove(path: Path) -> None:
    """Remove a file, if it is there."""
    with suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(path)


def read_target(root: Path, path: str) -> bytes | None:
    """The bytes now on disk behind a path of the tree; None when there is no file."""
    return read_file(resolve(root, path), path)


def digest(data: bytes | None) -> str | None:
    """SHA-256 in hex; None for an absent file."""
    return None if data is None else hashlib.sha256(data).hexdigest()


def write_all(fd: int, data: bytes) -> None:
    """Write every byte; ``os.write`` may write fewer."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync_directory(path: Path) -> None:
    """Make renames inside a directory durable; file systems that cannot do it are left alone."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError:
        pass
    finally:
        os.close(fd)


def adopt(path: Path) -> None:
    """Run by root, give a new file or folder to the owner of its folder, who must be able to revert later."""
    if os.geteuid() == 0:
        owner = os.stat(path.parent)
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
