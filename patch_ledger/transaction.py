"""Lock, repair, check, record the intent, write everything beside, swap, record the commit, clean up."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from codemods.errors import ProbePatchError, RefusedError
from locales import _
from patch_ledger import chain, lock
from patch_ledger.preflight import Change, Target, check, owner_of
from patch_ledger.records import FileEntry, Intent, Json, intent_as_json
from patch_ledger.repair import Repair, besides, complete, discard, finish, now, remove_folders, roll_back
from patch_ledger.store import SAVED, Ledger, drop_objects, find_place, keep_objects, read_ledger
from patch_ledger.swap import Beside, exchange, move_aside, place_new, write_new
from patch_ledger.tree import Tree, adopt, digest, sync_directory


@dataclass(slots=True)
class Session:
    """A tree under lock. ``repaired`` says what an earlier run had left undone; ``saved`` where foreign bytes were put."""

    ledger: Ledger
    repaired: Repair | None = None
    saved: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    settled: bool = False  # nothing of ours is left beside any file

    def run(self, changes: Sequence[Change], command: str, *, tool: str = "", git_diff: str | None = None) -> Intent:
        """Make all changes, or none.

        Raises RefusedError (nothing was changed, or everything was put back) when a target is not as planned, somebody else
        writes to one meanwhile, or the system refuses (no space, say).
        """
        targets = check(self.ledger.tree.root, changes)
        files = tuple(_entry(target) for target in targets)
        root = str(self.ledger.tree.root)
        intent = Intent(os.urandom(6).hex(), command, tool, _utc(), files, git_diff, root)
        try:
            self._record(intent_as_json(intent))
        except OSError as error:
            raise _refused(error) from error
        self.settled = False
        try:
            keep_objects(self.ledger.place, [data for change in changes for data in (change.before, change.base)])
            self._write(intent, targets)
            self._record({"kind": "commit", "txn": intent.txn})
        except BaseException as error:
            self._abort(intent, str(error) or type(error).__name__)
            if isinstance(error, OSError):
                raise _refused(error) from error
            raise
        self._clean(intent)
        return intent

    def _write(self, intent: Intent, targets: Sequence[Target]) -> None:
        root = self.ledger.tree.root
        data = {target.change.path: target for target in targets}
        todo = list(besides(root, intent))
        for file, beside in todo:
            target = data[file.path]
            if target.change.after is not None:
                _make_folders(root, beside.target.parent)
                like = beside.target if target.info else None
                write_new(beside, target.change.after, like, target.change.mode)
        for file, beside in todo:
            _swap(file, beside)
        for file, beside in todo:
            if file.before is not None and now(beside.temp) != file.before:
                raise _meddled(file)
        for folder in {beside.target.parent for _file, beside in todo}:
            sync_directory(folder)

    def _abort(self, intent: Intent, reason: str) -> None:
        try:
            repaired = roll_back(self.ledger, intent)
        except OSError as error:
            raise _refused(error, _("what was written is put back by `probepatch ledger recover`")) from error
        self.saved += repaired.saved
        with suppress(OSError):  # without room for the record the next run finds nothing to undo and records it then
            self._record({"kind": "abort", "txn": intent.txn, "reason": reason})
            self.settled = True

    def repair(self) -> None:
        """Bring a transaction that never ended to its end, and clean up after the last one."""
        last = self.ledger.last
        try:
            if last is None:
                self.settled = True
            elif self.ledger.pending is None:
                self._clean(last)
            elif self.ledger.keeps(last) and complete(self.ledger.tree.root, last):
                self._record({"kind": "commit", "txn": last.txn})
                saved, self.saved = self.saved, ()
                self._clean(last)
                self.repaired, self.saved = Repair(last.txn, last.command, "commit", saved=self.saved), saved
            else:
                self.repaired = roll_back(self.ledger, last)
                self._record({"kind": "abort", "txn": last.txn, "reason": "interrupted"})
                self.settled = True
        except OSError as error:
            raise _refused(error, _("`probepatch ledger recover` tries again")) from error

    def _clean(self, last: Intent) -> None:
        """Remove what an ended transaction left; what cannot be removed is noted, and tried again by the next run."""
        try:
            if self.ledger.history[-1][1] == "commit":
                self.saved += finish(self.ledger, last)
            else:
                self.saved += discard(self.ledger, last)
                remove_folders(self.ledger.tree.root, [file for file in last.files if file.before is None])
            self.settled = True
        except OSError as error:
            text = _("{path} could not be removed ({reason}); the next run tries again")
            self.notes += (text.format(path=error.filename, reason=error.strerror or error),)

    def _record(self, record: Json) -> None:
        chain.append(self.ledger.place, self.ledger.chain, record)
        self.ledger = read_ledger(self.ledger.tree, self.ledger.place)

    def tidy(self) -> None:
        """Leave no residue: a ledger in a dot folder goes when it has nothing to undo, one in a git directory when it is empty."""
        if not self.settled:
            return
        ledger = read_ledger(self.ledger.tree, self.ledger.place)
        if ledger.pending or ledger.active() or (ledger.in_git and ledger.history):
            return
        remove_ledger(ledger.place)


def remove_ledger(place: Path) -> None:
    """Remove a ledger's folder, under its lock; what was saved for people stays, and the folder then too."""
    drop_objects(place)
    for name in (chain.NAME, lock.NAME):
        (place / name).unlink(missing_ok=True)
    with suppress(OSError):
        os.rmdir(place)


def saved_copies(place: Path) -> tuple[str, ...]:
    """What was saved for people, as paths."""
    return tuple(sorted(str(path) for path in (place / SAVED).glob("*/*")))


@contextmanager
def session(tree: Tree) -> Iterator[Session]:
    """A tree's ledger under lock, repaired. Raises RefusedError when another process works on the tree."""
    place = find_place(tree)
    with lock.locked(place):
        held = Session(read_ledger(tree, place))
        try:
            held.repair()
            yield held
        finally:
            with suppress(ProbePatchError, OSError):
                held.tidy()


def _utc() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _entry(target: Target) -> FileEntry:
    change, info = target.change, target.info
    return FileEntry(
        path=change.path,
        before=digest(change.before),
        after=digest(change.after),
        base=digest(change.base),
        origin=change.origin,
        edits=change.edits,
        mode=info.st_mode & 0o7777 if info else change.mode,
        links=info.st_nlink if info else 1,
        owner=owner_of(info) if info else "",
        via=change.via,
        made=change.made,
        compiled=change.compiled,
    )


def _make_folders(root: Path, folder: Path) -> None:
    if folder.is_dir():
        return
    _make_folders(root, folder.parent)
    folder.mkdir()
    adopt(folder)


def _swap(file: FileEntry, beside: Beside) -> None:
    """Put one file in place; RefusedError when it is not (any more) what was planned."""
    if now(beside.target) != file.before:
        raise _meddled(file)
    try:
        if file.before is None:
            place_new(beside)
        elif file.after is None:
            move_aside(beside)
        else:
            exchange(beside)
    except FileExistsError as error:
        raise _meddled(file) from error
    if file.before is not None and now(beside.temp) != file.before:
        raise _meddled(file)


def _meddled(file: FileEntry) -> RefusedError:
    return RefusedError(
        _("{path} was changed by another program while it was being patched").format(path=file.path),
        why=_("every file was put back; the other program's change is kept"),
        todo=_("run this again"),
    )


def _refused(error: OSError, why: str = "") -> RefusedError:
    return RefusedError(
        _("the system refused: {reason}").format(reason=error.strerror or error),
        where=str(error.filename) if error.filename else None,
        why=why or _("no file was changed"),
    )
