"""``probepatch recipes [CHECKOUT]``: what there is; with a checkout: what fits it, and why the rest does not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from codemods.recipe import Heading
from commands.output import json_option, print_json, table
from commands.target import as_json as tree_as_json
from commands.target import checkout_options
from locales import _


@click.command
@checkout_options
@json_option
def command(checkout: Path | None, package: str | None, python: str | None, as_json: bool) -> None:
    """The command."""
    from codemods.catalogue import catalogue

    if checkout is None and package is None:
        recipes = catalogue()
        if as_json:
            print_json({"checkout": None, "recipes": [recipe_as_json(recipe) for recipe in recipes]})
        else:
            _print_all(recipes)
        return
    from commands.planning import Wish, look

    scene = look(Wish(checkout, package, python))
    fits = scene.identity.fits
    if as_json:
        rows = [recipe_as_json(fit.recipe) | {"fits": fit.fits, "reason": fit.reason} for fit in fits]
        print_json({"checkout": tree_as_json(scene.tree), "recipes": rows})
    else:
        print_fits([(fit.recipe, fit.fits, fit.reason) for fit in fits])


def recipe_as_json(recipe: Heading) -> dict[str, Any]:
    """What a recipe says of itself."""
    return {
        "id": recipe.id,
        "framework": recipe.framework,
        "side": recipe.side,
        "versions": str(recipe.versions),
        "why": recipe.why,
        "upstream": recipe.upstream or None,
        "remove_when": recipe.remove_when or None,
        "verified": list(recipe.verified),
        "switches": list(recipe.switches),
        "parameters": [
            {"name": p.name, "type": p.type, "env": p.env, "default": p.default, "help": p.help}
            for p in recipe.parameters
        ],
        "path": str(recipe.path),
        "fits": None,
        "reason": None,
    }


def _print_all(recipes: Sequence[Heading]) -> None:
    headings = (_("recipe"), _("framework"), _("side"), _("versions"), _("why"))
    rows = [(recipe.id, recipe.framework, recipe.side, str(recipe.versions), recipe.why) for recipe in recipes]
    table(headings, rows)


def print_fits(rows: Sequence[tuple[Heading, bool, str]]) -> None:
    """A table of recipes, each with its answer."""
    headings = (_("recipe"), _("side"), _("fits"), _("because"))
    answers = {True: _("yes"), False: _("no")}
    table(headings, [(r.id, r.side, answers[fits], reason) for r, fits, reason in rows])
