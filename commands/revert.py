"""``probepatch revert CHECKOUT``: take edits out again, keep what others changed, and prove the result."""

from __future__ import annotations

from pathlib import Path

import click

from codemods.checkout import Tree
from codemods.errors import UsageError
from codemods.gitrepo import diff_digest
from commands import __version__
from commands.output import json_option, print_json
from commands.receipts import print_proof, print_receipt
from commands.target import checkout_options, find_checkout
from locales import _
from patch_ledger.receipt import Receipt
from patch_ledger.revert import revert as take_out


@click.command
@checkout_options
@click.option("--recipe", metavar="ID", help=_("only the edits of this recipe"))
@click.option("--edit", metavar="ID", help=_("only this edit: its id, or recipe/id"))
@click.option("--force", is_flag=True, help=_("where others changed our lines: keep a copy, put the original back"))
@json_option
def command(
    checkout: Path | None,
    package: str | None,
    python: str | None,
    recipe: str | None,
    edit: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """Exit code 1 when an edit had to stay, or a trace of ours is left."""
    if recipe is not None and edit is not None:
        raise UsageError(_("--recipe and --edit exclude each other"), todo=_("say --edit recipe/id"))
    receipt = revert(find_checkout(checkout, package, python), recipe, edit, force)
    if as_json:
        print_json(receipt.as_json())
    else:
        print_receipt(receipt)
        print_proof(receipt.proof)
    return 1 if receipt.refused or (receipt.proof is not None and receipt.proof.residue) else 0


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
