"""Where the ledger of a tree is, what its records amount to, and the original bytes it keeps."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from codemods.errors import InvalidError, RefusedError
from codemods.gitrepo import find_git_dir
from codemods.splice import render
from locales import _
from patch_ledger import lock
from patch_ledger.chain import NAME, Chain, invalid, load
from patch_ledger.records import FileEntry, Intent, intent_from_json, txn_of
from patch_ledger.tree import (
    DOT_FOLDER,
    Tree,
    adopt,
    check_own,
    digest,
    read_file,
    remove,
    sync_directory,
    write_all,
)

_NAME = "probepatch"
OBJECTS = "objects"
SAVED = "saved"  # copies of what people wrote and we had to move; never removed by us
_OBJECT = re.compile(r"[0-9a-f]{64}")
_OBJECT_OR_PART = re.compile(r"[0-9a-f]{64}(\.part)?")


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger of one tree as it was read. Writing goes through :mod:`patch_ledger.transaction`.

    ``entries`` is the last committed word on every path; ``pending`` a transaction that never ended; ``last`` the newest
    intent whatever became of it.
    """

    tree: Tree
    place: Path
    chain: Chain = field(default_factory=Chain)
    history: tuple[tuple[Intent, str], ...] = ()  # with "commit", "abort" or ""
    entries: dict[str, FileEntry] = field(default_factory=dict)

    @property
    def in_git(self) -> bool:
        return self.place.name != DOT_FOLDER

    @property
    def last(self) -> Intent | None:
        return self.history[-1][0] if self.history else None

    @property
    def pending(self) -> Intent | None:
        return self.history[-1][0] if self.history and not self.history[-1][1] else None

    def active(self) -> dict[str, FileEntry]:
        """The files that carry edits of ours, by path."""
        return {path: entry for path, entry in self.entries.items() if entry.edits}

    def object(self, sha: str | None) -> bytes | None:
        """The bytes with this digest; None for an absent file. Raises InvalidError when they are lost or changed."""
        if sha is None:
            return None
        data = read_file(self.place / OBJECTS / sha)
        if digest(data) != sha:
            self.still_current()
            raise InvalidError(
                _("the ledger's copy of the original bytes is missing or changed"),
                where=str(self.place / OBJECTS / sha),
                todo=_("take the original from git or a new install, then `probepatch ledger forget`"),
            )
        return data

    def keeps(self, intent: Intent) -> bool:
        """Whether the originals of a transaction are there; they are kept after it is recorded, before a file is written."""
        wanted = {sha for file in intent.files for sha in (file.before, file.base) if sha}
        return all((self.place / OBJECTS / sha).is_file() for sha in wanted)

    def still_current(self) -> None:
        """Raises RefusedError when another run has written to the ledger since it was read."""
        if load(self.place).head != self.chain.head:
            raise RefusedError(
                _("another run changed the ledger while it was read"), where=str(self.place), todo=_("run this again")
            )

    def base(self, entry: FileEntry) -> bytes | None:
        return self.object(entry.base)

    def ancestor(self, entry: FileEntry) -> bytes | None:
        """The file with exactly our edits: its base, rendered."""
        base = self.base(entry)
        if base is None and not entry.edits:
            return None
        return render(base or b"", entry.edits)

    def git_diff_before(self) -> tuple[str | None, list[str]]:
        """The caller's digest of ``git diff`` from before the oldest edit that is still active, and the paths it is about."""
        busy: set[str] = set()
        digest_before: str | None = None
        paths: list[str] = []
        for intent, outcome in self.history:
            if outcome != "commit":
                continue
            if not busy:
                digest_before = intent.git_diff
                paths = [file.path for file in intent.files if file.before != file.after]
            busy -= {file.path for file in intent.files}
            busy |= {file.path for file in intent.files if file.edits}
        return (digest_before, paths) if busy else (None, [])


def _candidates(tree: Tree) -> list[Path]:
    places = [tree.git_dir / _NAME] if tree.git_dir else []
    repo = find_git_dir(tree.root) if not tree.git_dir else None
    if repo is not None and repo.top == tree.root:  # git is missing, or tracks nothing here any more
        places.append(repo.git_dir / _NAME)
    return [*places, tree.root / DOT_FOLDER]


def find_place(tree: Tree) -> Path:
    """The folder of the tree's ledger: the one that exists, else the one that apply will make.

    Raises InvalidError when it, or something in it, is a link or otherwise not of our making.
    """
    for place in _candidates(tree):
        for folder in (place, place / OBJECTS, place / SAVED):
            check_own(folder, folder=True)
        for file in (place / NAME, place / lock.NAME):
            check_own(file)
    for place in _candidates(tree):
        if place.is_dir():
            return place
    return tree.git_dir / _NAME if tree.git_dir else tree.root / DOT_FOLDER


def _history(chain: Chain, place: Path) -> tuple[tuple[Intent, str], ...]:
    history: list[tuple[Intent, str]] = []
    for number, record in enumerate(chain.records, start=1):
        try:
            kind, open_txn = record.get("kind"), history[-1][0].txn if history and not history[-1][1] else None
            if kind == "intent" and open_txn is None:
                history.append((intent_from_json(record), ""))
            elif kind in ("commit", "abort") and txn_of(record) == open_txn:
                history[-1] = (history[-1][0], str(kind))
            else:
                raise ValueError(_("the record is out of order or of an unknown kind"))
        except (ValueError, UnicodeError) as error:
            raise invalid(number, str(error), place) from error
    return tuple(history)


def open_ledger(tree: Tree) -> Ledger:
    """Read the ledger of a tree; nothing is written. Raises InvalidError for one that cannot be trusted."""
    return read_ledger(tree, find_place(tree))


def read_ledger(tree: Tree, place: Path) -> Ledger:
    """The ledger in a known folder. Raises InvalidError for one that cannot be trusted."""
    kept = _kept_objects(place)  # before the chain, which names every original before it is kept
    chain = load(place)
    history = _history(chain, place)
    entries: dict[str, FileEntry] = {}
    for intent, outcome in history:
        if outcome == "commit":
            entries |= {file.path: file for file in intent.files}
    ledger = Ledger(tree, place, chain, history, entries)
    _check_complete(ledger, kept)
    _check_root(ledger)
    return ledger


def _kept_objects(place: Path) -> set[str]:
    try:
        return {name for name in os.listdir(place / OBJECTS) if _OBJECT.fullmatch(name)}
    except FileNotFoundError:
        return set()


def _check_complete(ledger: Ledger, kept: set[str]) -> None:
    """Raises InvalidError when originals are kept that no record explains: lines of the ledger were lost."""
    known = {sha for intent, _end in ledger.history for file in intent.files for sha in (file.before, file.base)}
    folder = ledger.place / OBJECTS
    lost = sorted(sha for sha in kept - known if os.path.lexists(folder / sha))
    if lost:
        ledger.still_current()
        raise InvalidError(
            _("the ledger lost records: it keeps original bytes that no record explains"),
            where=str(ledger.place / NAME),
            todo=_("put the files right (their originals are in {folder}), then `probepatch ledger forget`").format(
                folder=folder
            ),
            details=tuple(lost),
        )


def _check_root(ledger: Ledger) -> None:
    """Raises RefusedError when the git directory with the ledger belongs to another work tree that still exists."""
    if not ledger.in_git or ledger.last is None or not (ledger.active() or ledger.pending):
        return
    then = Path(ledger.last.root or ledger.tree.root)
    if then == ledger.tree.root or not os.access(then, os.X_OK):
        return
    repo = find_git_dir(then)
    if repo is not None and repo.top == then and ledger.place.parent == repo.git_dir:
        raise RefusedError(
            _("the edits are recorded for {other}, which has the same git directory").format(other=then),
            where=str(ledger.place),
            why=_("a copied work tree shares git's folder with the one it was copied from"),
            todo=_("work on {other}; or give the copy a git directory of its own").format(other=then),
        )


def keep_objects(place: Path, contents: Iterable[bytes | None]) -> None:
    """Store bytes under their digests, durably. Raises OSError when the disk is full."""
    folder = place / OBJECTS
    make_own(folder)
    for data in set(contents) - {None}:
        assert data is not None
        path = folder / str(digest(data))
        if read_file(path) == data:
            continue
        write_durably(path, data)
    sync_directory(folder)


def drop_objects(place: Path) -> None:
    """Remove the kept originals, and nothing that has another name or kind."""
    folder = place / OBJECTS
    check_own(folder, folder=True)
    with suppress(OSError):
        for name in os.listdir(folder):
            if _OBJECT_OR_PART.fullmatch(name) and (folder / name).is_file() and not (folder / name).is_symlink():
                os.unlink(folder / name)
        os.rmdir(folder)


def make_own(folder: Path) -> None:
    """A folder of the ledger's, made when it is not there. Raises InvalidError when something else stands there."""
    check_own(folder, folder=True)
    if not folder.is_dir():
        folder.mkdir()
        adopt(folder)


def write_durably(path: Path, data: bytes) -> None:
    """A whole file or none, under ``path``, which may be replaced."""
    temp = path.with_name(f"{path.name}.part")
    remove(temp)  # of a run that was killed
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        try:
            write_all(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
        adopt(temp)
        os.rename(temp, path)
    except OSError:
        temp.unlink(missing_ok=True)
        raise
