"""What `params structure` and `params weights` share: two sides named, their report shown and left beside the task card."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from codemods.errors import RefusedError, UsageError
from commands.arguments import file_path, text
from commands.output import print_json, say, table
from commands.task_card import card_path_if_any, naming, task_option
from locales import _, ngettext

if TYPE_CHECKING:
    from stages.params_tensors.alignment import Options, Report

Function = TypeVar("Function", bound=Callable[..., Any])
_SHOWN = 40  # lines of findings for people; --json has them all


def two_sides(function: Function) -> Function:
    """The options of both commands."""
    for option in reversed(
        (
            click.option(
                "--train", type=file_path, metavar="PATH", help=_("the training side: checkpoint or inventories")
            ),
            click.option("--infer", type=file_path, metavar="PATH", help=_("the inference side, likewise")),
            click.option(
                "--train-names",
                default="common",
                show_default=True,
                type=text,
                metavar="RULES",
                help=_("how that side names its tensors: common, megatron, or a file"),
            ),
            click.option(
                "--infer-names", default="common", show_default=True, type=text, metavar="RULES", help=_("likewise")
            ),
            click.option(
                "--vocab-size",
                type=click.IntRange(1),
                help=_("rows of the vocabulary that are used (else the configs')"),
            ),
            click.option(
                "--set",
                "sets",
                multiple=True,
                metavar="NAME=N",
                type=text,
                help=_("a number of the model's config, num_key_value_heads=8 say"),
            ),
            click.option(
                "--ignore", multiple=True, metavar="GLOB", type=text, help=_("names that are listed, but not compared")
            ),
            click.option(
                "--torch-python",
                type=text,
                metavar="PYTHON",
                help=_("an interpreter with torch, for .bin and .pt files"),
            ),
            click.option(
                "--payload",
                type=file_path,
                metavar="FILE",
                help=_("only write the script that makes inventories inside a side to FILE"),
            ),
            click.option(
                "--out", type=file_path, metavar="FILE", help=_("where the result goes (with a task card: beside it)")
            ),
            task_option,
        )
    ):
        function = option(function)
    return function


def options_of(
    train_names: str,
    infer_names: str,
    vocab_size: int | None,
    sets: tuple[str, ...],
    ignore: tuple[str, ...],
    torch_python: str | None,
) -> Options:
    """Raises UsageError."""
    from stages.params_tensors.alignment import VOCABULARY, Options
    from stages.params_tensors.pairing import INFER, TRAIN

    numbers = {}
    for one in sets:
        name, equals, value = one.partition("=")
        if not equals or not name or not value.isdecimal() or len(value) > 12:
            raise UsageError(_("`{text}` is no NAME=NUMBER").format(text=one))
        numbers[name] = int(value)
    if vocab_size is not None:
        numbers[VOCABULARY] = vocab_size
    return Options({TRAIN: train_names, INFER: infer_names}, numbers, ignore, torch_python)


def both(train: Path | None, infer: Path | None) -> tuple[Path, Path]:
    """Raises UsageError."""
    if train is None or infer is None:
        raise UsageError(
            _("--train and --infer name what is to be compared"),
            todo=_(
                "a checkpoint's folder or file, or a folder of inventories (--payload FILE writes the script that makes them)"
            ),
        )
    return train, infer


def write_inventory_payload(path: Path) -> None:
    """The script for both sides. Raises RefusedError."""
    from stages.params_tensors import payload_inventory

    write_payload(Path(payload_inventory.__file__), path)


def write_payload(payload: Path, path: Path) -> None:
    """Raises RefusedError."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(payload.read_text("utf-8"))
    except OSError as error:
        raise RefusedError(_("{path} cannot be written").format(path=path), why=error.strerror) from error
    say(_("{path}: its first lines say how to run it inside a side").format(path=path), "good")


def may_begin(task: Path | None) -> Path | None:
    """The card that the evidence goes to, if there is one. Raises OutOfOrderError."""
    from stages.card.order import PARAMS, require
    from stages.card.store import read_card

    card = card_path_if_any(task)
    if card is not None:
        require(read_card(card), PARAMS)
    return card


def finish(report: Report, card: Path | None, out: Path | None, task: Path | None, as_json: bool) -> int:
    """Leave the report beside the card, show it, and give the exit code: 0 only when everything is exact."""
    from stages.params.layers import FILES
    from stages.params.waivers import write_json
    from stages.params_tensors.verdicts import ALIGNED

    if out is None and card is not None:
        out = card.parent / FILES[report.kind]
    if out is not None:
        write_json(out, report.as_json())
    following = naming("probepatch params weights" if report.kind == "structure" else "probepatch params report", task)
    if as_json:
        print_json({**report.as_json(), "written": str(out) if out is not None else None, "next": following})
        return 0 if report.verdict == ALIGNED else 1
    _print(report)
    if out is not None:
        say(_("written: {path}").format(path=out), "dim")
    if card is None:
        say(_("no task card: nothing was recorded"), "dim")
    say(_("next: `{command}`").format(command=following))
    return 0 if report.verdict == ALIGNED else 1


# --- for people -------------------------------------------------------------------------------------------------------


def _print(report: Report) -> None:
    for side, problem in report.opened.problems:
        names = ", ".join(problem.tensors[:4]) + (" …" if len(problem.tensors) > 4 else "")
        place = ": ".join(part for part in (problem.file, names) if part)
        say(f"{side}: {problem.what}" + (f"  [{place}]" if place else ""), "bad" if problem.fatal else "note")
    points = report.points
    if points:
        rows = [(one.verdict, one.name, _shapes(one), _why(one)) for one in points[:_SHOWN]]
        table((_("verdict"), _("tensor"), _("train | infer"), _("why")), rows)
    if len(points) > _SHOWN:
        say(_("and {count} more; --json has them all").format(count=len(points) - _SHOWN), "dim")
    for note in report.opened.pairing.notes[:_SHOWN]:
        say(note, "note")
    for side, ignored in report.opened.pairing.ignored.items():
        if ignored:
            names = ", ".join(list(ignored)[:4]) + (" …" if len(ignored) > 4 else "")
            text_ = ngettext(
                "{side}: {count} tensor ignored: {names}", "{side}: {count} tensors ignored: {names}", len(ignored)
            )
            say(text_.format(side=side, count=len(ignored), names=names), "dim")
    counts = ", ".join(f"{count} {word}" for word, count in report.counts.items()) or _("nothing")
    say(f"{report.verdict}: {counts}", "good" if report.verdict == "EXACT" else "bad")


def _shapes(one: Any) -> str:
    return f"{one.train or '-'} | {one.infer or '-'}" if str(one.train) != str(one.infer) else str(one.train)


def _why(one: Any) -> str:
    """The note, and what was measured."""
    parts = [one.note] if one.note else []
    found = one.difference
    if found and found["differing"]:
        first, least = found["first_index"], "" if found["complete"] else _("at least ")
        parts.append(
            _("{least}{count} of {all} elements, the first at {index}").format(
                least=least, count=found["differing"], all=found["elements"], index=first
            )
        )
        if first:
            parts.append(_("row {row}").format(row=first[0]))
        if found["max_abs"] is not None:
            parts.append(_("max difference {least}{size:.6g}").format(least=least, size=found["max_abs"]))
    return "; ".join(parts)
