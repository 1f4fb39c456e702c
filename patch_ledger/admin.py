"""The ledger's own commands: recover, verify, show, forget."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from codemods.errors import InvalidError, ProbePatchError, RefusedError
from locales import _
from patch_ledger import chain, lock
from patch_ledger.receipt import Receipt
from patch_ledger.records import Intent, Json, intent_as_json
from patch_ledger.repair import Repair
from patch_ledger.store import OBJECTS, find_place, open_ledger, read_ledger
from patch_ledger.transaction import Session, remove_ledger, session
from patch_ledger.tree import DOT_FOLDER, Tree, digest, read_file


@dataclass(frozen=True, slots=True)
class Verified:
    """``lines`` and ``objects`` that hold; ``problems`` one sentence each."""

    place: str
    lines: int = 0
    objects: int = 0
    problems: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def recover(tree: Tree) -> Receipt:
    """Bring an interrupted transaction to its end, if there is one."""
    if not find_place(tree).is_dir():
        return Receipt("recover", "", notes=(_("nothing to do: no edit is recorded here"),))
    with session(tree) as held:
        notes = held.notes or (() if held.repaired else (_("nothing to do: no transaction was interrupted"),))
        return Receipt("recover", str(held.ledger.place), notes=notes, saved=held.saved, repaired=held.repaired)


def verify(tree: Tree) -> Verified:
    """Check every line's hash and every kept original. A damaged chain is a problem in the report, not an error."""
    found = ""
    try:
        found = str(find_place(tree))
        ledger = open_ledger(tree)
    except InvalidError as error:
        where = f"{error.where}: " if error.where else ""
        return Verified(found, problems=(f"{where}{error.what}",))
    wanted = {
        sha
        for intent, end in ledger.history
        if end == "commit"  # any other may have ended before its originals were kept
        for file in intent.files
        for sha in (file.before, file.base)
        if sha
    }
    lost = sorted(sha for sha in wanted if digest(_object(ledger.place / OBJECTS / sha)) != sha)
    if lost:
        ledger.still_current()
    problems = [_("the original bytes {sha} are missing or changed").format(sha=sha) for sha in lost]
    if ledger.pending:
        problems.append(_("a transaction was interrupted; `probepatch ledger recover` repairs it"))
    place = str(ledger.place) if ledger.place.is_dir() else ""
    return Verified(place, len(ledger.chain.records), len(wanted) - len(lost), tuple(problems))


def _object(path: Path) -> bytes | None:
    try:
        return read_file(path)
    except RefusedError:
        return None


def show(tree: Tree) -> list[Json]:
    """The transactions, oldest first, each with its ``outcome``: commit, abort, or interrupted."""
    history = open_ledger(tree).history
    return [_shown(intent) | {"outcome": end or "interrupted"} for intent, end in history]


def _shown(intent: Intent) -> Json:
    return {key: value for key, value in intent_as_json(intent).items() if key != "root"}


def forget(tree: Tree) -> Receipt:
    """Drop what the ledger says, and touch no file of the tree.

    In a git directory the ledger is archived beside itself, originals included; in a plain folder it is removed. An interrupted
    transaction is repaired first, as far as that can be done.
    """
    place = find_place(tree)
    if not place.is_dir():
        return Receipt("forget", "", notes=(_("nothing to do: no edit is recorded here"),))
    with lock.locked(place):
        repaired, saved, notes = _repaired(tree, place)
        if place.name == DOT_FOLDER:
            remove_ledger(place)
            notes += (_("the ledger was removed"),)
            return Receipt("forget", str(place), notes=notes, saved=saved, repaired=repaired)
        notes += (_("the ledger is now {archive}").format(archive=_archive(place)),)
        return Receipt("forget", str(place), notes=notes, saved=saved, repaired=repaired)


def _repaired(tree: Tree, place: Path) -> tuple[Repair | None, tuple[str, ...], tuple[str, ...]]:
    """What a repair brought: itself, saved copies, notes. A ledger that cannot be read is none the less forgotten."""
    try:
        held = Session(read_ledger(tree, place))
    except InvalidError:
        return None, (), ()
    try:
        held.repair()
    except ProbePatchError as error:
        return held.repaired, held.saved, (*held.notes, error.what)
    return held.repaired, held.saved, held.notes


def _archive(place: Path) -> Path:
    """Move the records and the kept originals out of the ledger's sight; the name of the records then."""
    name = f"ledger-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}"
    archive = place / f"{name}.jsonl"
    for old, new in ((place / chain.NAME, archive), (place / OBJECTS, place / f"{name}.{OBJECTS}")):
        if old.exists():
            os.rename(old, new)
    return archive
