"""``probepatch params``: stage 5. Each command is a module of its own, imported when it is called."""

from __future__ import annotations

import click

from commands.names import LazyGroup
from locales import _

COMMANDS = {
    "check": _("compare the two sides' configs, and what their modules consume of them"),
    "provider": _("have the training side's bridge tell the config that it really builds"),
    "modules": _("have each side build the model, and tell what its modules hold"),
    "structure": _("compare which parameters and buffers the two sides have, their shapes and dtypes"),
    "weights": _("compare the two sides' weights bit for bit"),
    "report": _("join all layers: numbered mismatch points, instructions, and whether the capture may begin"),
    "fix": _("carry out the instructions: keys of configs, flags of scripts, names in a bridge; through the ledger"),
    "waive": _("put a mismatch point on the record as accepted, by name and with a reason"),
}


@click.group(
    cls=LazyGroup,
    summaries=COMMANDS,
    modules="params",
    help=_("Align the two sides' models before anything is captured: config, structure, weights."),
)
def command() -> None:
    """The group."""
