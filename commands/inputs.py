"""``probepatch inputs``: stage 4. Each command is a module of its own, imported when it is called."""

from __future__ import annotations

import click

from commands.names import LazyGroup
from locales import _

COMMANDS = {
    "check": _("judge launch scripts and configs rule by rule: PASS, FAIL or UNKNOWN, with line, value and reason"),
    "fix": _("edit what was read for certain, one edit per flag, taken back by `revert` like any other"),
}


@click.group(
    cls=LazyGroup,
    summaries=COMMANDS,
    modules="inputs",
    help=_("Align the inputs of the two sides: what the launch scripts say about batches, padding, ranks."),
)
def command() -> None:
    """The group."""
