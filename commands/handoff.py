"""``probepatch handoff``: the package for the analysis side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from commands.arguments import file_path
from commands.output import json_option, print_json, say, table
from commands.task_card import card_path, naming, task_option
from locales import _, ngettext


@click.command
@click.option(
    "--round", "round_", type=click.IntRange(0), default=0, metavar="N", help=_("of a stubbed re-capture (else 0)")
)
@click.option("--out", type=file_path, metavar="DIR", help=_("another folder than ROOT/handoff"))
@task_option
@json_option
def command(round_: int, out: Path | None, task: Path | None, as_json: bool) -> int:
    """Exit code 3 when stage 7 does not say that the dumps are comparable, or the package would hold a secret."""
    from stages.card.store import changing, read_card
    from stages.dumps.given import root_of
    from stages.dumps.handoff import FORMAT, checkouts_of, make_handoff, paths
    from stages.dumps.writing import expect_free, expect_own_place, make_folder, write_json

    card_file = card_path(task)
    card = read_card(card_file)
    usual = paths(root_of(card) if out is None else out, round_)
    path = (out / usual.name if out is not None else usual).absolute()
    if out is not None:
        expect_own_place(path.parent, checkouts_of(card))
    expect_free(path, FORMAT)
    with changing(card_file, card) as card:
        document = make_handoff(card, round_)
        make_folder(path.parent)
        write_json(path, document)
        card.note(_("round {n} was handed over: {path}").format(n=round_, path=path))
    dump_only = card.fact("usage") == "dump"
    following = naming("probepatch restore" if dump_only else "probepatch stub prepare", task)
    if as_json:
        print_json({**document, "written": str(path), "next": following})
    else:
        _print(document, path)
        said = _("next: give it to the analysis side; with its instruction: `{command}`")
        if dump_only:
            said = _("next: give it to the analysis side; then `{command}`")
        say(said.format(command=following))
    return 0


def _print(document: dict[str, Any], path: Path) -> None:
    sides = document["sides"]
    rows = [
        (
            side,
            " ".join(filter(None, (one["framework"], one["version"]))),
            f"step{one['step']}",
            ", ".join(one["ranks"][:4]) + (", …" if len(one["ranks"]) > 4 else ""),
            one["dump_path"],
        )
        for side, one in sides.items()
    ]
    table(("", _("framework"), _("step"), _("ranks"), _("dump_path")), rows)
    tied = document["association"]
    say(
        _("request {train} = {infer} (by {rule}), {tokens} tokens").format(
            train=tied["train_request"] or "-",
            infer=tied["infer_request"] or "-",
            rule=tied["rule"],
            tokens=tied["prompt_tokens"],
        )
    )
    aligned = document["parameter_alignment"]
    say(_("parameters: {statement}").format(statement=aligned["statement"]), "" if aligned["aligned"] else "note")
    alarms = document["known_false_alarms"]
    text = ngettext("{count} known false alarm", "{count} known false alarms", len(alarms)).format(count=len(alarms))
    say(f"{text}: {', '.join(one['id'] for one in alarms)}")
    if document["stub"] is not None:
        count = len(document["stub"]["entries"] or ())
        text = ngettext(
            "round {n}: {count} entry of the {side} side overridden",
            "round {n}: {count} entries of the {side} side overridden",
            count,
        )
        say(text.format(n=document["round"], count=count, side=document["stub"]["target_side"]))
    say(_("no prompt, token, tensor or credential is in it; it was searched for them"), "dim")
    say(_("written: {path}").format(path=path), "good")
