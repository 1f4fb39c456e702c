"""How results reach people and programs: coloured text and tables on a terminal, plain text in a pipe, JSON on
request."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Sequence
from contextlib import nullcontext, suppress
from typing import Any

import click

from codemods.errors import ProbePatchError
from codemods.misses import PlanError
from locales import _

json_option = click.option("--json", "as_json", is_flag=True, help=_("print JSON for programs (docs/json.md)"))


def print_json(result: Any) -> None:
    """One JSON document, in ASCII: it survives every locale, and file names that are not UTF-8."""
    click.echo(json.dumps(result, indent=2))


def table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], style: str = "bold", whole: Collection[int] = ()
) -> None:
    """A table without lines, its first column in ``style``; every cell is plain text, whatever it holds. On a terminal that is too
    narrow the columns ``whole`` are never folded: what stands there is typed again."""
    cells = [[visible(cell) for cell in row] for row in rows]
    if sys.stdout is not None and sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        _rich_table(headings, cells, style, whole)
        return
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    for row in [headings, *cells] if any(headings) else cells:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _rich_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], style: str, whole: Collection[int] = ()
) -> None:
    """For a terminal: fitted to its width, wide characters and all."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, header_style="bold", show_header=any(headings))
    for number, heading in enumerate(headings):
        grid.add_column(heading, style="" if number else style, overflow="fold", no_wrap=number in whole)
    for row in rows:
        grid.add_row(*map(Text, row))
    Console(highlight=False).print(grid)


def say(text: str, style: str = "") -> None:
    """One sentence on standard output."""
    _echo(click.style(visible(text), **_STYLES.get(style, {})))


def warn(text: str) -> None:
    """A sentence beside the result, on standard error."""
    _echo(click.style(visible(text), fg="yellow"), err=True)


def _echo(text: str, err: bool = False) -> None:
    """click takes the colours out where there is no terminal; NO_COLOR takes them out everywhere."""
    with suppress(OSError) if err else nullcontext():  # a warning that nobody can get stops nothing
        click.echo(text, err=err, color=False if os.environ.get("NO_COLOR") else None)


def visible(text: str) -> str:
    """``text`` with control characters shown, so that no file name or line of code can steer the terminal."""
    return "".join(c if c in "\n\t" or c.isprintable() else _escaped(c) for c in text)


def _escaped(c: str) -> str:
    return "^" + chr(ord(c) ^ 64) if ord(c) < 128 else c.encode("unicode_escape", "surrogatepass").decode()


def print_error(error: ProbePatchError) -> None:
    """What, where, why and what to do, on standard error; a plan's findings one by one."""
    findings = error.findings if isinstance(error, PlanError) else ()
    for finding in findings:
        _echo(_error_text(finding), err=True)
    _echo(_error_text(error), err=True)


def _error_text(error: ProbePatchError) -> str:
    lines = [click.style(_("error: "), fg="red", bold=True) + click.style(visible(error.what), bold=True)]
    for word, text, colour in (
        (_("where"), error.where, "cyan"),
        (_("why"), error.why, "cyan"),
        (_("do"), error.todo, "green"),
    ):
        if text:
            lines.append("  " + click.style(f"{word:7}", fg=colour) + visible(text))
    return "\n".join([*lines, *("    " + visible(detail) for detail in error.details)])


_STYLES: dict[str, dict[str, Any]] = {
    "good": {"fg": "green"},
    "bad": {"fg": "red"},
    "note": {"fg": "yellow"},
    "head": {"bold": True},
    "dim": {"dim": True},
    "add": {"fg": "green"},
    "del": {"fg": "red"},
    "hunk": {"fg": "cyan"},
}
