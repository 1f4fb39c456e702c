"""``probepatch recipe explain CHECKOUT FILE:LINE``: which recipe and edit put this line here, and why. Reads only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.arguments import file_path, recipe_file_option, text
from commands.output import json_option, print_json, say, warn
from commands.recorded import find_recorded
from commands.status import words
from locales import _
from patch_ledger.status import EditStatus

if TYPE_CHECKING:
    from authoring.explain import EditReason, Explained


@click.command(help=_("Tell which recipe and edit put a line into a checkout, and why; or that it is none of ours."))
@click.argument("checkout", type=file_path)
@click.argument("place", metavar="FILE:LINE", type=text)
@recipe_file_option
@json_option
def command(checkout: Path, place: str, files: tuple[Path, ...], as_json: bool) -> None:
    """Exit code 0 whoever the line belongs to."""
    from authoring.explain import explain
    from codemods.recipe_reader import load_recipe

    tree = find_recorded(checkout, None, None)
    found = explain(tree, place, [load_recipe(path) for path in files])
    if as_json:
        print_json(found.as_json() | {"notes": [*tree.notes, *found.notes]})
        return
    _print(found)
    for note in (*tree.notes, *found.notes):
        warn(note)


def _print(found: Explained) -> None:
    say(f"{found.path}:{found.line}", "head")
    say(f"  {found.text}", "add" if found.owner == "ours" else "")
    say(found.because, "good" if found.owner == "ours" else "note")
    if found.edits and found.owner != "ours":
        say(_("edits of ours have a share in it:"))
    for edit in found.edits:
        _print_edit(edit)


def _print_edit(edit: EditReason) -> None:
    say("")
    say(f"  {edit.recipe}/{edit.edit}", "head")
    when = _("{command} at {when}, transaction {txn}").format(command=edit.command, when=edit.when, txn=edit.txn)
    file = _("no recipe of this name is at hand; name its file with --recipe-file")
    if edit.recipe_file is not None:
        file = f"{edit.recipe_file}:{edit.recipe_line}" if edit.recipe_line else edit.recipe_file
    if edit.same_recipe is False:
        file = _("{file} (not as it was applied: changed since, or applied with --set)").format(file=file)
    for word, answer in (
        (_("did"), _did(edit.did)),
        (_("why"), edit.why),
        (_("verb"), edit.verb or ""),
        (_("in"), edit.symbol),
        (_("when"), when if edit.when else ""),
        (_("state"), words(EditStatus("", edit.recipe, edit.edit, edit.state, 0))),
        (_("recipe"), file),
    ):
        if answer:
            say(f"    {word:7}{answer}")


def _did(did: str) -> str:
    return {
        "line": _("put the line here"),
        "part": _("put code into the line"),
        "indent": _("moved the line to the right"),
        "removed": _("took code out that stood here"),
        "changed": _("put code here, which somebody changed since"),
    }[did]
