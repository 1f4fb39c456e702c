"""``probepatch recipe port ID CHECKOUT``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from codemods.errors import RefusedError
from commands.arguments import base_option, file_path, text
from commands.output import json_option, print_error, print_json, say, table
from locales import _

if TYPE_CHECKING:
    from authoring.drift.port import Ported


@click.command(
    help=_(
        "Carry a recipe to the version of a checkout: edits found again without a doubt are mended, the others are left as"
        " comments with their candidates. The checkout is not changed."
    )
)
@click.argument("recipe", metavar="ID|FILE", type=text)
@click.argument("checkout", type=file_path)
@base_option
@click.option("--out", type=file_path, metavar="FILE", help=_("where to write the recipe (ID-VERSION.yaml)"))
@json_option
def command(recipe: str, checkout: Path, base: str | None, out: Path | None, as_json: bool) -> int:
    """Exit code 1 when the recipe that was written is not complete."""
    from authoring.drift.diagnosis import summary
    from authoring.drift.port import port
    from commands.authoring import on_checkout
    from commands.recipe_doctor import diagnosis_json

    tried = on_checkout(recipe, checkout, base)
    ported = port(tried.recipe, tried.view, tried.version, tried.was)
    path = out if out is not None else Path(f"{ported.id}.yaml")
    write_new(path, ported.text)
    if as_json:
        print_json(
            {
                "recipe": ported.id,
                "path": str(path),
                "complete": ported.complete,
                "base": tried.was_label or None,
                "edits": [diagnosis_json(one) for one in ported.found],
                "left_out": list(ported.left_out),
                "requirements_dropped": list(ported.dropped),
                "examples_to_adapt": ported.examples_to_adapt,
                "counts": dict(summary(ported.found)),
                "problem": ported.problem.as_json() if ported.problem is not None else None,
            }
        )
    else:
        _say(ported, path, tried.was_label)
    return 0 if ported.complete else 1


def write_new(path: Path, content: str) -> None:
    """Write a file that must not be there yet. Raises RefusedError."""
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(content)
    except FileExistsError as error:
        raise RefusedError(
            _("{path} is there already").format(path=path), todo=_("name another file with --out; nothing was written")
        ) from error
    except OSError as error:
        raise RefusedError(_("{path} cannot be written").format(path=path), why=error.strerror) from error


def _say(ported: Ported, path: Path, base: str) -> None:
    from authoring.drift.port import candidate_text, state_text
    from commands.recipe_doctor import say_uncompared

    say(
        _("compared with {base}").format(base=base) if base else _("no older tree to compare with: --base names one"),
        "dim",
    )
    rows = []
    for one in ported.found:
        where = f"{one.stands.file} {one.stands.symbol}".strip() if one.stands is not None else ""
        hint = candidate_text(one.candidates[0]) if one.stands is None and one.candidates else where
        rows.append((one.edit.id, state_text(one), hint))
    table((_("edit"), _("state"), _("place, or the first candidate")), rows)
    if ported.left_out:
        say(
            _("for other versions by their own word, left out: {names}").format(names=", ".join(ported.left_out)), "dim"
        )
    for need in ported.dropped:
        say(_("`requires` does not hold any more and was taken out: {need}").format(need=need), "note")
    if ported.examples_to_adapt:
        say(_("examples left as comments, to be adapted: {count}").format(count=ported.examples_to_adapt), "note")
    say_uncompared(ported.found)
    if ported.problem is not None:
        print_error(ported.problem)
    if ported.complete:
        say(_("{path}: complete; planned and compiled on this tree").format(path=path), "good")
        return
    count = sum(one.stands is None for one in ported.found)
    say(_("{path}: not complete; edits left to you, as TODO comments: {count}").format(path=path, count=count), "bad")
