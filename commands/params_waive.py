"""``probepatch params waive NAME --why TEXT``."""

from __future__ import annotations

from pathlib import Path

import click

from commands.arguments import file_path, text
from commands.output import json_option, print_json, say
from commands.task_card import card_path, naming, task_option
from locales import _


@click.command(
    help=_(
        "Accept a mismatch point of the report by its name, with a reason, on the record. A structure switch, a missing module"
        " or a size is never waived; a waiver ends when the point's values change."
    )
)
@click.argument("name", type=text)
@click.option("--why", type=text, required=True, help=_("the reason; it goes into the report and the handoff"))
@click.option("--folder", type=file_path, metavar="DIR", help=_("where the report is (beside the task card)"))
@task_option
@json_option
def command(name: str, why: str, folder: Path | None, task: Path | None, as_json: bool) -> int:
    """Exit code 3 for what is not waived."""
    from stages.card.order import PARAMS, require
    from stages.card.store import changing, read_card
    from stages.params.layers import FILES, read_layers
    from stages.params.report import join
    from stages.params.waivers import NAME, waive

    card_file = card_path(task)
    card = read_card(card_file)
    require(card, PARAMS)
    place = folder or card_file.parent
    report = join(read_layers({layer: place / file for layer, file in FILES.items()}), {})
    with changing(card_file, card) as card:
        card.note(_("{name} is waived: {why}").format(name=name, why=why))
        point = waive(place, [point for point, _waiver in report.points], name, why)
    following = naming("probepatch params report", task)
    if as_json:
        told = {"name": point.name, "kind": point.kind, "result": point.result, "why": why}
        print_json({**told, "written": str(place / NAME), "next": following})
        return 0
    say(_("{name} is waived; the handoff will say: not aligned at parameter level").format(name=point.name), "note")
    say(_("next: `{command}`").format(command=following))
    return 0
