"""``probepatch recipe check FILE…``."""

from __future__ import annotations

from pathlib import Path

import click

from codemods.errors import ProbePatchError
from commands.arguments import file_path
from commands.output import json_option, print_error, print_json, say
from locales import _


@click.command(help=_("Check recipe files: keys, patterns, code, payloads. Every file is checked."))
@click.argument("files", nargs=-1, required=True, type=file_path)
@json_option
def command(files: tuple[Path, ...], as_json: bool) -> int:
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
