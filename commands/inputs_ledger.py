"""What `inputs fix` and `params fix` share: a file's tree and its bytes without our edits, and the way through the ledger."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from codemods.errors import FindingError, UsageError
from locales import _

if TYPE_CHECKING:
    from codemods.checkout import Tree
    from codemods.plan import Plan
    from codemods.splice import PlannedEdit
    from patch_ledger.merge import BaseView
    from patch_ledger.receipt import Receipt
    from patch_ledger.store import Ledger


def folder_of(path: Path) -> Path:
    """Raises UsageError for what is no file."""
    if not os.path.exists(path):
        raise UsageError(_("{path} does not exist").format(path=path))
    if os.path.isdir(path):
        raise UsageError(_("{path} is a folder, not a file").format(path=path))
    return path.absolute().parent


def open_tree(path: Path) -> tuple[Tree, Ledger, bool]:
    """The tree that a file stands in, its ledger, and whether an interrupted run had to be repaired first."""
    from commands.recorded import find_recorded
    from patch_ledger.admin import recover
    from patch_ledger.store import open_ledger

    tree = find_recorded(folder_of(path), None, None)
    repaired = open_ledger(tree).pending is not None
    if repaired:
        recover(tree)
    return tree, open_ledger(tree), repaired


def name_in(tree: Tree, path: Path) -> str:
    """The file's path in the tree. Raises UsageError when it lies outside."""
    folder_of(path)
    full = path.parent.resolve() / path.name
    if not full.is_relative_to(tree.root):
        raise UsageError(
            _("{path} is not in {root}").format(path=path, root=tree.root),
            todo=_("fix the files of one tree at a time"),
        )
    return full.relative_to(tree.root).as_posix()


def base_of(ledger: Ledger, name: str, path: Path) -> tuple[BaseView, bytes]:
    """The file without our edits. Raises FindingError where somebody changed one of them."""
    from patch_ledger.merge import read_base

    view = read_base(ledger, name)
    if view.problems or view.base is None:
        raise FindingError(
            view.problems[0] if view.problems else _("{path} is missing").format(path=path),
            where=str(path),
            todo=_("look with `probepatch status`"),
        )
    return view, view.base


def kept_elsewhere(ledger: Ledger, views: dict[str, BaseView], recipe: str) -> dict[str, tuple[PlannedEdit, ...]]:
    """The edits of ``recipe`` in files that are not planned now; they stay, and their files are added to ``views``."""
    from patch_ledger.merge import read_base

    kept = {}
    for path, entry in ledger.active().items():
        if path not in views and any(edit.recipe == recipe for edit in entry.edits):
            views[path] = read_base(ledger, path)
            kept[path] = tuple(edit for edit in views[path].edits if edit.recipe == recipe)
    return kept


def commit_plan(tree: Tree, plan: Plan, recipe: str, command: str, card_file: Path | None) -> Receipt:
    """With a task card it asks for the permissions, and notes the edits there, before a byte is written."""
    from codemods.gitrepo import diff_digest
    from commands import __version__
    from patch_ledger.apply import commit
    from stages.card.edits import editing

    before = diff_digest(tree.git, [file.path for file in plan.changed])
    with editing(card_file, tree, [recipe]):
        return commit(tree, plan, command=command, tool=f"probepatch {__version__}", git_diff=before)
