"""The truth about every edit that the ledger knows. Reads only, and takes no lock."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from codemods.errors import RefusedError
from codemods.gitrepo import GitDir, in_head
from locales import _
from patch_ledger.lines import lines_now
from patch_ledger.lock import worker
from patch_ledger.records import FileEntry
from patch_ledger.repair import progress
from patch_ledger.store import Ledger, open_ledger
from patch_ledger.threeway import APPLIED, GONE, HALF, INSIDE, NEARBY, locate_in
from patch_ledger.transaction import saved_copies
from patch_ledger.tree import Tree, read_target

FILE_MISSING = "file-missing"
UNREADABLE = "unreadable"  # a folder, a pipe, a link out of the tree, a file that may not be read
COMMITTED = "committed"  # our lines are in HEAD


@dataclass(frozen=True, slots=True)
class EditStatus:
    """One edit: ``state`` is applied, nearby, inside, gone, half, file-missing, unreadable or committed; ``line`` (from 1) is
    where it stands now, as far as that can be told; ``todo`` the way on."""

    path: str
    recipe: str
    edit: str
    state: str
    line: int
    todo: str = ""


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A transaction without an end: ``written`` of ``total`` files; ``worker`` is the process that is still at it, if one is."""

    command: str
    txn: str
    written: int
    total: int
    worker: int | None = None


@dataclass(frozen=True, slots=True)
class TreeStatus:
    """``place`` is the ledger's folder, empty when the tree has none; ``saved`` the copies kept there for people."""

    place: str
    edits: tuple[EditStatus, ...] = ()
    interrupted: Interrupted | None = None
    saved: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def status(tree: Tree, *, head: bool = True) -> TreeStatus:
    """Every active edit and its state. ``head`` asks git (one process, only in a git tree) what is committed."""
    ledger = open_ledger(tree)
    if not ledger.place.is_dir():
        return TreeStatus("")
    active = ledger.active()
    repo = GitDir(tree.root, tree.git_dir) if head and active and tree.git_dir else None
    committed = in_head(repo, active)
    edits = tuple(
        found for path, entry in sorted(active.items()) for found in _states(ledger, path, entry, committed.get(path))
    )
    if any(edit.state not in (APPLIED, NEARBY, COMMITTED) for edit in edits):
        ledger.still_current()  # or it is another run's work that was looked at halfway
    return TreeStatus(str(ledger.place), edits, _interrupted(ledger), saved_copies(ledger.place))


def _interrupted(ledger: Ledger) -> Interrupted | None:
    pending = ledger.pending
    if pending is None:
        return None
    return Interrupted(pending.command, pending.txn, *progress(ledger.tree.root, pending), worker(ledger.place))


def _states(ledger: Ledger, path: str, entry: FileEntry, head: bytes | None) -> list[EditStatus]:
    base = ledger.base(entry)
    lines = tuple(edit.line for edit in entry.edits)
    try:
        disk = read_target(ledger.tree.root, path)
        states = states_of(entry, base, disk)
        if disk is not None:
            lines = lines_now(base or b"", entry.edits, locate_in(base, entry.edits, disk), disk)
    except RefusedError:
        states = (UNREADABLE,) * len(entry.edits)
    if head is not None:
        in_head = states_of(entry, base, head)
        states = tuple(
            COMMITTED if state in (APPLIED, NEARBY) and there in (APPLIED, NEARBY) else state
            for state, there in zip(states, in_head, strict=True)
        )
    return [
        EditStatus(path, edit.recipe, edit.id, state, line, todo_for(state, added=base is None))
        for edit, state, line in zip(entry.edits, states, lines, strict=True)
    ]


def states_of(entry: FileEntry, base: bytes | None, disk: bytes | None) -> tuple[str, ...]:
    """The state of each edit of a file whose bytes are ``disk``."""
    if disk is None:
        return (GONE if base is None else FILE_MISSING,) * len(entry.edits)
    return locate_in(base, entry.edits, disk).states


def todo_for(state: str, added: bool = False) -> str:
    """What to do about a state; ``added``: of a file that our edits added."""
    if state == INSIDE and added:
        return _("revert leaves the file alone; `revert --force` keeps a copy and removes it")
    return {
        INSIDE: _("revert leaves it alone; `revert --force` keeps a copy and puts the original back"),
        HALF: _("revert leaves it alone; `revert --force` keeps a copy and puts the original back"),
        GONE: _("apply again, or revert to clean the record"),
        FILE_MISSING: _("restore the file, or `revert --force` puts the original back"),
        UNREADABLE: _("make it a readable file of this tree again, then revert; the other files do not wait for it"),
        COMMITTED: _("our lines are part of a commit; after a revert, commit again"),
    }.get(state, "")
