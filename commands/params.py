"""``probepatch params``: stage 5. Each command is a module of its own, imported when it is called."""

from __future__ import annotations

import importlib

import click

from commands.names import Group
from locales import _

COMMANDS = {
    "check": _("compare the two sides' configs, and what their modules consume of them"),
    "provider": _("have the training side's bridge tell the config that it really builds"),
    "structure": _("compare which parameters and buffers the two sides have, their shapes and dtypes"),
    "weights": _("compare the two sides' weights bit for bit"),
    "report": _("join all layers: numbered mismatch points, instructions, and whether the capture may begin"),
    "waive": _("put a mismatch point on the record as accepted, by name and with a reason"),
}


class Commands(Group):
    """The commands by name; ``--help`` lists them without importing one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"commands.params_{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section(_("Commands")):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Commands, help=_("Align the two sides' models before anything is captured: config, structure, weights.")
)
def command() -> None:
    """The group."""
