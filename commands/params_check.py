"""``probepatch params check``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.arguments import file_path, text
from commands.output import json_option, print_json, say, table, warn
from commands.task_card import card_path_if_any, naming, task_option
from locales import _, ngettext

if TYPE_CHECKING:
    from stages.params.check import Checked


@click.command(
    help=_(
        "Compare the config that the training really runs with and the engine's, item by item: EXACT, DIFF, MISSING_SIDE or"
        " CONFLICT, structure switches first. Shipped mappings: hf-hf, hf-megatron and its parts."
    )
)
@click.option(
    "--train-cfg",
    "train",
    type=file_path,
    required=True,
    metavar="FILE",
    help=_("the training side's effective config (`params provider`, a dumped provider, a run's YAML)"),
)
@click.option(
    "--infer-cfg",
    "infer",
    type=file_path,
    required=True,
    metavar="FILE",
    help=_("the engine's config.json, or its folder"),
)
@click.option(
    "--mapping",
    type=text,
    metavar="NAME|FILE",
    help=_("which name means which: a shipped one, a file, or `auto`; without it the same names are compared"),
)
@click.option(
    "--modules",
    multiple=True,
    type=file_path,
    metavar="FILE",
    help=_("what the built modules hold (`params modules`): one file of both sides, or one for each"),
)
@click.option(
    "--train-is-hf", is_flag=True, help=_("the training builds the HF model from this config.json itself (FSDP)")
)
@click.option("--out", type=file_path, metavar="FILE", help=_("where the result goes (with a task card: beside it)"))
@task_option
@json_option
def command(
    train: Path,
    infer: Path,
    mapping: str | None,
    modules: tuple[Path, ...],
    train_is_hf: bool,
    out: Path | None,
    task: Path | None,
    as_json: bool,
) -> int:
    """Exit code 1 when anything is not EXACT."""
    from stages.card.order import PARAMS, require
    from stages.card.store import read_card
    from stages.params.check import Wish, check
    from stages.params.layers import FILES
    from stages.params.waivers import write_json

    card_file, backend = card_path_if_any(task), None
    if card_file is not None:
        card = read_card(card_file)
        require(card, PARAMS)
        backend = card.fact("train.backend")
        out = out or card_file.parent / FILES["config"]
    checked = check(Wish(train, infer, mapping, modules, train_is_hf, backend))
    result = checked.as_json()
    if out is not None:
        write_json(out, result)
    following = naming("probepatch params structure" if checked.aligned else "probepatch params report", task)
    if as_json:
        print_json({**result, "written": str(out) if out is not None else None, "next": following})
        return 0 if checked.aligned else 1
    _say(checked)
    say(
        _("the result is {path}; stage 5 is decided by `probepatch params report`").format(path=out)
        if card_file is not None
        else _("no task card: nothing was recorded"),
        "dim",
    )
    say(_("next: `{command}`").format(command=following))
    return 0 if checked.aligned else 1


def _say(checked: Checked) -> None:
    from stages.params.compare import EXACT, shown

    for note in checked.notes:
        warn(note)
    rows = [
        (
            f"P{number}",
            point.result,
            point.kind,
            point.name,
            shown((point.train or {}).get("value")) if point.train else "-",
            shown((point.infer or {}).get("value")) if point.infer else "-",
            point.why,
        )
        for number, point in enumerate(checked.points, 1)
    ]
    if rows:
        table(("", _("result"), _("kind"), _("name"), _("train"), _("infer"), _("why")), rows)
    assumed = [item for item in checked.items if item.result == EXACT and item.why]
    for item in assumed:
        say(f"{item.name}: {item.why}", "dim")
    for side, names in (("train", checked.compared.train_only), ("infer", checked.compared.infer_only)):
        if names and checked.compared.mapping.rest == "list" and side == "infer":
            say(_("not compared, no field of the mapping has them: {names}").format(names=", ".join(names)), "note")
    count = len(checked.items)
    equal = sum(item.result == EXACT for item in checked.items)
    text = ngettext("{equal} of {count} item EXACT", "{equal} of {count} items EXACT", count)
    if not checked.modules:
        text += _("; what the modules consume was not computed (--modules)")
    say(text.format(equal=equal, count=count), "good" if checked.aligned else "bad")
