"""``probepatch params report``: the result of stage 5."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commands.arguments import file_path
from commands.output import json_option, print_json, say, table
from commands.task_card import card_path_if_any, following_steps, naming, say_next, task_option
from locales import _

if TYPE_CHECKING:
    from stages.params.report import Report


@click.command(
    help=_(
        "Join the results of check, structure and weights: param_alignment_report.json with its points P1, P2, … in order of"
        " weight, and param_alignment_instruction.json. The capture begins when every point is EXACT or waived."
    )
)
@click.option("--config", type=file_path, metavar="FILE", help=_("what `params check` wrote"))
@click.option("--structure", type=file_path, metavar="FILE", help=_("what `params structure` wrote"))
@click.option("--weights", type=file_path, metavar="FILE", help=_("what `params weights` wrote"))
@click.option(
    "--folder", type=file_path, metavar="DIR", help=_("where the files are and go (beside the task card, else here)")
)
@click.option(
    "--instruction",
    type=file_path,
    metavar="FILE",
    help=_("check an instruction file of your own, and leave it as it is"),
)
@task_option
@json_option
def command(
    config: Path | None,
    structure: Path | None,
    weights: Path | None,
    folder: Path | None,
    instruction: Path | None,
    task: Path | None,
    as_json: bool,
) -> int:
    """Exit code 1 while a point is open."""
    from stages.card.evidence import digest, record
    from stages.card.order import PARAMS, require
    from stages.card.store import changing, read_card
    from stages.params.instruction import FORMAT, instructions, read_instruction
    from stages.params.layers import FILES, read_layers
    from stages.params.report import INSTRUCTION, MISMATCH, REPORT, join
    from stages.params.waivers import NAME, read_waivers, write_json

    card_file = card_path_if_any(task)
    card = read_card(card_file) if card_file is not None else None
    if card is not None:
        require(card, PARAMS)
    place = folder or (card_file.parent if card_file is not None else Path())
    given = {"config": config, "structure": structure, "weights": weights}
    paths = {name: given[name] or place / file for name, file in FILES.items()}
    if instruction is not None:
        read_instruction(instruction)
    report = join(read_layers(paths), read_waivers(place))
    rests_on = [path for path in (*paths.values(), place / NAME) if os.path.isfile(path)]
    document = report.as_json({str(path.absolute()): digest(path) for path in rests_on})
    todo = {"format": FORMAT, "instructions": instructions(report.open, report.sides)}
    write_json(place / REPORT, document)
    if instruction is None:
        write_json(place / INSTRUCTION, todo)
    passed, following = report.verdict != MISMATCH, []
    if card_file is not None:
        files = [*rests_on, place / REPORT, *_inputs(paths)]
        with changing(card_file, card) as card:
            record(card, PARAMS, passed, report.statement, files=files, facts=["model.path"], result=_result(report))
            following = _first_open(following_steps(card, task), report, task)
    if as_json:
        print_json(
            {
                **document,
                **todo,
                "format": document["format"],
                "written": [str(place / REPORT), str(instruction or place / INSTRUCTION)],
                "recorded": str(card_file) if card_file is not None else None,
                "next": following,
            }
        )
        return 0 if passed else 1
    _say(report)
    say(_("written: {path}").format(path=place / REPORT), "dim")
    if card_file is None:
        say(_("no task card: nothing was recorded"), "dim")
    else:
        say_next(following)
    return 0 if passed else 1


def _first_open(following: list[dict[str, Any]], report: Report, task: Path | None) -> list[dict[str, Any]]:
    """The steps, with the command of the first layer that was not computed in place of this one."""
    from stages.card.order import PARAMS
    from stages.params.instruction import COMPUTED_BY
    from stages.params.points import NOT_COMPUTED

    open_ = {point.layer for _number, point in report.open if point.result == NOT_COMPUTED}
    first = next((one.name for one in report.layers if one.name in open_), None)
    if first is None:
        return following
    command = "probepatch params modules train" if first == "modules" and "config" not in open_ else COMPUTED_BY[first]
    return [one | {"command": naming(command, task)} if one["stage"] == PARAMS else one for one in following]


def _inputs(paths: dict[str, Path]) -> list[Path]:
    """What the results themselves rest on: the evidence goes stale with them."""
    from stages.params.reading import read_object

    found: list[Path] = []
    for path in paths.values():
        if os.path.isfile(path):
            inputs = read_object(path, _("result")).get("inputs")
            found += [Path(name) for name in inputs] if isinstance(inputs, dict) else []
    return found


def _result(report: Report) -> dict[str, Any]:
    return {
        "verdict": report.verdict,
        "layers": {one.name: one.state for one in report.layers},
        "waived": [point.name for point, waiver in report.points if waiver is not None],
        "open": [point.name for _number, point in report.open],
    }


def _say(report: Report) -> None:
    from stages.params.instruction import instructions

    rows = [
        (
            f"P{number}",
            point.result,
            point.layer,
            point.kind,
            point.name,
            _("waived: {why}").format(why=waiver["why"]) if waiver is not None else point.why,
        )
        for number, (point, waiver) in enumerate(report.points, 1)
    ]
    if rows:
        table(("", _("result"), _("layer"), _("kind"), _("name"), _("why")), rows)
    for one in instructions(report.open, report.sides):
        say(f"{one['point']}: {one['align_side']}, {one['method']}: {one['action']}")
    table(
        (_("layer"), _("state"), _("compared"), _("why")),
        [(one.name, one.state, str(one.compared), one.why) for one in report.layers],
    )
    say(report.statement, {"EXACT": "good", "WAIVED": "note"}.get(report.verdict, "bad"))
