"""Writing a plan."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from codemods.errors import RefusedError
from codemods.plan import FilePlan, Plan
from locales import _
from patch_ledger.preflight import Change
from patch_ledger.receipt import FileDone, Receipt
from patch_ledger.records import FileEntry
from patch_ledger.store import Ledger
from patch_ledger.transaction import session
from patch_ledger.tree import Tree, canonical, digest


def commit(tree: Tree, plan: Plan, *, command: str = "apply", tool: str = "", git_diff: str | None = None) -> Receipt:
    """Write a plan, all of it or nothing; the same plan again writes and records nothing.

    ``tool`` is our version, ``git_diff`` a digest of ``git diff`` from before. Raises RefusedError with nothing changed.
    """
    with session(tree) as held:
        if held.repaired is not None and held.repaired.put_back:
            raise RefusedError(
                _("an interrupted {command} was repaired just now, so the plan is out of date").format(
                    command=held.repaired.command
                ),
                todo=_("run this again"),
            )
        changes = list(_changes(held.ledger, plan))
        place = str(held.ledger.place)
        if not changes:
            return Receipt(command, place, notes=plan.notes + held.notes, saved=held.saved, repaired=held.repaired)
        if plan.made_on not in (None, held.ledger.chain.head):
            raise RefusedError(
                _("another run changed the ledger since the plan was made, so the plan is out of date"),
                why=_("what it took for a file's base may hold the other run's edits; nothing was written"),
                todo=_("run this again"),
            )
        intent = held.run(changes, command, tool=tool, git_diff=git_diff)
        files = tuple(done(file) for file in intent.files)
        return Receipt(command, place, intent.txn, files, plan.notes + held.notes, (), held.saved, held.repaired)


def done(file: FileEntry) -> FileDone:
    """One line of a receipt."""
    if file.before == file.after:
        did = "recorded"
    else:
        did = "added" if file.before is None else "removed" if file.after is None else "changed"
    notes = []
    if file.links > 1 and did == "changed":
        notes.append(
            _("link count was {n}: the other names keep the old bytes, this one is a file of its own now").format(
                n=file.links
            )
        )
    if file.via:
        notes.append(_("{link} is a symbolic link to it and stays one").format(link=file.via))
    return FileDone(file.path, did, tuple(notes))


def _changes(ledger: Ledger, plan: Plan) -> Iterator[Change]:
    """What differs between a plan and the ledger's last word."""
    seen: dict[str, str] = {}
    for file in plan.files:
        path = canonical(ledger.tree.root, file.path)
        if path in seen:
            raise RefusedError(
                _("{first} and {second} are the same file").format(first=seen[path], second=file.path),
                todo=_("name it once"),
            )
        seen[path] = file.path
        entry = ledger.entries.get(path)
        if _is_new(entry, file):
            yield _change(ledger, file, path, entry)


def _is_new(entry: FileEntry | None, file: FilePlan) -> bool:
    if file.changes:
        return True
    if entry is None:
        return bool(file.edits)
    return (entry.edits, entry.base, entry.after) != (file.edits, digest(file.base), digest(file.after)) and bool(
        file.edits or entry.edits
    )


def _change(ledger: Ledger, file: FilePlan, path: str, entry: FileEntry | None) -> Change:
    carried = entry if entry is not None and entry.edits and file.base != file.before else None
    return Change(
        path=path,
        before=file.before,
        after=file.after,
        base=file.base,
        edits=file.edits,
        origin=carried.origin if carried else digest(file.base),
        via=file.via or (file.path if file.path != path else carried.via if carried else ""),
        made=carried.made
        if carried
        else tuple(_missing_folders(ledger.tree.root, path))
        if file.before is None
        else (),
        compiled=file.compiled,
    )


def _missing_folders(root: Path, path: str) -> Iterator[str]:
    """The folders that adding a file makes, and the one that Python makes when it imports it."""
    folder = PurePosixPath(path).parent
    for parent in (*([folder / "__pycache__"] if path.endswith(".py") else []), folder, *folder.parents):
        if parent.name and not (root / parent).is_dir():
            yield parent.as_posix()
