"""Where the edits of a checkout are recorded, when that is not where a new record would go.

A tree can look different later: its framework was described beside a recipe file that nobody names to ``status``, it was
put into git meanwhile, or git is not installed any more. So the ledger's places are looked at, above the given folder
and below it.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from codemods.checkout import INSTALLED, Tree, import_roots
from codemods.gitrepo import find_git_dir
from commands.target import find_checkout
from locales import _
from patch_ledger.store import find_place, open_ledger
from patch_ledger.tree import DOT_FOLDER


def find_recorded(checkout: Path | None, package: str | None, python: str | None) -> Tree:
    """The named checkout, for questions about the edits that stand in it."""
    return where_recorded(find_checkout(checkout, package, python))


def where_recorded(tree: Tree, *, to_plan: bool = False) -> Tree:
    """The checkout with the root of the ledger that is there; itself when there is none, or it is in its own place.

    With ``to_plan`` only a root that holds the framework will do. Another ledger is named in a note. Raises InvalidError
    for a ledger that cannot be read.
    """
    given = Path(tree.given).resolve()
    found = [other for other in _below(tree, given) if find_place(other).is_dir()]
    found += [other for other in _above(tree, given) if find_place(other).is_dir() and _concerns(other, given)]
    fitting = [other for other in found if not to_plan or tree.import_root.is_relative_to(other.root)]
    first = tree if find_place(tree).is_dir() or not fitting else fitting[0]
    others = {find_place(other): other.root for other in found}
    others.pop(find_place(first), None)
    text = _("edits are recorded in {place}, too; name {root} for those")
    notes = (text.format(place=place, root=root) for place, root in others.items())
    return replace(first, notes=(*tree.notes, *notes))


def _below(tree: Tree, given: Path) -> Iterator[Tree]:
    """The import roots that a checkout may have, each as a plain folder."""
    for root in (found.resolve() for found in import_roots(given)):
        if _ledger_owner(root) is not None:
            yield _plain(tree, root)


def _above(tree: Tree, given: Path) -> Iterator[Tree]:
    """Folders around the given one, up to the end of its file system or its installation; and its repository, whether
    or not git can be asked."""
    device, owner = given.stat().st_dev, given.stat().st_uid
    if tree.git_dir is None:
        repo = find_git_dir(given)
        if repo is not None and given.is_relative_to(repo.top):
            yield _at(tree, repo.top, repo.git_dir)
    for root in given.parents if given.name not in INSTALLED else ():
        if root.stat().st_dev != device:
            return
        if _ledger_owner(root) == owner:  # a stranger's record does not say what we write
            yield _plain(tree, root)
        if root.name in INSTALLED:
            return


def _ledger_owner(root: Path) -> int | None:
    """The user id of a plain folder's ledger; None when there is none."""
    try:
        found = (root / DOT_FOLDER).lstat()
    except OSError:
        return None
    return found.st_uid if stat.S_ISDIR(found.st_mode) else None


def _plain(tree: Tree, root: Path) -> Tree:
    return _at(tree, root, tree.git_dir if root == tree.root else None)


def _at(tree: Tree, root: Path, git_dir: Path | None) -> Tree:
    """The same checkout with its ledger paths relative to ``root``."""
    import_root = tree.import_root if tree.import_root.is_relative_to(root) else root
    prefix = import_root.relative_to(root).as_posix()
    return replace(tree, root=root, git_dir=git_dir, import_root=import_root, prefix="" if prefix == "." else prefix)


def _concerns(tree: Tree, given: Path) -> bool:
    """Whether one of the recorded files lies in the given folder."""
    ledger = open_ledger(tree)
    paths = {*ledger.active(), *(file.path for file in (ledger.pending.files if ledger.pending else ()))}
    return any((tree.root / path).is_relative_to(given) for path in paths)
