"""Planning on the base: what a file is without our edits, and one plan out of new edits and those that stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from codemods.errors import FindingError, RefusedError
from codemods.plan import FilePlan, Plan
from codemods.splice import PlannedEdit, check_order
from locales import _
from patch_ledger.repair import progress
from patch_ledger.store import Ledger
from patch_ledger.threeway import GONE, HALF, locate_in
from patch_ledger.tree import canonical, read_target


@dataclass(frozen=True, slots=True)
class BaseView:
    """One file for the planner.

    ``path`` is the canonical path; ``disk`` the bytes now, ``base`` the same without our edits (None for no file), ``edits`` the
    active edits in offsets of ``base``. ``gone`` names edits that are no longer there, ``problems`` those that somebody
    changed: with a problem ``base`` is the recorded one and no plan can be made.
    """

    path: str
    base: bytes | None
    disk: bytes | None
    edits: tuple[PlannedEdit, ...] = ()
    gone: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def read_base(ledger: Ledger, path: str) -> BaseView:
    """A file without our edits, whatever else was done to it since they were made.

    Raises RefusedError when an interrupted transaction must be repaired first, or the path leads out of the tree.
    """
    if ledger.pending is not None:
        raise interrupted(ledger)
    name = canonical(ledger.tree.root, path)
    disk = read_target(ledger.tree.root, name)
    entry = ledger.active().get(name)
    if entry is None:
        return BaseView(name, disk, disk)
    base = ledger.base(entry)
    names = tuple(edit.name for edit in entry.edits)
    if disk is None:
        if base is None:
            return BaseView(name, None, None, gone=names)
        return BaseView(name, base, None, problems=(_("{path} is missing").format(path=name),))
    found = locate_in(base, entry.edits, disk)
    gone = tuple(edit.name for edit, state in zip(entry.edits, found.states, strict=True) if state == GONE)
    if not found.whole:
        changed = [
            (
                _("{edit} is there by half: somebody took some of its lines out")
                if state == HALF
                else _("{edit} is changed inside: somebody changed its lines")
            ).format(edit=edit.name)
            for edit, state, moved in zip(entry.edits, found.states, found.edits, strict=True)
            if moved is None and state != GONE
        ]
        return BaseView(name, base, disk, gone=gone, problems=tuple(changed))
    nothing_else = base is None and not found.base
    return BaseView(name, None if nothing_else else found.base, disk, found.intact, gone)


def interrupted(ledger: Ledger) -> RefusedError:
    """The refusal to plan on a tree in the middle of a transaction."""
    assert ledger.pending is not None
    written, total = progress(ledger.tree.root, ledger.pending)
    return RefusedError(
        _("an earlier {command} was interrupted, {n} of {m} files written").format(
            command=ledger.pending.command, n=written, m=total
        ),
        todo=_("apply, revert and `probepatch ledger recover` repair it"),
    )


def merge(
    ledger: Ledger,
    views: Mapping[str, BaseView],
    planned: Mapping[str, Sequence[PlannedEdit]],
    recipes: Mapping[str, str],
) -> Plan:
    """One plan out of the new edits of ``recipes`` (id -> digest) and the active edits of all others.

    ``views`` are the files as the planner read them; ``planned`` maps their paths to new edits in offsets of ``view.base``. Files
    that only earlier versions of the recipes touched lose those edits. Raises FindingError when an active edit was changed by
    somebody, OverlapError when two edits claim one place.
    """
    by_path = {view.path: view for view in views.values()}
    edits: dict[str, list[PlannedEdit]] = {}
    via: dict[str, str] = {}
    for asked, new in planned.items():
        view = views[asked] if asked in views else read_base(ledger, asked)
        by_path.setdefault(view.path, view)
        if asked != view.path:
            via[view.path] = asked
        edits.setdefault(view.path, []).extend(new)
    for path, entry in ledger.active().items():
        if any(edit.recipe in recipes for edit in entry.edits):
            edits.setdefault(path, [])
            if path not in by_path:
                by_path[path] = read_base(ledger, path)
    files = tuple(
        replace(_merged(by_path[path], new, recipes, ledger), via=via.get(path, ""))
        for path, new in sorted(edits.items())
    )
    notes = tuple(
        _("{edit} is no longer in {path}; it was undone there by other means").format(edit=name, path=file.path)
        for file in files
        for name in by_path[file.path].gone
        if name.partition("/")[0] not in recipes
    )
    return Plan(files, dict(recipes), notes, ledger.chain.head)


def _merged(view: BaseView, new: Sequence[PlannedEdit], recipes: Mapping[str, str], ledger: Ledger) -> FilePlan:
    if view.problems:
        raise FindingError(
            view.problems[0],
            where=view.path,
            why=_("its place cannot be told any more"),
            todo=_("look with `probepatch status`; `probepatch revert --force` keeps a copy and puts the original back")
            if view.base is not None
            else _("our edit added this file: `probepatch revert --force` keeps a copy and removes it"),
            details=view.problems[1:],
        )
    edits = (*(edit for edit in view.edits if edit.recipe not in recipes), *new)
    edits = tuple(sorted(edits, key=lambda edit: (edit.order, edit.name)))
    check_order(view.path, edits)
    entry = ledger.active().get(view.path)
    return FilePlan(view.path, view.base, view.disk, edits, entry.compiled if entry and not new else "")
