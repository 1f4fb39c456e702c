"""``probepatch params fix``: carry out the alignment instructions of method config and code, through the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codemods.errors import UsageError
from commands.arguments import file_path, text
from commands.inputs_scripts import known_of
from commands.output import json_option, print_json, say, warn
from commands.task_card import card_path_if_any, naming, task_option
from locales import _, ngettext

if TYPE_CHECKING:
    from codemods.checkout import Tree
    from codemods.plan import Plan
    from codemods.splice import PlannedEdit
    from commands.planning import Wish
    from patch_ledger.merge import BaseView
    from patch_ledger.receipt import Receipt
    from patch_ledger.store import Ledger
    from stages.card.card import Card
    from stages.inputs.run import Known
    from stages.params.actions import Action, Left
    from stages.params.fix import Planned


@click.command(
    help=_(
        "Carry out param_alignment_instruction.json: set keys of JSON and YAML configs and flags of launch scripts (method config),"
        " rename fields in a bridge or apply a recipe (method code). Only the bytes of that value change, and `probepatch revert`"
        " takes it back. Weights are not edited, and method load is refused. Build the model again afterwards, and check again."
    )
)
@click.argument("instruction", type=file_path, required=False)
@click.option("--point", "points", multiple=True, metavar="P1", type=text, help=_("only this point; may be repeated"))
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="P1=PATH",
    type=text,
    help=_("the file in which the point is mended, where the instruction names none or another; may be repeated"),
)
@click.option("--dry-run", is_flag=True, help=_("show the diff; write nothing"))
@task_option
@json_option
def command(
    instruction: Path | None,
    points: tuple[str, ...],
    files: tuple[str, ...],
    dry_run: bool,
    task: Path | None,
    as_json: bool,
) -> int:
    """Exit code 1 when an instruction is left to the user."""
    from stages.card.order import PARAMS, require
    from stages.card.store import read_card
    from stages.params.actions import read_actions
    from stages.params.report import INSTRUCTION

    card_file = card_path_if_any(task)
    card = read_card(card_file) if card_file is not None else None
    if card is not None:
        require(card, PARAMS)
    path = instruction or (card_file.parent if card_file is not None else Path()) / INSTRUCTION
    actions, left = read_actions(path, points, _files(files))
    works = _prepare([action for action in actions if action.recipe is None], known_of(card, ()))
    recipes = [(action, _recipe_wish(action)) for action in actions if action.recipe is not None]
    plans = [*(work.plan for work in works), *(_planned_recipe(wish) for _action, wish in recipes)]
    receipts = [] if dry_run else _commit(works, recipes, card_file, card)
    if as_json:
        print_json(_as_json(path, works, recipes, left, receipts, any(plan.changed for plan in plans)))
    else:
        _print(works, left, receipts, plans if dry_run else ())
        if any(plan.changed for plan in plans):
            say(_("next: build the model again, then `{command}`").format(command=_following(works, task)))
    return 1 if left else 0


def _files(given: Sequence[str]) -> dict[str, Path]:
    """Raises UsageError."""
    found = {}
    for one in given:
        point, equals, path = one.partition("=")
        if not equals or not point or not path:
            raise UsageError(_("`{text}` is no POINT=PATH").format(text=one))
        found[point] = Path(path)
    return found


@dataclass(frozen=True)
class Work:
    """One tree: ``planned`` by action; ``names`` the files' paths in the tree, in the same order."""

    tree: Tree
    ledger: Ledger
    plan: Plan
    actions: tuple[Action, ...]
    names: tuple[str, ...]
    planned: tuple[Planned, ...]
    repaired: bool


def _prepare(actions: Sequence[Action], known: Known) -> list[Work]:
    """Everything planned before anything is written: each file on its bytes without our edits, which stay."""
    from commands.inputs_ledger import open_tree

    trees: dict[Path, tuple[tuple[Tree, Ledger, bool], list[Action]]] = {}
    for action in actions:
        found = open_tree(action.file)
        trees.setdefault(found[0].root, (found, []))[1].append(action)
    return [_work(*found, tuple(mine), known) for found, mine in trees.values()]


def _work(tree: Tree, ledger: Ledger, repaired: bool, actions: tuple[Action, ...], known: Known) -> Work:
    from commands.inputs_ledger import base_of, kept_elsewhere, name_in
    from patch_ledger.merge import merge
    from stages.params.fix import RECIPE, joined, plan_action

    views = dict[str, "BaseView"]()
    edits = dict[str, "tuple[PlannedEdit, ...]"]()
    names, planned = [], []
    for action in actions:
        name = name_in(tree, action.file)
        view, base = base_of(ledger, name, action.file)
        if name not in views:
            views[name] = view
            edits[name] = tuple(edit for edit in view.edits if edit.recipe == RECIPE)
        found = plan_action(action, base, known)
        edits[name] = joined(edits[name], found.edits)
        names.append(name)
        planned.append(found)
    edits |= kept_elsewhere(ledger, views, RECIPE)
    digest = "-".join(edit.digest[:8] for each in edits.values() for edit in each) or "none"
    plan = merge(ledger, views, edits, {RECIPE: digest})
    return Work(tree, ledger, plan, actions, tuple(names), tuple(planned), repaired)


def _recipe_wish(action: Action) -> Wish:
    from commands.planning import Wish

    assert action.recipe is not None
    return Wish(action.file, None, None, files=(action.recipe,))


def _planned_recipe(wish: Wish) -> Plan:
    from commands.planning import prepare

    return prepare(wish).plan


def _commit(
    works: Sequence[Work], recipes: Sequence[tuple[Action, Wish]], card_file: Path | None, card: Card | None
) -> list[tuple[Tree, Receipt]]:
    from commands.apply import apply
    from commands.inputs_ledger import commit_plan
    from stages.params.fix import RECIPE

    done = []
    for work in works:
        if work.plan.changed:
            _check_again(card_file, card, [work.tree.root / file.path for file in work.plan.changed])
            done.append((work.tree, commit_plan(work.tree, work.plan, RECIPE, "params fix", card_file)))
    for _action, wish in recipes:
        _check_again(card_file, card, ())
        prepared, receipt = apply(wish, card_file)
        done.append((prepared.scene.tree, receipt))
    return done


def _check_again(card_file: Path | None, since: Card | None, files: Sequence[Path]) -> None:
    """What was found out about the model, or the script, before it is edited does not hold afterwards."""
    from stages.card.evidence import evidence, record
    from stages.card.order import INPUTS, PARAMS
    from stages.card.permissions import demand
    from stages.card.store import changing

    if card_file is None:
        return
    with changing(card_file, since) as card:
        demand(card, "AUTH_EDIT_TARGET_CODE", "AUTH_RESTORE_CODE")
        for stage in (INPUTS, PARAMS):
            found = evidence(card, stage)
            rests = found is not None and any(Path(name).resolve() in files for name in found.files)
            if found is not None and (rests or stage == PARAMS):
                text = _("`params fix` has edited {names} since: check again")
                names = ", ".join(path.name for path in files) or _("the checkout")
                record(card, stage, False, text.format(names=names))


def _following(works: Sequence[Work], task: Path | None) -> str:
    bridged = any(action.rename is not None for work in works for action in work.actions)
    return naming("probepatch params provider" if bridged else "probepatch params check", task)


def _as_json(
    path: Path,
    works: Sequence[Work],
    recipes: Sequence[tuple[Action, Wish]],
    left: Sequence[Left],
    receipts: Sequence[tuple[Tree, Receipt]],
    changes: bool,
) -> dict[str, Any]:
    from commands.preview import edits_as_json

    done = [
        {
            "point": action.point,
            "file": str(work.tree.root / name),
            "recipe": None,
            "edits": edits_as_json(planned.edits),
            "notes": list(planned.notes),
        }
        for work in works
        for action, name, planned in zip(work.actions, work.names, work.planned, strict=True)
    ]
    done += [
        {"point": action.point, "file": str(action.file), "recipe": str(action.recipe), "edits": [], "notes": []}
        for action, _wish in recipes
    ]
    return {
        "instruction": str(path),
        "changes": changes,
        "done": done,
        "left": [{"point": one.point, "why": one.why} for one in left],
        "receipts": [receipt.as_json() for _tree, receipt in receipts],
        "notes": [note for work in works for note in (*work.tree.notes, *work.plan.notes)],
    }


def _print(
    works: Sequence[Work], left: Sequence[Left], receipts: Sequence[tuple[Tree, Receipt]], preview: Sequence[Plan]
) -> None:
    from commands.preview import edit_key, print_plan
    from commands.receipts import print_files, print_saved

    known = {
        path: frozenset(edit_key(edit) for edit in entry.edits)
        for work in works
        for path, entry in work.ledger.active().items()
    }
    for plan in preview:
        print_plan(plan, known)
    for work in works:
        if work.repaired:
            warn(_("an interrupted run was repaired first"))
        for action, name, planned in zip(work.actions, work.names, work.planned, strict=True):
            count = ngettext("{n} edit", "{n} edits", len(planned.edits)).format(n=len(planned.edits))
            told = count if planned.edits else _("it is as it should be")
            say(f"{action.point}: {name}: {told}", "head")
            for note in planned.notes:
                say(f"  {note}", "note")
        for note in (*work.tree.notes, *work.plan.notes):
            warn(note)
    for one in left:
        say(_("left to you: {point}: {why}").format(point=one.point, why=one.why), "note")
    for tree, receipt in receipts:
        print_files(receipt)
        print_saved(receipt.saved)
        say(_("`probepatch revert {checkout}` takes it out again").format(checkout=tree.given), "dim")
    if not receipts:
        say(_("nothing was written") if any(plan.changed for plan in preview) else _("nothing to do"), "dim")
