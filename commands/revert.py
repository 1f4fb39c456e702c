"""``probepatch revert CHECKOUT``: take edits out again, keep what others changed, and prove the result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from codemods.checkout import Tree
from codemods.errors import ProbePatchError, UsageError
from codemods.gitrepo import diff_digest
from commands import __version__
from commands.arguments import text
from commands.names import unknown
from commands.output import json_option, print_json
from commands.receipts import print_proof, print_receipt
from commands.recorded import find_recorded
from commands.target import checkout_options
from commands.task_card import card_path_if_any, task_option
from locales import _
from patch_ledger.receipt import Receipt
from patch_ledger.revert import revert as take_out
from patch_ledger.store import open_ledger
from stages.card.edits import agree


@click.command
@checkout_options
@click.option("--recipe", metavar="ID", type=text, help=_("only the edits of this recipe"))
@click.option("--edit", metavar="ID", type=text, help=_("only this edit: its id, or recipe/id"))
@click.option("--force", is_flag=True, help=_("where others changed our lines: keep a copy, put the original back"))
@task_option
@json_option
def command(
    checkout: Path | None,
    package: str | None,
    python: str | None,
    recipe: str | None,
    edit: str | None,
    force: bool,
    task: Path | None,
    as_json: bool,
) -> int:
    """Exit code 1 when an edit had to stay, or a trace of ours is left."""
    if recipe is not None and edit is not None:
        raise UsageError(_("--recipe and --edit exclude each other"), todo=_("say --edit recipe/id"))
    card = card_path_if_any(task)
    tree = find_recorded(checkout, package, python)
    _expect_recorded(tree, recipe, edit)
    receipt = revert(tree, recipe, edit, force)
    receipt = replace(receipt, notes=(*receipt.notes, *tree.notes, *_noted(card, tree)))
    if as_json:
        print_json(receipt.as_json())
    else:
        print_receipt(receipt)
        print_proof(receipt.proof)
    return 1 if receipt.refused or (receipt.proof is not None and receipt.proof.residue) else 0


def _noted(card: Path | None, tree: Tree) -> tuple[str, ...]:
    """Bring the task's card up to date. What cannot be noted is a note: the files are as they are."""
    if card is None:
        return ()
    try:
        agree(card, tree)
    except ProbePatchError as error:
        return (_("the task card {path} was not brought up to date: {why}").format(path=card, why=error.what),)
    return ()


def _expect_recorded(tree: Tree, recipe: str | None, edit: str | None) -> None:
    """A name that this ledger has never seen is a slip, and not "nothing to do"; in an empty ledger nothing is."""
    intents = (intent for intent, _outcome in open_ledger(tree).history)
    edits = [one for intent in intents for file in intent.files for one in file.edits]
    recipes = {one.recipe for one in edits}
    names = {one.name if "/" in (edit or "") else one.id for one in edits}
    if edits and recipe is not None and recipe not in recipes:
        raise unknown(_("no edit of a recipe `{name}` was ever recorded here").format(name=recipe), recipe, recipes)
    if edits and edit is not None and edit not in names:
        raise unknown(_("no edit `{name}` was ever recorded here").format(name=edit), edit, names)


def revert(tree: Tree, recipe: str | None = None, edit: str | None = None, force: bool = False) -> Receipt:
    """Revert, and compare `git diff` with what it was before the oldest edit."""
    return take_out(
        tree,
        recipe=recipe,
        edit=edit,
        force=force,
        tool=f"probepatch {__version__}",
        git_diff=lambda paths: diff_digest(tree.git, paths),
    )
