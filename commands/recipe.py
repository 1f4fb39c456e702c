"""``probepatch recipe``: for those who write recipes. Each command is a module of its own, imported when it is called."""

from __future__ import annotations

import click

from commands.names import LazyGroup
from locales import _

COMMANDS = {
    "new": _("write the skeleton of a recipe for a checkout, or a port of the nearest one"),
    "port": _("try every edit of a recipe on another version, and write the mended recipe"),
    "doctor": _("tell why an edit of a recipe does not match a checkout, and what would"),
    "record": _("turn a hand-edited checkout into a recipe"),
    "test": _("run the examples that recipes carry"),
    "explain": _("tell which recipe and edit put a line into a checkout, and why"),
    "matrix": _("try recipes on every tag of a repository, or on wheels"),
    "check": _("check recipe files: keys, patterns, code, payloads"),
    "schema": _("print the JSON Schema of recipe files, for editors"),
}


@click.group(
    cls=LazyGroup,
    summaries=COMMANDS,
    modules="recipe",
    help=_("Write recipes: start, port, diagnose, record, test, explain, check."),
)
def command() -> None:
    """The group."""
