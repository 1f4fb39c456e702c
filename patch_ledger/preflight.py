"""Everything that can be known before the first byte is written: one target that is not as planned refuses the whole set."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from codemods.errors import RefusedError
from codemods.splice import PlannedEdit
from locales import _
from patch_ledger.tree import read_file, resolve


@dataclass(frozen=True, slots=True)
class Change:
    """What is to become of one file, and what the ledger will say of it.

    ``path`` is canonical; ``before`` and ``after`` are the bytes on disk, None for no file; ``base``, ``edits``
    and ``origin`` (a digest) as in
    :class:`patch_ledger.records.FileEntry`. ``mode`` is for a file that is put back where there is none.
    """

    path: str
    before: bytes | None
    after: bytes | None
    base: bytes | None
    edits: tuple[PlannedEdit, ...]
    origin: str | None = None
    mode: int | None = None
    via: str = ""
    made: tuple[str, ...] = ()
    compiled: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """A checked change and the real file it is for; ``info`` is None when there is no file yet."""

    change: Change
    real: Path
    info: os.stat_result | None


def owner_of(info: os.stat_result) -> str:
    """``user:group``, in numbers where they have no name."""
    try:
        user = pwd.getpwuid(info.st_uid).pw_name
    except KeyError:
        user = str(info.st_uid)
    try:
        group = grp.getgrgid(info.st_gid).gr_name
    except KeyError:
        group = str(info.st_gid)
    return f"{user}:{group}"


def _described(info: os.stat_result) -> str:
    return _("owner {owner}, mode {mode:04o}").format(owner=owner_of(info), mode=stat.S_IMODE(info.st_mode))


def _folder_problem(root: Path, real: Path) -> str | None:
    folder = real.parent
    while not folder.exists():
        folder = folder.parent
    info = os.stat(folder)
    shown = folder.relative_to(root).as_posix()
    if not stat.S_ISDIR(info.st_mode):
        return _("{path} is not a folder").format(path=shown)
    if not info.st_mode & 0o222 or not os.access(folder, os.W_OK | os.X_OK):
        return _("the folder {path} is not writable ({facts})").format(path=shown, facts=_described(info))
    return None


def _file_problem(change: Change, real: Path, info: os.stat_result | None) -> str | None:
    if change.before is None:
        return None if info is None else _("{path} exists, and the plan adds it").format(path=change.path)
    if info is None:
        return _("{path} is no longer there").format(path=change.path)
    if not stat.S_ISREG(info.st_mode):
        return _("{path} is not a regular file").format(path=change.path)
    if not info.st_mode & 0o222 or not os.access(real, os.W_OK):
        return _("{path} is read-only ({facts})").format(path=change.path, facts=_described(info))
    if os.geteuid() not in (0, info.st_uid):
        return _("{path} belongs to somebody else and would change its owner ({facts})").format(
            path=change.path, facts=_described(info)
        )
    if read_file(real, change.path) != change.before:
        return _("{path} was changed since it was read").format(path=change.path)
    return None


def check(root: Path, changes: Sequence[Change]) -> tuple[Target, ...]:
    """The targets of all changes. Raises RefusedError that names every file which stands in the way."""
    targets: list[Target] = []
    problems: list[str] = []
    for change in changes:
        real = resolve(root, change.path)
        info = os.lstat(real) if os.path.lexists(real) else None
        targets.append(Target(change, real, info))
        if change.before != change.after:
            problem = _folder_problem(root, real) or _file_problem(change, real, info)
            problems += [problem] if problem else []
    if problems:
        raise RefusedError(
            problems[0],
            why=_("nothing was written: one file that cannot be changed stops the whole set"),
            todo=_("put that right, then run this again"),
            details=tuple(problems[1:]),
        )
    return tuple(targets)
