"""``probepatch recipe check FILE…`` and ``probepatch recipe schema``: for those who write recipes."""

from __future__ import annotations

from pathlib import Path

import click

from codemods.errors import ProbePatchError
from commands.arguments import file_path
from commands.names import Group
from commands.output import json_option, print_error, print_json, say
from locales import _


@click.group(cls=Group, help=_("Check recipe files; print the JSON Schema of the recipe language."))
def command() -> None:
    """The group."""


@command.command(help=_("Check recipe files: keys, patterns, code, payloads. Every file is checked."))
@click.argument("files", nargs=-1, required=True, type=file_path)
@json_option
def check(files: tuple[Path, ...], as_json: bool) -> int:
    """Exit code 4 when one of the files is not valid."""
    from codemods.recipe_reader import load_recipe

    results, worst = [], 0
    for path in files:
        try:
            recipe = load_recipe(path)
        except ProbePatchError as error:
            worst = max(worst, error.exit_code)
            results.append({"path": str(path), "valid": False, "recipe": None, "edits": None, "error": error.as_json()})
            if not as_json:
                print_error(error)
            continue
        count = len(recipe.edits)
        results.append({"path": str(path), "valid": True, "recipe": recipe.id, "edits": count, "error": None})
        if not as_json:
            say(_("{path}: {recipe} is valid, edits: {count}").format(path=path, recipe=recipe.id, count=count), "good")
    if as_json:
        print_json({"files": results})
    return worst


@command.command(help=_("Print the JSON Schema of recipe files, for editors."))
@click.option("--json", "as_json", is_flag=True, help=_("accepted for symmetry: the schema is JSON anyway"))
def schema(as_json: bool) -> None:
    """The schema on standard output."""
    from codemods.schema import recipe_schema

    print_json(recipe_schema())
