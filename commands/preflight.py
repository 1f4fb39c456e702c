"""``probepatch preflight``, and ``probepatch preflight stop PID…``: stage 1."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commands.names import Group
from commands.output import json_option, print_json, say, table
from commands.task_card import card_path, following_steps, naming, one_line, say_next, task_option
from locales import _

if TYPE_CHECKING:
    from stages.preflight.stop import Stopped
    from stages.preflight.survey import Survey

_MOST = 1 << 60  # tokens, ranks, PIDs
LEVELS, KINDS, PLACES = ("L0", "mix", "L1"), ("tensor", "statistics"), ("train", "infer", "here")


class _Seconds(click.FloatRange):
    """A range compares with NaN and finds nothing wrong."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found: float = super().convert(value, param, ctx)
        if found != found:
            self.fail(_("{value} is no number of seconds").format(value=value), param, ctx)
        return found


@click.group(cls=Group, invoke_without_command=True)
@click.option(
    "--tokens", type=click.IntRange(1, _MOST), metavar="N", help=_("length of the prompt, to tell the disk it needs")
)
@click.option(
    "--level", type=click.Choice(LEVELS), default="L0", show_default=True, help=_("msprobe's level, likewise")
)
@click.option(
    "--dump", type=click.Choice(KINDS), default="tensor", show_default=True, help=_("msprobe's task, likewise")
)
@click.option(
    "--ranks", type=click.IntRange(1, _MOST), default=1, show_default=True, help=_("ranks of each side that dump")
)
@click.option(
    "--keep",
    type=click.IntRange(2, _MOST),
    multiple=True,
    metavar="PID",
    help=_("a process that is there on purpose; may be repeated"),
)
@task_option
@json_option
@click.pass_context
def command(
    context: click.Context,
    tokens: int | None,
    level: str,
    dump: str,
    ranks: int,
    keep: tuple[int, ...],
    task: Path | None,
    as_json: bool,
) -> int | None:
    """Exit code 1 when a problem stands."""
    if context.invoked_subcommand is not None:
        context.obj = task
        return None
    from stages.card.order import PREFLIGHT, require
    from stages.card.store import changing, read_card
    from stages.preflight.disk import Plan
    from stages.preflight.survey import leave, summary, survey

    path = card_path(task)
    card = read_card(path)
    require(card, PREFLIGHT)
    plan = Plan(level, dump, tokens, ranks)
    with _progress(as_json) as progress:
        found = survey(card, plan, keep, progress)
    with changing(path, card) as card:
        leave(card, found, plan)
    following = following_steps(card, task)
    if as_json:
        print_json({**_as_json(found), "card": str(path), "summary": summary(found), "next": following})
    else:
        _say(found)
        say(summary(found), "good" if found.passed else "bad")
        say_next(following)
    return 0 if found.passed else 1


@command.command(
    "stop", help=_("End processes that the preflight found, by exact PID: TERM, and KILL only with --kill.")
)
@click.argument("pids", metavar="PID...", nargs=-1, required=True, type=click.IntRange(1, _MOST))
@click.option("--side", "at", type=click.Choice(PLACES), help=_("where, when the number is in more than one place"))
@click.option("--kill", is_flag=True, help=_("KILL what is still there after the wait"))
@click.option(
    "--wait", type=_Seconds(0, 600), default=10.0, show_default=True, help=_("seconds to wait after a signal")
)
@task_option
@json_option
@click.pass_obj
def stop_command(
    outer: Path | None, pids: tuple[int, ...], at: str | None, kill: bool, wait: float, task: Path | None, as_json: bool
) -> int:
    """Exit code 1 when a process is still there."""
    from stages.card.store import changing
    from stages.preflight.stop import GONE, stop

    task = task if task is not None else outer
    path = card_path(task)
    with changing(path) as card:
        done = stop(card, pids, at, kill, wait)
    again = naming("probepatch preflight", task)
    if as_json:
        print_json({"card": str(path), "stopped": [one.as_json() for one in done], "next": again})
    else:
        table(
            (_("PID"), _("what"), _("now")),
            [(str(one.pid), one_line(one.kind or one.command), _did(one)) for one in done],
        )
        say(_("recorded; look again: `{command}`").format(command=again))
    return 0 if all(one.did in GONE for one in done) else 1


def _did(one: Stopped) -> str:
    words: dict[str, Callable[[], str]] = {
        "ended": lambda: _("ended"),
        "killed": lambda: _("killed"),
        "gone": lambda: _("had ended before"),
        "running": lambda: _("still runs; --kill ends it hard"),
        "forbidden": lambda: _("may not be stopped by this user"),
    }
    return words[one.did]()


@contextmanager
def _progress(as_json: bool) -> Iterator[Callable[[str], None]]:
    """A line that tells what is being looked at, on a terminal only."""
    if as_json or sys.stderr is None or not sys.stderr.isatty():
        yield lambda step: None
        return
    from rich.console import Console

    with Console(stderr=True).status(_("preflight")) as status:
        yield status.update


def _as_json(found: Survey) -> dict[str, Any]:
    return {
        "passed": found.passed,
        "findings": [one.as_json() for one in found.findings],
        "places": [
            {"names": list(place.names), "prefix": list(place.side.prefix), **place.where} for place in found.places
        ],
        "cards": [one.as_json() for one in found.seen],
        "processes": [one.as_json() for one in found.leftovers],
    }


def _say(found: Survey) -> None:
    words = {"ok": _("ok"), "problem": _("PROBLEM"), "unknown": _("unknown")}
    table(
        (_("check"), _("place"), "", _("what")),
        [(one.check, one.place, words[one.state], one_line(one.what)) for one in found.findings],
    )
    for one in found.findings:
        if one.todo and one.state != "ok":
            say(one_line(f"{one.check} ({one.place}): {one.todo}"), "note")
