"""Why a line of a checkout is there: the ledger's word, the recipe's reason, and git's answer for what is none of ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from codemods.catalogue import catalogue
from codemods.checkout import Tree
from codemods.errors import FindingError, RefusedError, UsageError
from codemods.gitrepo import in_head
from codemods.recipe import Recipe
from codemods.recipe_reader import load_recipe
from codemods.splice import PlannedEdit
from locales import _
from patch_ledger.explain import LineOrigin, kept_from, line_span, origin
from patch_ledger.records import FileEntry, Intent
from patch_ledger.status import EditStatus, status
from patch_ledger.store import Ledger, open_ledger
from patch_ledger.tree import canonical, read_target

OURS = "ours"  # the whole line is an edit's
COMMIT = "commit"  # it is of the commit that is checked out
BEFORE = "before"  # it stood there when our edits were made; no commit tells more
YOURS = "yours"  # a change in the work tree that is none of ours
UNKNOWN = "unknown"


@dataclass(frozen=True)
class EditReason:
    """An edit that has a share in the line. ``did``: line, part, indent, removed or changed (``patch_ledger/explain.py``);
    ``state`` is what `status` says. ``verb``, ``recipe_file`` and ``recipe_line`` are None where no recipe of that name is at hand;
    ``same_recipe`` tells whether it is the one that was applied."""

    recipe: str
    edit: str
    did: str
    state: str
    why: str
    symbol: str
    when: str
    command: str
    tool: str
    txn: str
    verb: str | None
    recipe_file: str | None
    recipe_line: int | None
    same_recipe: bool | None


@dataclass(frozen=True)
class Explained:
    """``owner``: ours, commit, before, yours or unknown; ``because`` the sentence for it. ``path`` is relative to the root."""

    path: str
    line: int
    text: str
    owner: str
    because: str
    edits: tuple[EditReason, ...]
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def split_place(place: str) -> tuple[str, int]:
    """``FILE:LINE`` in its parts. Raises UsageError."""
    file, colon, line = place.rpartition(":")
    if not colon or not file or not line.isascii() or not line.isdigit() or int(line[:12]) == 0 or len(line) > 9:
        raise UsageError(
            _("`{place}` is not FILE:LINE").format(place=place),
            todo=_("for example: verl/workers/engine_workers.py:704"),
        )
    return file, int(line)


def explain(tree: Tree, place: str, recipes: Sequence[Recipe] = ()) -> Explained:
    """Explain one line; ``recipes`` are those of the user's own.

    Raises UsageError for a place that is not there, FindingError for a recorded file that is missing.
    """
    file, line = split_place(place)
    ledger = open_ledger(tree)
    path = _path(tree, ledger, file)
    entry = ledger.active().get(path)
    disk = read_target(tree.root, path)
    if disk is None:
        if entry is None:
            raise UsageError(_("there is no file {file} in the checkout").format(file=file))
        raise FindingError(
            _("{path} is missing").format(path=path), todo=_("`probepatch status` tells what became of its edits")
        )
    span = line_span(disk, line)
    if span is None:
        count = disk.count(b"\n") + (disk[-1:] not in (b"", b"\n"))
        raise UsageError(_("{path} has no line {line}; it has {count}").format(path=path, line=line, count=count))
    text = disk[slice(*span)].decode("utf-8", "replace").strip("\r\n")
    base = (ledger.base(entry) or b"") if entry else disk
    found = origin(base, entry.edits if entry else (), disk, span)
    owner, because = _owner(tree, path, found, base if entry else None)
    reasons = _reasons(tree, ledger, path, entry, found, recipes) if entry and found.shares else ()
    return Explained(path, line, text, owner, because, tuple(reasons), _notes(ledger))


def _path(tree: Tree, ledger: Ledger, file: str) -> str:
    """The file's path in the ledger's words: as given from here, from the root, from the import root."""
    tried = []
    for folder in (Path.cwd(), tree.root, tree.import_root, Path(tree.given)):
        try:
            real = (folder / file).resolve()
            inner = real.relative_to(tree.root.resolve()).as_posix()
            if real.is_file():
                return canonical(tree.root, inner)
            tried.append(inner)
        except (OSError, ValueError, RuntimeError, RefusedError):  # a NUL, a name too long, a loop, out of the tree
            continue
    recorded = ledger.active()
    return next((path for path in tried if path in recorded), tried[-1] if tried else _outside(file))


def _outside(file: str) -> str:
    raise UsageError(_("{file} is not in the checkout").format(file=ascii(file)))


def _owner(tree: Tree, path: str, found: LineOrigin, base: bytes | None) -> tuple[str, str]:
    if not found.own:
        return OURS, _("an edit of ours put the line here")
    head = in_head(tree.git, [path]).get(path)
    if head is not None:
        if kept_from(head, found.base, found.own):
            return COMMIT, _("the line is of the commit that is checked out")
        if base is None or kept_from(base, found.base, found.own):
            return YOURS, _("the line is not in the commit; it was changed in the work tree, and not by us")
        return YOURS, _("the line was changed in the work tree after our edits were made, and not by us")
    if base is None:
        return UNKNOWN, _("no edit of ours is recorded for this file, and no commit tells more")
    if kept_from(base, found.base, found.own):
        return BEFORE, _("the line is older than our edits")
    return YOURS, _("the line was changed after our edits were made, and not by us")


def _reasons(
    tree: Tree, ledger: Ledger, path: str, entry: FileEntry, found: LineOrigin, own: Sequence[Recipe]
) -> list[EditReason]:
    states = [edit for edit in status(tree).edits if edit.path == path]
    known = {recipe.id: recipe for recipe in own}
    wanted = {entry.edits[share.edit].recipe for share in found.shares} - set(known)
    if wanted:
        known |= {heading.id: load_recipe(heading.path) for heading in catalogue() if heading.id in wanted}
    return [
        _reason(entry.edits[share.edit], share.did, states, _since(ledger, path, entry.edits[share.edit]), known)
        for share in found.shares
    ]


def _reason(
    edit: PlannedEdit, did: str, states: Sequence[EditStatus], since: Intent | None, known: dict[str, Recipe]
) -> EditReason:
    state = next((one.state for one in states if (one.recipe, one.edit) == (edit.recipe, edit.id)), "")
    recipe = known.get(edit.recipe)
    written = next((one for one in recipe.edits if one.id == edit.id), None) if recipe else None
    file, _colon, line = written.where.rpartition(":") if written else ("", "", "")
    return EditReason(
        edit.recipe,
        edit.id,
        did,
        state,
        edit.why,
        edit.symbol,
        since.time if since else "",
        since.command if since else "",
        since.tool if since else "",
        since.txn if since else "",
        written.verb.name if written else None,
        file or (str(recipe.path) if recipe else None),
        int(line) if line else None,
        recipe.digest == edit.digest if recipe else None,
    )


def _since(ledger: Ledger, path: str, edit: PlannedEdit) -> Intent | None:
    """The transaction that made the edit, in this form, since when it stands."""
    since: Intent | None = None
    for intent, outcome in ledger.history:
        files = [file for file in intent.files if file.path == path] if outcome == "commit" else []
        for file in files:
            holds = any((one.name, one.digest) == (edit.name, edit.digest) for one in file.edits)
            since = (since or intent) if holds else None
    return since


def _notes(ledger: Ledger) -> tuple[str, ...]:
    if ledger.pending is None:
        return ()
    text = _("an earlier {command} was interrupted; apply, revert and `ledger recover` repair it")
    return (text.format(command=ledger.pending.command),)
