"""Which task card a command works with: the one named by --task or PROBEPATCH_TASK, else the one found upwards."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import click

from codemods.errors import UsageError
from commands.arguments import file_path
from commands.output import say
from locales import _
from stages.card.card import Card
from stages.card.store import NoCardError, find_card

task_option = click.option(
    "--task",
    type=file_path,
    envvar="PROBEPATCH_TASK",
    metavar="PATH",
    help=_("the task card or its folder (PROBEPATCH_TASK; else looked for upwards from here)"),
)


_BREAKS = {"\n": "\\n", "\r": "\\r", "\t": " "}


def card_path(task: Path | None) -> Path:
    """The card's path. Raises NoCardError, UsageError."""
    if task is not None and not os.path.lexists(task):
        raise UsageError(_("{path} does not exist").format(path=task), todo=_("--task names a task card or its folder"))
    return find_card(task if task is not None else Path.cwd())


def card_path_if_any(task: Path | None) -> Path | None:
    """None where no card is named and none is found."""
    if task is not None:
        return card_path(task)
    try:
        return find_card(Path.cwd())
    except (NoCardError, OSError):
        return None


def naming(command: str, task: Path | None) -> str:
    """A command to type next, with the card named where it would not be found from here."""
    here = card_path_if_any(None)
    if task is None or (here is not None and here.resolve() == card_path(task).resolve()):
        return command
    return f"{command} --task {shlex.quote(str(task))}"


def following_steps(card: Card, task: Path | None) -> list[dict[str, Any]]:
    """What can be done now, with the exact command; restoring is among it once an edit stands."""
    from stages.card.order import command_of, steps

    return [
        {"stage": step.stage, "name": step.name, "command": naming(command_of(card, step.stage), task)}
        for step in steps(card)
        if step.state in ("next", "failed", "stale")
    ]


def one_line(text: str) -> str:
    """A foreign text in one line: what it holds cannot look like lines of ours."""
    return "".join(_BREAKS.get(c, c) for c in text)


def say_next(following: list[dict[str, Any]]) -> None:
    """The line that ends a stage's command."""
    for one in following:
        say(_("next: `{command}` (stage {stage}, {name})").format(**one))
    if not following:
        say(_("nothing is left to do"), "good")
