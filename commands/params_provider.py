"""``probepatch params provider``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from commands.arguments import file_path, text
from commands.output import json_option, print_json, say, warn
from commands.task_card import card_path_if_any, naming, task_option
from locales import _, ngettext


@click.command(
    help=_(
        "Build the provider of the training side's bridge from a Hugging Face folder, in the training side's own interpreter,"
        " and write the config that it really has. No weights are read."
    )
)
@click.argument("hf_dir", type=text)
@click.argument("out", type=file_path)
@click.option(
    "--bridge", type=text, metavar="CLASS", help=_("class, module.Class or module:Class (DeepSeekV4FlashBridge)")
)
@click.option(
    "--bridge-src",
    "sources",
    multiple=True,
    type=text,
    metavar="DIR",
    help=_("where its sources are, as seen by that interpreter; may be repeated (/workspace/Megatron-Bridge/src, …)"),
)
@click.option(
    "--python", type=text, metavar="FILE", help=_("the training side's interpreter, where no task card names it")
)
@task_option
@json_option
def command(
    hf_dir: str,
    out: Path,
    bridge: str | None,
    sources: tuple[str, ...],
    python: str | None,
    task: Path | None,
    as_json: bool,
) -> int:
    """Exit code 1 when the bridge cannot be imported or fails."""
    from codemods.errors import UsageError
    from stages.card.order import PARAMS, require
    from stages.card.store import read_card
    from stages.params.provider import BRIDGE, SOURCES, effective_config
    from stages.params.waivers import write_json
    from stages.sides import TRAIN, Side

    card_file = card_path_if_any(task)
    if card_file is not None:
        if python is not None:
            raise UsageError(_("the task card names the interpreter"), todo=_("`probepatch task set train.python=…`"))
        card = read_card(card_file)
        require(card, PARAMS)
        side = Side.of(card, TRAIN)
    else:
        side = Side(TRAIN, (), python or sys.executable)
    config = effective_config(side, hf_dir, bridge or BRIDGE, sources or SOURCES)
    write_json(out, config)
    following = naming(f"probepatch params check --train-cfg {out} --infer-cfg {hf_dir} --mapping auto", task)
    if as_json:
        print_json({**config, "written": str(out), "next": following})
        return 0
    say(_("{name} gives a {provider}").format(name=config["bridge"], provider=config["provider_class"]), "good")
    loose = config["undeclared"]
    if loose:
        names = ", ".join(loose)
        warn(_("set, but the provider's class has no such field: {names}").format(names=names))
    if not config["finalized"]:
        warn(
            _("it could not be finalized ({why}); derived fields may be unset").format(
                why=config["not_finalized_because"]
            )
        )
    if config["stubbed"]:
        warn(_("a stand-in took the place of {names}").format(names=", ".join(config["stubbed"])))
    count = len(config["config"])
    say(ngettext("{count} field in {path}", "{count} fields in {path}", count).format(count=count, path=out))
    say(_("next: `{command}`").format(command=following))
    return 0
