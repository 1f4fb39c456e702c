"""``probepatch capture prepare``: stage 6. Both sides are patched, or none; asked again with nothing changed it does nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commands.arguments import recipe_file_option, text
from commands.output import json_option, print_json, say, table, warn
from commands.task_card import card_path, following_steps, say_next, task_option
from locales import _

if TYPE_CHECKING:
    from commands.capture_sides import Work
    from commands.capture_write import Launch, Written

_WORLD = click.IntRange(1)


@click.command(
    help=_(
        "Patch both sides, or none, with the recipes of their capture places; write msprobe's configs, shown to each side's own"
        " msprobe, the environment and the commands to start with, and a list of every change. Asked again it does nothing."
    )
)
@click.option("--recipe", "recipes", multiple=True, metavar="NAME", type=text, help=_("this recipe; may be repeated"))
@recipe_file_option
@click.option("--dump-task", type=click.Choice(["tensor", "statistics"]), default="tensor", show_default=True)
@click.option("--level", type=click.Choice(["L0", "mix", "L1"]), default="L0", show_default=True)
@click.option("--rank", "ranks", multiple=True, type=click.IntRange(0), help=_("only this rank; may be repeated"))
@click.option(
    "--step",
    "steps",
    multiple=True,
    type=click.IntRange(0),
    default=(0,),
    show_default=True,
    help=_("this captured forward, from 0; may be repeated"),
)
@click.option("--train-world", type=_WORLD, metavar="N", help=_("processes of the training side (else stage 4's)"))
@click.option("--infer-world", type=_WORLD, metavar="N", help=_("processes of one engine (else stage 4's)"))
@click.option(
    "--phase",
    type=click.Choice(["log_prob", "update_actor", "all"]),
    default="log_prob",
    show_default=True,
    help=_("which forward of training is captured"),
)
@click.option("--no-logprobs", is_flag=True, help=_("without the log-probs of the prompts, and their difference"))
@click.option("--dry-run", is_flag=True, help=_("show the plan; write nothing"))
@task_option
@json_option
def command(
    recipes: tuple[str, ...],
    files: tuple[Path, ...],
    dump_task: str,
    level: str,
    ranks: tuple[int, ...],
    steps: tuple[int, ...],
    train_world: int | None,
    infer_world: int | None,
    phase: str,
    no_logprobs: bool,
    dry_run: bool,
    task: Path | None,
    as_json: bool,
) -> None:
    """Exit code 1 when a side cannot be planned, 3 when it is refused; then nothing is patched."""
    from commands.capture_sides import Options, plan
    from commands.capture_write import pages, repair, write
    from stages.card.order import INSTRUMENT, require
    from stages.card.permissions import demand
    from stages.card.store import read_card

    path = card_path(task)
    card = read_card(path)
    require(card, INSTRUMENT)
    if not dry_run:
        demand(card, "AUTH_EDIT_TARGET_CODE", "AUTH_RESTORE_CODE")
        repair(card)
    worlds = {"train": train_world, "infer": infer_world}
    options = Options(recipes, files, dump_task, level, ranks, steps, worlds, phase, not no_logprobs)
    work = plan(card, options)
    launches = pages(card, work)
    written = write(path, work, launches, dry_run)
    following = following_steps(read_card(path), task)
    if as_json:
        print_json(_as_json(path, work, launches, written, dry_run, following))
        return
    _print(work, launches, written, dry_run)
    if not dry_run:
        say_next(following)


def _as_json(
    path: Path,
    work: Work,
    launches: Mapping[str, Launch],
    written: Written,
    dry_run: bool,
    following: list[dict[str, Any]],
) -> dict[str, Any]:
    from dataclasses import asdict

    from commands.diff import plan_as_json

    return {
        "card": str(path),
        "dry_run": dry_run,
        "changed": written.changed,
        "sides": {name: one.as_json() | {"msprobe": work.versions[name]} for name, one in work.sides.items()},
        "switches": dict(work.switches),
        "launch": {
            name: {**asdict(one.started), "environment": dict(one.environment)} for name, one in launches.items()
        },
        "checkouts": [plan_as_json(one) for one in work.plans],
        "receipts": [one.as_json() for one in written.receipts],
        "changes": [asdict(one) for one in written.changes],
        "conflicts": [asdict(one) for one in written.conflicts],
        "files": [str(one) for one in written.files],
        "notes": [*work.notes, *written.notes],
        "advice": {name: list(notes) for name, notes in work.advice.items()},
        "next": following,
    }


def _print(work: Work, launches: Mapping[str, Launch], written: Written, dry_run: bool) -> None:
    from commands.diff import known_edits
    from commands.preview import print_plan
    from commands.receipts import print_files, print_saved

    if dry_run:
        for planned in work.plans:
            print_plan(planned.plan, known_edits(planned))
    rows = []
    for name, one in work.sides.items():
        how = ", ".join(one.recipes) or _("helpers beside your script")
        dump = _("{how}; the engine's own msprobe dumps") if one.native else "{how}"
        rows.append((name, dump.format(how=how), one.dump_path, str(one.world_size), work.versions[name] or "?"))
    table((_("side"), _("captured by"), _("dump_path"), _("processes"), "msprobe"), rows)
    for receipt in written.receipts:
        print_files(receipt)
        print_saved(receipt.saved)
    _print_written(written, dry_run)
    for name, launch in launches.items():
        for doubt in launch.started.doubts:
            if doubt.sure:
                said = _("{side}: {name} does not reach the workers: {why}")
                warn(said.format(side=name, name=doubt.name, why=doubt.why))
        if launch.started.flags:
            said = _("{side}: the engine's own dump needs, where it is started: {flags}")
            say(said.format(side=name, flags=" ".join(launch.started.flags)), "note")
    for note in (*work.notes, *written.notes):
        warn(note)
    _print_advice(work, written, dry_run)
    for conflict in written.conflicts:
        said = _("{side}: a recipe or the card and the tree differ: {what}; {todo}")
        warn(said.format(side=conflict.side, what=conflict.what, todo=conflict.todo))
    if dry_run:
        say(_("nothing was written"), "dim")
    elif not written.changed:
        say(_("nothing to do: both sides are instrumented as asked"), "good")
    else:
        say(
            _("both sides are instrumented; every change with its reason: {path}").format(path=written.change_list),
            "good",
        )


def _print_written(written: Written, dry_run: bool) -> None:
    """The capture's own files, those of a folder together."""
    root = written.change_list.parent
    names = [str(path.relative_to(root)) for path in written.files]
    if names:
        said = _("would be written in {root}: {names}") if dry_run else _("written in {root}: {names}")
        say("  " + said.format(root=root, names=", ".join(names)))


def _print_advice(work: Work, written: Written, dry_run: bool) -> None:
    """What the recipes' authors say: in full where it is in no file, else how much there is to read."""
    if dry_run:
        for notes in work.advice.values():
            for note in notes:
                warn(note)
    elif work.advice and written.changed:
        counts = ", ".join(f"{name} {len(notes)}" for name, notes in work.advice.items())
        warn(
            _("what the recipes ask to keep in mind is in {path}: {counts}").format(
                path=written.change_list, counts=counts
            )
        )
