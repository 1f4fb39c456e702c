"""``probepatch ledger show | verify | recover | forget CHECKOUT``: the record of the edits itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from commands.names import Group
from commands.output import json_option, print_json, say, table
from commands.receipts import print_receipt
from commands.recorded import find_recorded
from commands.target import checkout_options
from locales import _
from patch_ledger import admin
from patch_ledger.receipt import Receipt


@click.group(cls=Group, help=_("Show, verify, recover or forget the record of the edits."))
def command() -> None:
    """The group."""


@command.command(help=_("Show every transaction, oldest first."))
@checkout_options
@json_option
def show(checkout: Path | None, package: str | None, python: str | None, as_json: bool) -> None:
    """The history."""
    history = admin.show(find_recorded(checkout, package, python))
    if as_json:
        print_json({"transactions": history})
        return
    if not history:
        say(_("no edit of ours is recorded here"))
        return
    headings = (_("time"), _("transaction"), _("command"), _("outcome"), _("files"), _("recipes"))
    rows = [
        (one["time"], one["txn"], one["command"], one["outcome"], str(len(one["files"])), _recipes(one["files"]))
        for one in history
    ]
    table(headings, rows)


def _recipes(files: list[dict[str, list[dict[str, str]]]]) -> str:
    """The recipes that are active after a transaction, in its files."""
    names = dict.fromkeys(edit["recipe"] for file in files for edit in file["edits"])
    return ", ".join(names) or "-"


@command.command(help=_("Check every line's hash and every kept original."))
@checkout_options
@json_option
def verify(checkout: Path | None, package: str | None, python: str | None, as_json: bool) -> int:
    """Exit code 4 when something does not hold."""
    found = admin.verify(find_recorded(checkout, package, python))
    if as_json:
        print_json(found.as_json())
    else:
        for problem in found.problems:
            say(problem, "bad")
        if not found.problems:
            text = _("the ledger holds: {lines} lines, {objects} originals")
            say(text.format(lines=found.lines, objects=found.objects), "good")
    return 4 if found.problems else 0


@command.command(help=_("Bring an interrupted apply or revert to its end."))
@checkout_options
@json_option
def recover(checkout: Path | None, package: str | None, python: str | None, as_json: bool) -> None:
    """Repair."""
    _act(admin.recover, checkout, package, python, as_json)


@command.command(help=_("Drop the record and touch no file: the way out of a stale ledger."))
@checkout_options
@json_option
def forget(checkout: Path | None, package: str | None, python: str | None, as_json: bool) -> None:
    """Forget."""
    _act(admin.forget, checkout, package, python, as_json)


def _act(
    action: Callable[..., Receipt], checkout: Path | None, package: str | None, python: str | None, as_json: bool
) -> None:
    tree = find_recorded(checkout, package, python)
    receipt = action(tree)
    receipt = replace(receipt, notes=(*receipt.notes, *tree.notes))
    if as_json:
        print_json(receipt.as_json())
    else:
        print_receipt(receipt)
