"""``probepatch stub verify``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.arguments import file_path, text
from commands.output import json_option, print_json, say, table
from commands.task_card import card_path, naming, task_option
from locales import _

if TYPE_CHECKING:
    from stages.stub.manifest import Manifest
    from stages.stub.verify import Verified


@click.command(
    help=_(
        "Compare what the overridden modules got in the run with what was prepared, bit by bit, and read what msprobe said in"
        " the log."
    )
)
@click.option("--log", type=file_path, metavar="FILE", help=_("the run's log"))
@click.option("--sources", type=file_path, metavar="DIR", help=_("what `stub prepare` made"))
@click.option("--config", type=file_path, metavar="FILE", help=_("what `stub config` wrote"))
@click.option("--python", type=text, metavar="PYTHON", help=_("an interpreter with torch"))
@task_option
@json_option
def command(
    log: Path | None,
    sources: Path | None,
    config: Path | None,
    python: str | None,
    task: Path | None,
    as_json: bool,
) -> int:
    """Exit code 0 only when every override is proved."""
    from commands.stub_sides import without_card
    from stages.sides import Side
    from stages.stub.config import read_config
    from stages.stub.manifest import read_manifest
    from stages.stub.verify import verify

    named = without_card({"--sources": sources, "--config": config, "--python": python})
    if named is not None:
        made = read_manifest(Path(named["--sources"]))
        given = read_config(Path(named["--config"]))
        found = verify(made, given, Side(made.target_side, (), str(named["--python"])), log)
        return _finish(made, found, str(given.get("dump_path")), None, None, as_json)
    from stages.card.order import STUB, require
    from stages.card.store import changing, read_card
    from stages.stub.manifest import NAME
    from stages.stub.rounds import Folders, in_hand, remember

    path = card_path(task)
    card = read_card(path)
    require(card, STUB)
    folders = Folders.of(card)
    made = in_hand(card)
    place, dump = folders.config(made.round, made.target_side), folders.dump(made.round, made.target_side)
    given = read_config(place)
    found = verify(made, given, Side.of(card, made.target_side), log)
    with changing(path) as card:
        remember(card, made, place, dump, found.verified, (made.folder / NAME, place))
    following = naming(f"probepatch dumps verify --round {made.round}", task)
    return _finish(made, found, str(dump), path, following, as_json)


def _finish(made: Manifest, found: Verified, dump: str, card: Path | None, following: str | None, as_json: bool) -> int:
    if as_json:
        print_json(
            {
                "round": made.round,
                "target_side": made.target_side,
                "entries": made.entries,
                "dump_path": dump,
                **found.as_json(),
                "card": str(card) if card else None,
                "next": following,
            }
        )
        return 0 if found.verified else 1
    rows = [
        (one.entry, one.argument, "-" if one.rank is None else str(one.rank), one.state, _number(one.cosine))
        for one in found.slots
    ]
    table((_("entry"), _("argument"), _("rank"), _("input against source"), _("cosine")), rows)
    for problem in found.problems:
        style = {"error": "bad", "warning": "note"}.get(problem.level, "dim")
        place = f" [{problem.where}]" if problem.where else ""
        say(f"{problem.name}: {problem.what}{place}" + (f"; {problem.todo}" if problem.todo else ""), style)
    say(_verdict(made, found, dump), "good" if found.verified else "bad")
    if card is None:
        say(_("no task card: nothing was recorded"), "dim")
    elif found.verified:
        say(
            _("next: `{command}`; then the analysis side's next instruction, or its conclusion").format(
                command=following
            )
        )
    return 0 if found.verified else 1


def _verdict(made: Manifest, found: Verified, dump: str) -> str:
    if found.verified:
        text_ = _("round {round}, {side} side: {count} entries overridden, as proved; dump_path {dump}")
    elif found.verified is None:
        text_ = _("round {round}, {side} side: not proved; {count} entries overridden; dump_path {dump}")
    else:
        text_ = _(
            "round {round}, {side} side: an override did not take effect; {count} entries overridden; dump_path {dump}"
        )
    return text_.format(round=made.round, side=made.target_side, count=found.overridden, dump=dump)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.9g}"
