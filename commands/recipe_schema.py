"""``probepatch recipe schema``."""

from __future__ import annotations

import click

from commands.output import print_json
from locales import _


@click.command(help=_("Print the JSON Schema of recipe files, for editors."))
@click.option("--json", "as_json", is_flag=True, help=_("accepted for symmetry: the schema is JSON anyway"))
def command(as_json: bool) -> None:
    """The schema on standard output."""
    from codemods.schema import recipe_schema

    print_json(recipe_schema())
