"""Which checkouts hold edits of a task: noted before the first byte is written, so that restoring is always reachable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from codemods.checkout import PACKAGES, Tree, import_roots, open_tree
from codemods.errors import ProbePatchError
from locales import _
from patch_ledger.store import open_ledger
from stages.card.card import Card, now
from stages.card.permissions import demand
from stages.card.store import changing


@contextmanager
def editing(path: Path | None, tree: Tree, recipes: Iterable[str]) -> Iterator[None]:
    """Around an apply: without a card (``path`` is None) nothing at all; with one it asks for the two permissions, and notes the
    checkout with the recipes. Raises NotPermittedError before anything is written."""
    if path is None:
        yield
        return
    with changing(path) as card:
        demand(card, "AUTH_EDIT_TARGET_CODE", "AUTH_RESTORE_CODE")
        note(card, _key(tree), {*_noted(card, _key(tree)), *recipes})
    try:
        yield
    except ProbePatchError:
        with suppress(ProbePatchError):  # the card may say too much, never too little
            agree(path, tree)
        raise


def agree(path: Path, tree: Tree) -> None:
    """Make the card say what the checkout's ledger says: after a revert, or an apply that came to nothing."""
    ledger = open_ledger(tree)
    if ledger.pending is None:
        with changing(path) as card:
            note(card, _key(tree), {edit.recipe for entry in ledger.active().values() for edit in entry.edits})


def note(card: Card, checkout: str, recipes: Iterable[str]) -> None:
    """Set a checkout's recipes; with none it goes off the card."""
    names = sorted(recipes)
    before = _noted(card, checkout)
    if names == before:
        return
    others = [one for one in card.data["edits"] if one["checkout"] != checkout]
    entry = {"checkout": checkout, "recipes": names, "at": now()}
    card.data["edits"] = [*others, entry] if names else others
    text = _("edits in {checkout}: {recipes}") if names else _("no edit is left in {checkout}")
    card.note(text.format(checkout=checkout, recipes=", ".join(names)))


def without_ours(card: Card, path: Path, current: str) -> str | None:
    """The SHA-256 of what a file was before our edits, where ``current`` is what they made of it; None for any other file."""
    real = path.resolve()
    for one in card.data["edits"]:
        if real.is_relative_to(one["checkout"]):
            for tree in _trees(Path(one["checkout"])):
                with suppress(ProbePatchError, OSError):
                    for entry in open_ledger(tree).active().values():
                        if entry.after == current and tree.root / entry.path == real:
                            return entry.base
    return None


def _trees(checkout: Path) -> Iterator[Tree]:
    """What may have been taken for the checkout's root: with its framework, as any folder, and as each of its import roots."""
    for place, packages in ((checkout, PACKAGES), (checkout, ()), *((root, ()) for root in import_roots(checkout))):
        with suppress(ProbePatchError, OSError):
            yield open_tree(place, packages)


def _noted(card: Card, checkout: str) -> list[str]:
    return [name for one in card.data["edits"] if one["checkout"] == checkout for name in one["recipes"]]


def _key(tree: Tree) -> str:
    """The path by which revert finds the checkout again from anywhere."""
    return str(Path(tree.given).resolve())
