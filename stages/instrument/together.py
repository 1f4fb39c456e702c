"""Checkouts that are patched together: all of them or none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from codemods.checkout import Tree
from codemods.errors import ProbePatchError
from codemods.gitrepo import diff_digest
from codemods.plan import Plan
from locales import _
from patch_ledger.apply import commit
from patch_ledger.merge import BaseView
from patch_ledger.receipt import Receipt
from patch_ledger.store import open_ledger
from stages.card.edits import agree, editing


@dataclass(frozen=True)
class Part:
    """One checkout with its checked plan; ``views`` are its files as the plan was made on them, ``sides`` whose code it is."""

    sides: tuple[str, ...]
    tree: Tree
    plan: Plan
    views: Mapping[str, BaseView]


def patch(card: Path, parts: Iterable[Part], tool: str) -> list[Receipt]:
    """Write every part, in order; when one cannot be written those before it are put back as they were, and the error goes on."""
    written: list[tuple[Part, Receipt]] = []
    try:
        for part in parts:
            before = diff_digest(part.tree.git, [file.path for file in part.plan.changed])
            with editing(card, part.tree, part.plan.recipes):
                receipt = commit(part.tree, part.plan, command="capture prepare", tool=tool, git_diff=before)
            written.append((part, receipt))
    except BaseException as error:
        left = [part for part, receipt in reversed(written) if receipt.txn and not _put_back(card, part, tool)]
        if left and isinstance(error, ProbePatchError):
            names = ", ".join(part.tree.given for part in left)
            error.details += (_("still patched, for it could not be put back: {names}").format(names=names),)
        raise
    return [receipt for _part, receipt in written]


def _put_back(card: Path, part: Part, tool: str) -> bool:
    """The edits that were active before, and no others."""
    with suppress(ProbePatchError):
        commit(part.tree, before(part), command="capture prepare, undone", tool=tool)
        agree(card, part.tree)
        return True
    return False


def before(part: Part) -> Plan:
    """The plan that leads back to what the checkout was when ``part.plan`` was made."""
    views = {view.path: view for view in part.views.values()}
    files = tuple(
        replace(file, before=file.after, edits=views[file.path].edits if file.path in views else ())
        for file in part.plan.files
    )
    return Plan(files, {}, (), open_ledger(part.tree).chain.head)


def ledger_heads(trees: Sequence[Tree]) -> list[dict[str, str]]:
    """Of each checkout: where its ledger is, and the hash of its last line."""
    found = [(tree, open_ledger(tree)) for tree in trees]
    return [{"checkout": str(tree.root), "place": str(one.place), "head": one.chain.head} for tree, one in found]
