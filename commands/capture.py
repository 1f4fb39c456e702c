"""``probepatch capture``: stage 6, and the run. Each command is a module of its own, imported when it is called."""

from __future__ import annotations

import click

from commands.names import LazyGroup
from locales import _

COMMANDS = {
    "prepare": _("patch both sides, or none; write msprobe's configs, the launch commands and the list of changes"),
    "run": _("run the baseline command with the capture switched on, and keep its log"),
}


@click.group(
    cls=LazyGroup, summaries=COMMANDS, modules="capture", help=_("Put the capture into both sides, and run it.")
)
def command() -> None:
    """The group."""
