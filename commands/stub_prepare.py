"""``probepatch stub prepare INSTRUCTION``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commands.arguments import file_path, text
from commands.output import json_option, print_json, say, table, warn
from commands.task_card import card_path, naming, task_option
from locales import _

if TYPE_CHECKING:
    from stages.stub.manifest import Manifest


@click.command(
    help=_(
        "Read stub_instruction.json, check it on the dumps of both sides, and write the transformed tensors into"
        " stub_source_roundN, as the target's msprobe looks them up. With --source, --target, --out and --python it works"
        " without a task card."
    )
)
@click.argument("instruction", type=file_path)
@click.option("--source", type=file_path, metavar="DIR", help=_("the source side's dump folder"))
@click.option("--target", type=file_path, metavar="DIR", help=_("the target side's last dump folder"))
@click.option("--out", type=file_path, metavar="DIR", help=_("the folder to make"))
@click.option("--python", type=text, metavar="PYTHON", help=_("an interpreter with torch"))
@task_option
@json_option
def command(
    instruction: Path,
    source: Path | None,
    target: Path | None,
    out: Path | None,
    python: str | None,
    task: Path | None,
    as_json: bool,
) -> int:
    """Exit code 1 when the instruction does not fit the dumps, 4 when it is not valid."""
    from commands.stub_sides import without_card
    from stages.stub.instruction import read_instruction
    from stages.stub.prepare import prepare

    given = read_instruction(instruction)
    named = without_card({"--source": source, "--target": target, "--out": out, "--python": python})
    if named is not None:
        from stages.sides import Side

        with _working(as_json):
            made = prepare(
                given,
                Path(named["--source"]),
                Path(named["--target"]),
                Path(named["--out"]).absolute(),
                Side(given.target_side, (), str(named["--python"])),
            )
        return _finish(made, None, None, as_json, instruction)
    from stages.card.order import STUB, require
    from stages.card.store import changing, read_card
    from stages.sides import Side
    from stages.stub.manifest import NAME
    from stages.stub.rounds import Folders, expect_next, remember

    path = card_path(task)
    card = read_card(path)
    require(card, STUB)
    expect_next(card, given.round)
    folders = Folders.of(card)
    with _working(as_json):
        made = prepare(
            given,
            folders.dump(given.source_round, given.source_side),
            folders.last_dump(given.round, given.target_side),
            folders.sources(given.round),
            Side.of(card, given.target_side),
        )
    with changing(path) as card:
        config, dump = folders.config(given.round, given.target_side), folders.dump(given.round, given.target_side)
        remember(card, made, config, dump, None, (instruction, made.folder / NAME))
    return _finish(made, path, naming("probepatch stub config", task), as_json, instruction)


@contextmanager
def _working(as_json: bool) -> Iterator[None]:
    """A line on a terminal: tensors may be large."""
    if as_json or sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(_("reading and transforming tensors")):
        yield


def _finish(made: Manifest, card: Path | None, following: str | None, as_json: bool, instruction: Path) -> int:
    if as_json:
        print_json(_as_json(made, card, following, instruction))
        return 0
    rows = [(one.entry, one.argument, _rank(one.rank), f"{one.shape} {one.dtype}") for one in made.files]
    table((_("entry"), _("argument"), _("rank"), _("tensor")), rows)
    if made.left:
        warn(_("these arguments keep the target's own values: {names}").format(names=", ".join(made.left[:6])))
    say(_("round {round}: {folder}").format(round=made.round, folder=made.folder), "good")
    if card is None:
        say(_("no task card: nothing was recorded"), "dim")
        following = (
            f"probepatch stub config --sources {made.folder} --first CONFIG --dump-path DIR --out FILE --python PYTHON"
        )
    say(_("next: `{command}`").format(command=following))
    return 0


def _rank(rank: int | None) -> str:
    return "-" if rank is None else str(rank)


def _as_json(made: Manifest, card: Path | None, following: str | None, instruction: Path) -> dict[str, Any]:
    return {
        "round": made.round,
        "target_side": made.target_side,
        "source_side": made.source_side,
        "isolate_boundary": made.isolate_boundary,
        "instruction": str(instruction),
        "source": str(made.folder),
        "step": made.step,
        "ranks": made.ranks,
        "entries": made.entries,
        "files": [
            {
                "path": one.path,
                "entry": one.entry,
                "argument": one.argument,
                "rank": one.rank,
                "shape": one.shape,
                "dtype": one.dtype,
            }
            for one in made.files
        ],
        "left": made.left,
        "card": str(card) if card else None,
        "next": following,
    }
