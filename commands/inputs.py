"""``probepatch inputs``: stage 4. Each command is a module of its own, imported when it is called."""

from __future__ import annotations

import importlib

import click

from commands.names import Group
from locales import _

COMMANDS = {
    "check": _("judge launch scripts and configs rule by rule: PASS, FAIL or UNKNOWN, with line, value and reason"),
    "fix": _("edit what was read for certain, one edit per flag, taken back by `revert` like any other"),
}


class Commands(Group):
    """The commands by name; ``--help`` lists them without importing one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"commands.inputs_{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section(_("Commands")):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Commands,
    help=_("Align the inputs of the two sides: what the launch scripts say about batches, padding, ranks."),
)
def command() -> None:
    """The group."""
