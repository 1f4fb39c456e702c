"""``probepatch params modules SIDE``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from codemods.errors import UsageError
from commands.arguments import file_path, text
from commands.output import json_option, print_json, say, warn
from commands.task_card import card_path_if_any, naming, task_option
from locales import _, ngettext

_SIDES, _LOADERS = ("train", "infer"), ("transformers", "vllm")


@click.command(
    help=_(
        "Build a side's model in its own interpreter, without its weights, and write what each module really holds (eps, sizes,"
        " scales) for `params check --modules`. What Megatron or SGLang builds is told by the job itself: --payload."
    )
)
@click.argument("name", required=False, metavar="[train|infer]", type=click.Choice(_SIDES))
@click.argument("model", required=False, type=text)
@click.option(
    "--with", "loader", type=click.Choice(_LOADERS), help=_("who builds it (with a task card: its framework)")
)
@click.option("--settings", type=text, metavar="JSON", help=_("settings of the engine, the same as the job's"))
@click.option("--python", type=text, metavar="FILE", help=_("the side's interpreter, where no task card names it"))
@click.option(
    "--out",
    type=file_path,
    metavar="FILE",
    help=_("where the list goes, beside the other side's (modules.json, with a task card beside it)"),
)
@click.option(
    "--payload", type=file_path, metavar="FILE", help=_("only write the script that the job itself calls to FILE")
)
@task_option
@json_option
def command(
    name: str | None,
    model: str | None,
    loader: str | None,
    settings: str | None,
    python: str | None,
    out: Path | None,
    payload: Path | None,
    task: Path | None,
    as_json: bool,
) -> int:
    """Exit code 1 when the side cannot build the model."""
    from commands.tensor_sides import write_payload
    from stages.card.order import PARAMS, require
    from stages.card.store import read_card
    from stages.params.building import PAYLOAD, built_modules, loader_of, put_modules, settings_of
    from stages.sides import Side

    if payload is not None:
        write_payload(PAYLOAD, payload)
        return 0
    if name is None:
        raise UsageError(_("which side is it?"), todo=_("`probepatch params modules train`, or `infer`"))
    given = settings_of(settings)
    card_file = card_path_if_any(task)
    if card_file is not None:
        if python is not None:
            todo = _("`probepatch task set {side}.python=…`").format(side=name)
            raise UsageError(_("the task card names the interpreter"), todo=todo)
        card = read_card(card_file)
        require(card, PARAMS)
        side, model, loader = Side.of(card, name), model or card.fact("model.path"), loader or loader_of(card, name)
    else:
        side = Side(name, (), python or sys.executable)
    if model is None or loader is None:
        raise UsageError(_("without a task card the model's folder and --with say what is built"))
    out = out or (card_file.parent if card_file is not None else Path()) / "modules.json"
    if not as_json:
        warn(_("the model is built without its weights, with {loader}: an engine takes a minute").format(loader=loader))
    modules = built_modules(side, loader, model, given)
    put_modules(out, name, modules)
    check = f"probepatch params check --train-cfg … --infer-cfg … --modules {out}"
    following = naming(check, task)
    if as_json:
        print_json(
            {
                "side": name,
                "with": loader,
                "model": model,
                "modules": len(modules),
                "written": str(out),
                "next": following,
            }
        )
        return 0
    count = ngettext("{side}: {count} module in {path}", "{side}: {count} modules in {path}", len(modules))
    say(count.format(side=name, count=len(modules), path=out), "good")
    say(_("next: `{command}`").format(command=following))
    return 0
