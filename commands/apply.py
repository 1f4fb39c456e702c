"""``probepatch apply CHECKOUT``: write the plan, all of it or nothing, and record it in the ledger."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from codemods.gitrepo import diff_digest
from commands import __version__
from commands.diff import plan_as_json, print_notes, print_summary
from commands.output import json_option, print_json, say
from commands.planning import Prepared, Wish, find_tree, planning_options, prepare
from commands.receipts import print_files, print_repair, print_saved
from commands.task_card import card_path_if_any, task_option
from locales import _
from patch_ledger.admin import recover
from patch_ledger.apply import commit
from patch_ledger.receipt import Receipt
from patch_ledger.repair import Repair
from patch_ledger.store import open_ledger
from stages.card.edits import editing


@click.command
@planning_options
@task_option
@json_option
def command(as_json: bool, task: Path | None, **options: Any) -> None:
    """Within a task it needs the two permissions, and leaves a note on the card."""
    wish = Wish(**options)
    card = card_path_if_any(task)
    repaired = repair(wish)
    prepared, receipt = apply(wish, card)
    if as_json:
        print_json(
            plan_as_json(prepared) | {"receipt": receipt.as_json(), "repaired": asdict(repaired) if repaired else None}
        )
        return
    print_repair(repaired or receipt.repaired)
    print_applied(prepared, receipt)


def repair(wish: Wish) -> Repair | None:
    """Bring an interrupted transaction to its end: a plan needs a tree that is one thing or the other."""
    tree = find_tree(wish)
    return recover(tree).repaired if open_ledger(tree).pending is not None else None


def apply(wish: Wish, card: Path | None = None) -> tuple[Prepared, Receipt]:
    """Plan and commit; ``card`` is that of the task to which the edits belong."""
    prepared = prepare(wish)
    tree = prepared.scene.tree
    before = diff_digest(tree.git, [file.path for file in prepared.plan.changed])
    with editing(card, tree, prepared.plan.recipes):
        receipt = commit(tree, prepared.plan, tool=_recorded_as(), git_diff=before)
    return prepared, receipt


def _recorded_as() -> str:
    """Our name and version, and the run on many machines that this apply is part of (PROBEPATCH_FLEET)."""
    run = os.environ.get("PROBEPATCH_FLEET", "")
    return f"probepatch {__version__}; {run}" if run else f"probepatch {__version__}"


def print_applied(prepared: Prepared, receipt: Receipt) -> None:
    """What was written where, and how it is taken back."""
    given = prepared.scene.tree.given
    print_files(receipt)
    print_summary(prepared, _("`probepatch revert {checkout}` takes it out again").format(checkout=given))
    if receipt.place:
        say(_("what was changed is noted in {place}, for `status` and `revert`").format(place=receipt.place), "dim")
    print_saved(receipt.saved)
    print_notes(prepared)
