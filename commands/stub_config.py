"""``probepatch stub config``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.arguments import file_path, text
from commands.output import json_option, print_json, say
from commands.task_card import card_path, naming, task_option
from locales import _

if TYPE_CHECKING:
    from stages.sides import Side
    from stages.stub.manifest import Manifest


@click.command(
    help=_(
        "Write the target side's msprobe config of the round that was prepared: the first capture's, with a dump_path of its"
        " own and the section `load`; checked here and by the side's installed msprobe."
    )
)
@click.option("--sources", type=file_path, metavar="DIR", help=_("what `stub prepare` made"))
@click.option("--first", type=file_path, metavar="CONFIG", help=_("the target's msprobe config of the first capture"))
@click.option("--dump-path", type=file_path, metavar="DIR", help=_("where this round's dump goes"))
@click.option("--out", type=file_path, metavar="FILE", help=_("the config to write"))
@click.option("--python", type=text, metavar="PYTHON", help=_("the target's interpreter, with msprobe"))
@task_option
@json_option
def command(
    sources: Path | None,
    first: Path | None,
    dump_path: Path | None,
    out: Path | None,
    python: str | None,
    task: Path | None,
    as_json: bool,
) -> int:
    """Exit code 3 when the side's msprobe cannot override inputs."""
    from commands.stub_sides import without_card
    from stages.sides import Side
    from stages.stub.manifest import read_manifest

    named = without_card(
        {"--sources": sources, "--first": first, "--dump-path": dump_path, "--out": out, "--python": python}
    )
    if named is not None:
        made = read_manifest(Path(named["--sources"]))
        side = Side(made.target_side, (), str(named["--python"]))
        paths = [Path(named[name]).absolute() for name in ("--first", "--dump-path", "--out")]
        notes, version = _make(made, paths[0], paths[1], paths[2], side, None)
        return _finish(made, paths[2], paths[1], notes, version, {}, None, None, as_json)
    from stages.card.order import STUB, require
    from stages.card.store import changing, read_card
    from stages.stub.manifest import NAME
    from stages.stub.rounds import Folders, in_hand, instrumented, pointing, remember

    path = card_path(task)
    card = read_card(path)
    require(card, STUB)
    folders = Folders.of(card)
    made = in_hand(card)
    config, dump = folders.config(made.round, made.target_side), folders.dump(made.round, made.target_side)
    side = Side.of(card, made.target_side)
    world = instrumented(card, made.target_side).get("world_size")
    notes, version = _make(made, folders.first_configs[made.target_side], dump, config, side, world)
    with changing(path) as card:
        remember(card, made, config, dump, None, (made.folder / NAME, config))
    environment = pointing(card, made.target_side, config)
    if not made.dump_after_load:
        environment["MSPROBE_LOG_LEVEL"] = "0"  # its lines are the only proof
    return _finish(made, config, dump, notes, version, environment, task, path, as_json)


def _make(
    made: Manifest, first: Path, dump: Path, out: Path, side: Side, world: int | None
) -> tuple[list[str], str | None]:
    from stages.stub.config import (
        accepted_by,
        make_stub_config,
        read_config,
        require_load,
        world_of,
        write_stub_config,
    )

    given = read_config(first)
    result = make_stub_config(given, made, dump, world or world_of(made, given))
    require_load(side)
    version = accepted_by(side, result.config, dump.parent)
    write_stub_config(out, result.config, dump)
    return list(result.notes), version


def _finish(
    made: Manifest,
    config: Path,
    dump: Path,
    notes: list[str],
    version: str | None,
    environment: dict[str, str],
    task: Path | None,
    card: Path | None,
    as_json: bool,
) -> int:
    following = naming("probepatch stub verify --log FILE", task) if card else None
    override = f"--side {made.target_side} --config {made.target_side}={shlex.quote(str(config))}"
    run = naming(f"probepatch capture run {override}", task) if card else None
    if as_json:
        print_json(
            {
                "round": made.round,
                "target_side": made.target_side,
                "entries": made.entries,
                "config": str(config),
                "dump_path": str(dump),
                "dump_after_load": made.dump_after_load,
                "msprobe": version,
                "environment": environment,
                "notes": notes,
                "run": run,
                "card": str(card) if card else None,
                "next": following,
            }
        )
        return 0
    for note in notes:
        say(note, "note")
    say(
        _("round {round}: {path}, accepted by msprobe {version}").format(
            round=made.round, path=config, version=version
        ),
        "good",
    )
    for name, value in environment.items():
        assignment = f"{name}={shlex.quote(value)}"
        say(" ".join(("export", assignment)))
    if not environment:
        say(_("start the {side} side with this config in place of the first one").format(side=made.target_side))
    if card is None:
        say(_("no task card: nothing was recorded"), "dim")
        return 0
    say(_("run: `{command}`, or your own command in that environment").format(command=run))
    say(_("next: `{command}`").format(command=following))
    return 0
