"""The whole round on one small file, with the real ledger, in a temporary folder: apply, apply again, revert."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from codemods.checkout import Tree
from codemods.errors import RefusedError
from codemods.plan import Plan
from codemods.planner import plan_edits
from codemods.recipe import Recipe
from codemods.target import Bases
from locales import _
from patch_ledger.apply import commit
from patch_ledger.merge import BaseView, merge, read_base
from patch_ledger.revert import revert
from patch_ledger.store import open_ledger


@dataclass(frozen=True)
class Round:
    """The file's bytes after the first apply, after the second, and after the revert; None for no file."""

    applied: bytes | None
    again: bytes | None
    reverted: bytes | None


def run_round(recipe: Recipe, file: str, before: bytes, version: Version | None) -> Round:
    """Apply, apply again and revert ``recipe`` on a tree of one file.

    Raises what planning raises, and RefusedError when the file cannot be written there.
    """
    with _folder() as root:
        path = root / file
        _write(path, before)
        tree = Tree(root, None, root, "", str(root))
        seen = []
        for _time in range(2):
            commit(tree, _plan(tree, recipe, version))
            seen.append(path.read_bytes())
        revert(tree)
        return Round(seen[0], seen[1], path.read_bytes() if path.is_file() else None)


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except (OSError, ValueError, RecursionError) as error:  # a name or path that is too long, a full disk
        raise RefusedError(_("{path} cannot be written").format(path=path), why=str(error)) from error


def _plan(tree: Tree, recipe: Recipe, version: Version | None) -> Plan:
    """As a command plans it: on the base that the ledger gives."""
    ledger = open_ledger(tree)
    views: dict[str, BaseView] = {}

    def read(path: str) -> bytes | None:
        views[path] = read_base(ledger, path)
        return views[path].base

    planned = plan_edits([recipe], Bases(read), version=version)
    return merge(ledger, views, planned, {recipe.id: recipe.digest})


@contextmanager
def _folder() -> Iterator[Path]:
    try:
        folder = tempfile.TemporaryDirectory(prefix="probepatch-example-")
    except OSError as error:
        raise RefusedError(_("no temporary folder can be made"), why=str(error)) from error
    with folder as name:
        yield Path(name).resolve()
