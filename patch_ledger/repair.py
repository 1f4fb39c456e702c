"""The way back from a transaction that did not end: killed, out of space, or met by somebody else's write.

Every step can itself be killed and is simply done again by the next one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from codemods.errors import ProbePatchError, RefusedError
from locales import _
from patch_ledger.records import FileEntry, Intent
from patch_ledger.store import SAVED, Ledger, make_own, write_durably
from patch_ledger.swap import Beside, exchange, move_aside, place_new, write_new
from patch_ledger.tree import digest, read_file, remove, resolve, sync_directory

UNKNOWN = "unknown"  # stands for the digest of something that is no readable regular file


@dataclass(frozen=True, slots=True)
class Repair:
    """What became of an unfinished transaction.

    ``outcome`` is "commit" when every file had been written, else "abort": ``put_back`` then lists the files that went back.
    ``foreign`` are files that somebody else wrote meanwhile, left as they are; ``saved`` copies kept below the ledger.
    """

    txn: str
    command: str
    outcome: str
    put_back: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    saved: tuple[str, ...] = ()


def now(path: Path) -> str | None:
    """The digest of what is on disk; None for nothing, UNKNOWN for what is no regular file."""
    try:
        return digest(read_file(path))
    except RefusedError:
        return UNKNOWN


def besides(root: Path, intent: Intent) -> Iterator[tuple[FileEntry, Beside]]:
    """The files that a transaction writes, with the names that it uses beside them."""
    for index, file in enumerate(intent.files):
        if file.before != file.after:
            with suppress(RefusedError):  # a link that leads out of the tree by now: not ours any more
                yield file, Beside.of(resolve(root, file.path), intent.txn, index)


def progress(root: Path, intent: Intent) -> tuple[int, int]:
    """How many files of a transaction are written, and how many there are."""
    written = sum(now(beside.target) == file.after for file, beside in besides(root, intent))
    return written, sum(file.before != file.after for file in intent.files)


def complete(root: Path, intent: Intent) -> bool:
    """Whether every file is written and nothing came between."""
    written, total = progress(root, intent)
    return written == total and all(
        now(path) in (None, file.before, file.after)
        for file, beside in besides(root, intent)
        for path in (beside.temp, beside.old)
    )


def undo(ledger: Ledger, file: FileEntry, beside: Beside) -> bool:
    """Put one file back if our version stands there; False when somebody else's does."""
    found = now(beside.target)
    if found != file.after:
        return found == file.before
    if file.before is None:
        return _undo_added(file, beside)
    if not _has_original(file, beside):
        for path in (beside.temp, beside.part):
            remove(path)
        data = ledger.object(file.before)
        assert data is not None
        write_new(beside, data, None if found is None else beside.target, file.mode)
    if found is None:
        with suppress(FileExistsError):
            place_new(beside)
        return now(beside.target) == file.before
    exchange(beside)
    if now(beside.temp) == file.after:
        return True
    exchange(beside)  # somebody wrote into our version just now: it stays where it is
    return False


def _has_original(file: FileEntry, beside: Beside) -> bool:
    """Make the displaced file stand at ``temp``, if it still exists."""
    if beside.old.exists():
        os.rename(beside.old, beside.temp)
    return now(beside.temp) not in (None, file.after)


def _undo_added(file: FileEntry, beside: Beside) -> bool:
    remove(beside.temp)  # a second name of the target
    move_aside(beside)
    if now(beside.temp) == file.after:
        beside.temp.unlink()
        return True
    with suppress(FileExistsError):
        place_new(beside)
    return False


def discard(ledger: Ledger, intent: Intent) -> tuple[str, ...]:
    """Remove everything that a transaction left beside its targets; what holds unknown bytes is saved, and named."""
    saved: list[str] = []
    for file, beside in besides(ledger.tree.root, intent):
        remove(beside.part)
        for path in (beside.temp, beside.old):
            held = now(path)
            if held in (None, UNKNOWN):
                continue
            shared = path.exists() and beside.target.exists() and path.samefile(beside.target)
            if held not in (file.before, file.after) and not shared:
                saved.append(str(save(ledger.place, intent.txn, file.path, read_file(path) or b"")))
            path.unlink()
    return tuple(saved)


def save(place: Path, txn: str, path: str, data: bytes) -> Path:
    """Keep a copy of somebody's version of a file below the ledger; returns where."""
    folder = place / SAVED / txn
    for made in (folder.parent, folder):
        make_own(made)
    copy = folder / path.replace("/", "__")[-200:]
    write_durably(copy, data)
    sync_directory(folder)
    return copy


def finish(ledger: Ledger, intent: Intent) -> tuple[str, ...]:
    """After a commit: drop the displaced files; where added files went, their bytecode and the folders made for them."""
    saved = discard(ledger, intent)
    gone = [file for file in intent.files if file.after is None]
    for file in gone:
        for path in bytecode(ledger.tree.root, file.path):
            remove(path)
    remove_folders(ledger.tree.root, gone)
    return saved


def bytecode(root: Path, path: str) -> list[Path]:
    """The compiled files of a module that is itself not there."""
    source = root / path
    if source.suffix != ".py" or source.exists():
        return []
    cache = source.parent / "__pycache__"
    if cache.is_symlink() or not cache.is_dir():
        return []
    return [cache / name for name in os.listdir(cache) if name.startswith(f"{source.stem}.") and name.endswith(".pyc")]


def remove_folders(root: Path, files: list[FileEntry]) -> None:
    """Remove the folders that were made for files, deepest first, as far as they are empty."""
    made = {folder for file in files for folder in file.made}
    for folder in sorted(made, key=lambda path: -path.count("/")):
        with suppress(OSError):
            if not (root / folder).is_symlink():
                os.rmdir(root / folder)


def roll_back(ledger: Ledger, intent: Intent) -> Repair:
    """Undo whatever a transaction has done so far and remove its traces; the caller records the abort.

    Raises RefusedError when the system does not let a file be put back. All others are, and the transaction stays open, so that
    the next run tries again.
    """
    put_back, foreign, stuck = [], [], []
    for file, beside in reversed(list(besides(ledger.tree.root, intent))):
        was_ours = now(beside.target) == file.after
        try:
            if not undo(ledger, file, beside):
                foreign.append(file.path)
            elif was_ours:
                put_back.append(file.path)
        except OSError as error:
            stuck.append(f"{file.path}: {error.strerror or error}")
        except ProbePatchError as error:
            stuck.append(f"{file.path}: {error.what}")
    if stuck:
        raise RefusedError(
            _("an interrupted {command} cannot be rolled back yet: {reason}").format(
                command=intent.command, reason=stuck[0]
            ),
            where=str(ledger.place),
            why=_("every other file was put back"),
            todo=_("put that right, then `probepatch ledger recover`"),
            details=tuple(stuck[1:]),
        )
    saved = discard(ledger, intent)
    remove_folders(ledger.tree.root, [file for file in intent.files if file.before is None])
    return Repair(intent.txn, intent.command, "abort", tuple(put_back), tuple(foreign), saved)
