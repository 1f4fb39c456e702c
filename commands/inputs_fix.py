"""``probepatch inputs fix SCRIPT…``: make the rules pass, through the ledger; `revert` gives the exact bytes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commands.arguments import text
from commands.inputs_scripts import expect_rules, known_of, script_options, to_type
from commands.output import json_option, print_json, say, warn
from commands.task_card import card_path_if_any, naming, task_option
from locales import _, ngettext

if TYPE_CHECKING:
    from codemods.checkout import Tree
    from codemods.plan import Plan
    from patch_ledger.merge import BaseView
    from patch_ledger.receipt import Receipt
    from patch_ledger.store import Ledger
    from stages.inputs.fix import Fixed
    from stages.inputs.run import Known


@click.command(
    help=_(
        "Edit launch scripts so that the rules pass: only what was read for certain, one edit per flag, quoted for everyone who "
        "parses it again. The result is read and judged once more before a byte is written. `probepatch revert` takes it back."
    )
)
@script_options
@click.option("--rule", "only", multiple=True, metavar="RULE", type=text, help=_("only this rule; may be repeated"))
@click.option("--dry-run", is_flag=True, help=_("show the diff; write nothing"))
@task_option
@json_option
def command(
    scripts: tuple[Path, ...],
    side: str | None,
    settings: tuple[str, ...],
    only: tuple[str, ...],
    dry_run: bool,
    task: Path | None,
    as_json: bool,
) -> int:
    """Exit code 1 when a rule still fails."""
    from stages.card.order import INPUTS, require
    from stages.card.store import read_card

    expect_rules(only)
    card_file = card_path_if_any(task)
    card = read_card(card_file) if card_file is not None else None
    if card is not None:
        require(card, INPUTS)
    work = _prepare(scripts, known_of(card, settings), side, only)
    receipt = None if dry_run or not work.plan.changed else _commit(work, card_file)
    if as_json:
        print_json(_as_json(work, receipt))
    else:
        _print(work, receipt, dry_run, naming(to_type("check", scripts, settings), task))
    return 1 if any(one.left or one.failing for one in work.fixed.values()) else 0


@dataclass(frozen=True)
class Work:
    """``fixed`` by the script's path in the tree."""

    tree: Tree
    ledger: Ledger
    plan: Plan
    fixed: dict[str, Fixed]
    repaired: bool = False


def _prepare(paths: Sequence[Path], known: Known, side: str | None, only: Sequence[str]) -> Work:
    """Every script planned on its bytes without our edits. Writes nothing but what an interrupted run left to repair."""
    from commands.inputs_ledger import base_of, kept_elsewhere, name_in, open_tree
    from patch_ledger.merge import merge
    from stages.inputs.fix import RECIPE, fix
    from stages.inputs.run import parse, read

    tree, ledger, repaired = open_tree(paths[0])
    views, fixed = dict[str, "BaseView"](), dict[str, "Fixed"]()
    for path in dict.fromkeys(paths):
        name = name_in(tree, path)
        script = read(path, known)  # its errors first
        views[name], base = base_of(ledger, name, path)
        if base != views[name].disk:
            script = parse(path, base.decode("utf-8", "surrogateescape"), known)
        fixed[name] = fix(script, known, side, only)
    planned = {name: one.edits for name, one in fixed.items()} | kept_elsewhere(ledger, views, RECIPE)
    digest = "-".join(edit.digest[:8] for one in fixed.values() for edit in one.edits) or "none"
    plan = merge(ledger, views, planned, {RECIPE: digest})
    return Work(tree, ledger, plan, fixed, repaired)


def _commit(work: Work, card_file: Path | None) -> Receipt:
    from commands.inputs_ledger import commit_plan
    from stages.inputs.fix import RECIPE

    return commit_plan(work.tree, work.plan, RECIPE, "inputs fix", card_file)


def _as_json(work: Work, receipt: Receipt | None) -> dict[str, Any]:
    from commands.preview import edits_as_json
    from commands.target import as_json as tree_as_json

    return {
        "checkout": tree_as_json(work.tree),
        "changes": bool(work.plan.changed),
        "scripts": [
            {
                "path": name,
                "edits": edits_as_json(one.edits),
                "before": one.counts(one.before_items),
                "after": one.counts(one.after_items),
                "left": [{"rule": left.rule, "why": left.why} for left in one.left],
            }
            for name, one in work.fixed.items()
        ],
        "receipt": receipt.as_json() if receipt is not None else None,
        "notes": [*work.tree.notes, *work.plan.notes],
    }


def _print(work: Work, receipt: Receipt | None, dry_run: bool, following: str) -> None:
    from commands.preview import edit_key, print_plan
    from commands.receipts import print_files, print_saved

    if work.repaired:
        warn(_("an interrupted run was repaired first"))
    known = {path: frozenset(edit_key(edit) for edit in entry.edits) for path, entry in work.ledger.active().items()}
    if dry_run:
        print_plan(work.plan, known)
    for name, one in work.fixed.items():
        before, after = one.counts(one.before_items), one.counts(one.after_items)
        count = ngettext("{n} edit", "{n} edits", len(one.edits)).format(n=len(one.edits))
        text = _(
            "{path}: {edits}; rules that pass {before} -> {after}, fail {failed} -> {fail}, unknown {unknown} -> {open}"
        )
        say(
            text.format(
                path=name,
                edits=count,
                before=before["PASS"],
                after=after["PASS"],
                failed=before["FAIL"],
                fail=after["FAIL"],
                unknown=before["UNKNOWN"],
                open=after["UNKNOWN"],
            ),
            "head",
        )
        for left in one.left:
            say("  " + _("left to you: {rule}: {why}").format(rule=left.rule, why=left.why), "note")
    for note in (*work.tree.notes, *work.plan.notes):
        warn(note)
    if receipt is not None:
        print_files(receipt)
        print_saved(receipt.saved)
        say(_("`probepatch revert {checkout}` takes it out again").format(checkout=work.tree.given), "dim")
    elif dry_run:
        say(_("nothing was written"), "dim")
    else:
        say(_("nothing to do"), "good")
    say(_("next: `{command}`").format(command=following))
