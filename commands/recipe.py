"""``probepatch recipe``: for those who write recipes. Each command is a module of its own, imported when it is called."""

from __future__ import annotations

import importlib

import click

from commands.names import Group
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


class Commands(Group):
    """The commands by name; ``--help`` lists them without importing one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"commands.recipe_{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section(_("Commands")):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, help=_("Write recipes: start, port, diagnose, record, test, explain, check."))
def command() -> None:
    """The group."""
