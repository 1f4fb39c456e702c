"""Taking edits out again: exactly, with everybody else's changes kept, and with proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from codemods.errors import RefusedError
from codemods.splice import PlannedEdit, render
from locales import _
from patch_ledger.apply import done
from patch_ledger.needs import Need, Standing, needs
from patch_ledger.preflight import Change
from patch_ledger.proof import TRACES, file_proof, residue
from patch_ledger.receipt import Proof, Receipt, Refusal
from patch_ledger.records import FileEntry
from patch_ledger.repair import save
from patch_ledger.status import FILE_MISSING, UNREADABLE, states_of, todo_for
from patch_ledger.store import Ledger, find_place
from patch_ledger.symbols import compiles
from patch_ledger.threeway import GONE, INSIDE, Located, locate_in
from patch_ledger.transaction import Session, session
from patch_ledger.tree import Tree, digest, read_target

_DIFF_LINES = 24
NOT_COMPILING = "not-compiling"
NEEDED = "needed"  # by an edit that stays


@dataclass(slots=True)
class _Outcome:
    """One file of a revert: what to write, what was refused, and the bytes to keep a copy of; ``going`` are the edits that come
    out, ``absent`` the names of those that are not there to need anything."""

    entry: FileEntry
    change: Change | None = None
    refused: tuple[Refusal, ...] = ()
    keep: bytes | None = None
    notes: tuple[str, ...] = ()
    going: tuple[PlannedEdit, ...] = ()
    absent: tuple[str, ...] = ()


def revert(
    tree: Tree,
    *,
    recipe: str | None = None,
    edit: str | None = None,
    force: bool = False,
    tool: str = "",
    git_diff: Callable[[list[str]], str | None] | None = None,
    traces: Sequence[str] = TRACES,
) -> Receipt:
    """Take out all edits, those of one recipe, or one edit (``recipe/id``, or ``id`` alone).

    An edit that somebody changed is refused, named in ``Receipt.refused``, and left as it is; ``force`` keeps a copy of that file
    and puts its base back. ``git_diff`` is called afterwards with the paths to compare with what was recorded before the apply.
    Nothing to do is a receipt without ``txn``.
    """
    place = find_place(tree)
    if not place.is_dir():
        return Receipt("revert", "", notes=(_("nothing to do: no edit is recorded here"),))
    with session(tree) as held:
        return _revert(held, _chooser(recipe, edit), edit is not None, force, tool, git_diff, traces)


def _chooser(recipe: str | None, edit: str | None) -> Callable[[PlannedEdit], bool]:
    def chosen(candidate: PlannedEdit) -> bool:
        return recipe in (None, candidate.recipe) and edit in (None, candidate.id, candidate.name)

    return chosen


def _revert(
    held: Session,
    chosen: Callable[[PlannedEdit], bool],
    alone: bool,
    force: bool,
    tool: str,
    git_diff: Callable[[list[str]], str | None] | None,
    traces: Sequence[str],
) -> Receipt:
    """``alone``: single edits were chosen, and come out whatever needs them."""
    ledger = held.ledger
    recorded, paths = ledger.git_diff_before()
    active = [entry for entry in ledger.active().values() if any(chosen(edit) for edit in entry.edits)]
    outcomes = [_plan(ledger, entry, chosen, force) for entry in active]
    kept_back: list[Need] = []
    while not alone and (found := list(_needed(ledger, outcomes))):
        kept_back += found
        back = {(need.edit.path, need.edit.edit.name) for need in kept_back}
        outcomes = [_plan(ledger, entry, _but(chosen, entry.path, back), force) for entry in active]
    refused = tuple(refusal for outcome in outcomes for refusal in outcome.refused)
    refused += tuple(_needed_refusal(need) for need in kept_back)
    changes = [outcome.change for outcome in outcomes if outcome.change is not None]
    notes = [note for outcome in outcomes for note in outcome.notes]
    notes += [_broken_note(need) for need in _needed(ledger, outcomes)] if alone else []
    if not changes:
        notes += [] if refused else [_("nothing to do: no such edit is active")]
        notes += held.notes
        return Receipt("revert", str(ledger.place), "", (), tuple(notes), refused, held.saved, held.repaired)
    kept = list(_keep_copies(ledger, outcomes))
    intent = held.run(changes, "revert", tool=tool)
    ledger = held.ledger
    notes += held.notes
    touched = [outcome.entry for outcome in outcomes if outcome.change is not None]
    after = git_diff(paths) if git_diff is not None and recorded is not None and not ledger.active() else None
    proof = Proof(
        tuple(file_proof(ledger, entry) for entry in touched if not ledger.entries[entry.path].edits),
        tuple(found for entry in touched for found in residue(ledger, entry, traces)),
        None if after is None else after == recorded,
    )
    return Receipt(
        "revert",
        str(ledger.place),
        intent.txn,
        tuple(done(file) for file in intent.files),
        tuple(notes),
        refused,
        (*held.saved, *kept),
        held.repaired,
        proof,
    )


def _but(chosen: Callable[[PlannedEdit], bool], path: str, back: set[tuple[str, str]]) -> Callable[[PlannedEdit], bool]:
    """The choice without the edits (path, name) that are held back."""
    return lambda edit: chosen(edit) and (path, edit.name) not in back


def _needed(ledger: Ledger, outcomes: Sequence[_Outcome]) -> Iterator[Need]:
    """Which edits that would come out are needed by edits that stay."""
    going = {(outcome.entry.path, edit.name) for outcome in outcomes for edit in outcome.going}
    absent = {(outcome.entry.path, name) for outcome in outcomes for name in outcome.absent}
    recipes = {edit.recipe for outcome in outcomes for edit in outcome.going}
    here = [
        (path, entry, edit)
        for path, entry in ledger.active().items()
        for edit in entry.edits
        if edit.recipe in recipes and (path, edit.name) not in absent
    ]
    if all((path, edit.name) in going for path, _entry, edit in here):
        return
    staying: list[Standing] = []
    leaving: list[Standing] = []
    for path, entry, edit in here:
        standing = Standing(path, edit, ledger.base(entry))
        (leaving if (path, edit.name) in going else staying).append(standing)
    yield from needs(staying, leaving)


def _needed_refusal(need: Need) -> Refusal:
    text = _("{user} stays and uses `{name}`, which this edit brings; they go together")
    if need.name == "*":
        text = _("{user} stays and may use what this edit brings; they go together")
    why = text.format(user=need.user.edit.name, name=need.name)
    return Refusal(need.edit.path, need.edit.edit.name, NEEDED, why)


def _broken_note(need: Need) -> str:
    text = _("{user} in {path} stays and uses `{name}`, which {edit} brought: the code will not run like this")
    names = {"user": need.user.edit.name, "path": need.user.path, "name": need.name, "edit": need.edit.edit.name}
    return text.format(**names)


def _keep_copies(ledger: Ledger, outcomes: Sequence[_Outcome]) -> Iterator[str]:
    """Copies of the files that ``force`` overwrites, named by their bytes."""
    for outcome in outcomes:
        if outcome.keep is not None:
            name = str(digest(outcome.keep))[:12]
            yield str(save(ledger.place, name, outcome.entry.path, outcome.keep))


def _plan(ledger: Ledger, entry: FileEntry, chosen: Callable[[PlannedEdit], bool], force: bool) -> _Outcome:
    """What becomes of one file."""
    try:
        disk = read_target(ledger.tree.root, entry.path)
    except RefusedError as error:
        return _Outcome(entry, refused=tuple(_unreadable(entry, edit, error) for edit in entry.edits if chosen(edit)))
    base = ledger.base(entry)
    stay = tuple(edit for edit in entry.edits if not chosen(edit))
    if disk is None:
        states = states_of(entry, base, disk)
        found = Located(states, b"", (None,) * len(states))
    else:
        found = locate_in(base, entry.edits, disk)
    leaving = [
        (edit, state, moved)
        for edit, state, moved in zip(entry.edits, found.states, found.edits, strict=True)
        if chosen(edit)
    ]
    stuck = [(edit, state) for edit, state, moved in leaving if moved is None and state != GONE]
    if stuck and force:
        return _forced(entry, base, disk, stay, chosen)
    outcome = _taken_out(entry, base, disk, found, chosen)
    refusals = tuple(_refusal(ledger, entry, disk, edit, state) for edit, state in stuck)
    if outcome is None:
        if force:
            return _forced(entry, base, disk, stay, chosen)
        refusals += tuple(
            _refusal(ledger, entry, disk, edit, NOT_COMPILING) for edit, _state, moved in leaving if moved is not None
        )
        return _Outcome(entry, refused=refusals)
    going = tuple(edit for edit, _state, moved in leaving if moved is not None)
    absent = tuple(
        edit.name for edit, state in zip(entry.edits, found.states, strict=True) if state in (GONE, FILE_MISSING)
    )
    gone = [edit.name for edit, state, _moved in leaving if state == GONE]
    notes = tuple(_("{edit} was gone from {path} already").format(edit=name, path=entry.path) for name in gone)
    change = outcome if len(stuck) < len(leaving) else None
    return _Outcome(entry, change, refusals, None, notes, going, absent)


def _taken_out(
    entry: FileEntry, base: bytes | None, disk: bytes | None, found: Located, chosen: Callable[[PlannedEdit], bool]
) -> Change | None:
    """The file without the chosen edits that are intact; None when it would no longer compile."""
    kept = tuple(edit for edit in found.intact if not chosen(edit))
    left = [
        (edit, moved)
        for edit, state, moved in zip(entry.edits, found.states, found.edits, strict=True)
        if not chosen(edit) or (moved is None and state != GONE)
    ]
    after = None if disk is None else render(found.base, kept)
    if base is None and not after and not left:
        after = None
    if not _may_replace(entry, base, disk, after):
        return None
    if disk is not None and all(moved is not None for _edit, moved in left):
        return _change(entry, disk, after, None if base is None and not found.base else found.base, kept)
    return _change(entry, disk, after, base, tuple(edit for edit, _moved in left))


def _may_replace(entry: FileEntry, base: bytes | None, disk: bytes | None, after: bytes | None) -> bool:
    if not entry.path.endswith(".py") or after in (None, disk, base) or disk is None:
        return True
    assert after is not None
    return compiles(after) or not compiles(disk)


def _change(
    entry: FileEntry, disk: bytes | None, after: bytes | None, base: bytes | None, edits: tuple[PlannedEdit, ...]
) -> Change:
    return Change(
        path=entry.path,
        before=disk,
        after=after,
        base=base,
        edits=edits,
        origin=entry.origin,
        mode=entry.mode,
        via=entry.via,
        made=entry.made,
        compiled=entry.compiled,
    )


def _forced(
    entry: FileEntry,
    base: bytes | None,
    disk: bytes | None,
    stay: tuple[PlannedEdit, ...],
    chosen: Callable[[PlannedEdit], bool],
) -> _Outcome:
    """The recorded base again, with the edits that stay; what is on disk is kept as a copy."""
    after = None if base is None and not stay else render(base or b"", stay)
    going = tuple(filter(chosen, entry.edits))
    return _Outcome(entry, _change(entry, disk, after, base, stay), keep=disk, going=going)


def _refusal(ledger: Ledger, entry: FileEntry, disk: bytes | None, edit: PlannedEdit, state: str) -> Refusal:
    if state == NOT_COMPILING:
        why = _("without this edit the file would no longer compile")
    elif state == FILE_MISSING:
        why = _("the file is missing")
    elif entry.base is None:
        why = _("somebody changed the file, which we added")
    else:
        why = _("its lines were changed by somebody")
    todo = todo_for(state, added=entry.base is None) or todo_for(INSIDE)
    details = tuple(_difference(ledger.ancestor(entry), disk, entry.path))
    return Refusal(entry.path, edit.name, state, f"{why}; {todo}", details)


def _unreadable(entry: FileEntry, edit: PlannedEdit, error: RefusedError) -> Refusal:
    return Refusal(entry.path, edit.name, UNREADABLE, f"{error.what}; {todo_for(UNREADABLE)}")


def _difference(ours: bytes | None, disk: bytes | None, path: str) -> list[str]:
    """A small diff from what we left to what is there."""
    if disk is None:
        return []
    from difflib import unified_diff

    before = (ours or b"").decode("utf-8", "backslashreplace").split("\n")
    after = disk.decode("utf-8", "backslashreplace").split("\n")
    lines = list(unified_diff(before, after, _("{path} as we left it").format(path=path), path, n=2, lineterm=""))
    return lines[:_DIFF_LINES] + (["…"] if len(lines) > _DIFF_LINES else [])
