"""``probepatch stub``: stage 8. Each command is a module of its own, imported when it is called."""

from __future__ import annotations

import click

from commands.names import LazyGroup
from locales import _

COMMANDS = {
    "schema": _("print the JSON Schema of the instruction, for those who write it"),
    "prepare": _("transform the other side's tensors into inputs of the target's modules, laid out for msprobe's load"),
    "config": _("write the target's msprobe config of this round, and tell how to run it"),
    "verify": _("prove after the run that every override took effect"),
}


@click.group(
    cls=LazyGroup,
    summaries=COMMANDS,
    modules="stub",
    help=_("Override module inputs of one side with those of the other, and capture again: round by round."),
)
def command() -> None:
    """The group."""
