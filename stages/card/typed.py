"""A command to type next, with the card named where it would not be found from the folder that we are in."""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path

from codemods.errors import ProbePatchError
from stages.card.card import Card


def to_type(card: Card, command: str) -> str:
    """The command; a card that was read from no file is not named."""
    from stages.card.store import find_card

    if card.path is None:
        return command
    with suppress(ProbePatchError, OSError):
        if find_card(Path.cwd()).resolve() == card.path.resolve():
            return command
    return f"{command} --task {shlex.quote(str(card.path))}"
