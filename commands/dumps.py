"""``probepatch dumps``: stage 7. Its command is a module of its own, imported when it is called."""

from __future__ import annotations

import click

from commands.names import LazyGroup
from locales import _

COMMANDS = {"verify": _("comparable or not, and why: steps, requests, tokens, shapes, layers, log-probs; with a page")}


@click.group(
    cls=LazyGroup,
    summaries=COMMANDS,
    modules="dumps",
    help=_("Verify a capture: whether the dumps of the two sides can be compared."),
)
def command() -> None:
    """The group."""
