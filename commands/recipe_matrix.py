"""``probepatch recipe matrix ID…``: recipes by version, from the tags of a repository or from wheels."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codemods.errors import UsageError
from commands.arguments import file_path, text
from commands.output import json_option, print_json, say, table, visible
from locales import _

if TYPE_CHECKING:
    from authoring.matrix.cells import Cell, History, Matrix
    from authoring.matrix.releases import Release
    from codemods.catalogue import Framework
    from codemods.errors import ProbePatchError
    from codemods.recipe import Recipe

WORDS = {
    "ok": _("ok"),
    "upstream": _("already upstream"),
    "refused": _("refused"),
    "moved": _("moved"),
    "ambiguous": _("ambiguous"),
    "gone": _("gone"),
    "unreadable": _("unreadable"),
}


@click.command(
    help=_(
        "Try recipes on every tag of a repository, or on wheels. Nothing is checked out or unpacked; "
        "code 1 when a recipe does not fit a version of its own range."
    )
)
@click.argument("ids", nargs=-1, metavar="ID|FILE…", type=text)
@click.option("--repo", metavar="DIR", type=file_path, help=_("a git repository, a bare one too"))
@click.option("--tags", multiple=True, metavar="GLOB", type=text, help=_("its tags; may be repeated; all by default"))
@click.option(
    "--wheels", multiple=True, metavar="NAME==V,V", type=text, help=_("wheels by name and versions, or the path of one")
)
@click.option(
    "--wheels-dir",
    multiple=True,
    metavar="DIR",
    type=file_path,
    help=_("where wheels are; then PROBEPATCH_WHEELS (or a cache) is looked into, then pip is asked"),
)
@click.option("--in-range", "only_in_range", is_flag=True, help=_("only the versions that a recipe is for"))
@json_option
def command(
    ids: tuple[str, ...],
    repo: Path | None,
    tags: tuple[str, ...],
    wheels: tuple[str, ...],
    wheels_dir: tuple[Path, ...],
    only_in_range: bool,
    as_json: bool,
) -> int:
    """Exit code 1 when a cell within a recipe's own range is not ok."""
    if (repo is None) == (not wheels) or (tags and repo is None):
        raise UsageError(_("name a repository with --repo and --tags, or wheels with --wheels"))
    from authoring.matrix.cells import build
    from authoring.matrix.releases import framework_of

    recipes = _recipes(ids)
    releases = _releases(framework_of(recipes), repo, tags, wheels, wheels_dir)
    with _progress() as step:
        matrix = build(recipes, releases, step, only_in_range=only_in_range)
    if not any(cell.state for cell in matrix.cells):
        raise UsageError(_("none of {count} versions is in a recipe's range").format(count=len(releases)))
    if as_json:
        print_json(_as_json(matrix))
    else:
        _print(matrix)
    return 0 if matrix.fits else 1


def _recipes(names: Sequence[str]) -> list[Recipe]:
    """Shipped recipes by id, others by their file; each once. Raises UsageError, RecipeError."""
    from commands.authoring import named_recipe

    if not names:
        raise UsageError(_("name a recipe: its id, or its file"))
    return list({recipe.path: recipe for recipe in map(named_recipe, names)}.values())


def _releases(
    framework: Framework, repo: Path | None, tags: Sequence[str], wheels: Sequence[str], folders: Sequence[Path]
) -> list[Release]:
    from authoring.matrix.releases import from_tags, from_wheels
    from authoring.matrix.wheels import find
    from authoring.trees import open_repository

    if repo is not None:
        return from_tags(open_repository(repo), tags or ("*",), framework)
    return from_wheels(find(wheels, folders), framework)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error, on a terminal only."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(_("planning"), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


# --- for people -------------------------------------------------------------------------------------------------------


def _print(matrix: Matrix) -> None:
    names = _names(matrix.recipes)
    rows = [
        [_version(release), *(_words(matrix.cell(recipe, place)) for recipe in range(len(names)))]
        for place, release in enumerate(matrix.releases)
    ]
    headings = [_("version"), *names]
    styles = [[_style(matrix.cell(recipe, place)) for recipe in range(len(names))] for place in range(len(rows))]
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        _coloured(headings, rows, styles)
    else:
        table(headings, rows)
    if any(cell.in_range is False and cell.state for cell in matrix.cells):
        say(_("(in parentheses: not one of the recipe's own versions)"), "dim")
    _print_why(matrix, names)


def _coloured(headings: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        grid.add_column(visible(heading), overflow="fold")
    for row, kinds in zip(rows, styles, strict=True):
        grid.add_row(*(Text(visible(cell), kind) for cell, kind in zip(row, ("bold", *kinds), strict=True)))
    Console(highlight=False).print(grid)


def _names(recipes: Sequence[Recipe]) -> list[str]:
    """Their ids; the path of a recipe whose id another one has, too."""
    count = Counter(recipe.id for recipe in recipes)
    return [recipe.id if count[recipe.id] == 1 else str(recipe.path) for recipe in recipes]


def _version(release: Release) -> str:
    """The label, with the version where it says another one."""
    if release.version is None:
        return _("{label} (version unknown)").format(label=release.label)
    if release.told_by == "name" or release.label == str(release.version):
        return release.label
    return f"{release.label} ({release.version})"


def _words(cell: Cell) -> str:
    if cell.state is None:
        return "-"
    word = WORDS[cell.state]
    if cell.broken:
        word = f"{word} {cell.broken}/{len(cell.verdicts)}"
    return f"({word})" if cell.in_range is False else word


def _style(cell: Cell) -> str:
    if cell.state is None or cell.in_range is False:
        return "dim"
    return "green" if cell.state == "ok" else "bold red" if cell.in_range else "yellow"


def _print_why(matrix: Matrix, names: Sequence[str]) -> None:
    """A line for each version that could not be looked at, each requirement that is not met, and each edit that broke."""
    from authoring.matrix.cells import histories

    for release in matrix.releases:
        if release.error is not None:
            say(f"{release.label}: {_brief(release.error)}", "bad")
    for number, recipe in enumerate(matrix.recipes):
        for place, need in enumerate(recipe.requires):
            without = [cell for cell in matrix.cells if cell.recipe == number and place in cell.missing]
            if without:
                line = _("{recipe}: requires {what}, which is not in {versions}").format(
                    recipe=names[number],
                    what=": ".join(part for part in (need.file, need.symbol, need.has.strip()) if part),
                    versions=", ".join(matrix.releases[cell.release].label for cell in without),
                )
                say(line, "bad" if any(cell.in_range for cell in without) else "")
    for history in histories(matrix):
        edit = f"{names[history.recipe]}/{matrix.recipes[history.recipe].edits[history.edit].id}"
        say(f"{edit}: {_when(matrix, history)}: {_reason(history)}", "bad" if history.in_range else "")


def _when(matrix: Matrix, history: History) -> str:
    broke = matrix.releases[history.broke].label
    if history.last_good is not None:
        last_good = matrix.releases[history.last_good].label
        return _("broke in {broke} (last good {last_good})").format(broke=broke, last_good=last_good)
    if history.since is not None:
        return _("fits from {since} on, not in {broke}").format(since=matrix.releases[history.since].label, broke=broke)
    return _("broke in {broke} (none before it is good)").format(broke=broke)


def _reason(history: History) -> str:
    verdict = history.verdict
    if verdict.state == "moved":
        place = _("now in {file}: {symbol}, line {line}")
        said = place.format(file=verdict.file, symbol=verdict.symbol or _("module"), line=verdict.line)
    else:
        said = _brief(verdict.error) if verdict.error is not None else ""
    return f"{WORDS[verdict.state]}: {said}"


def _brief(error: ProbePatchError) -> str:
    """Where and what in one line, without the edit's name in front; why, too, where that is the anchor."""
    name, _colon, rest = error.what.partition(": ")
    what = rest if "/" in name and rest else error.what
    why = error.why if error.kind in ("no-match", "tree", "unreadable-source") else None
    return " ".join(": ".join(part for part in (error.where, what, why) if part).split())


# --- for programs -----------------------------------------------------------------------------------------------------


def _as_json(matrix: Matrix) -> dict[str, Any]:
    from authoring.matrix.cells import histories

    names = _names(matrix.recipes)
    labels = [release.label for release in matrix.releases]
    broken = {(history.recipe, history.edit): history for history in histories(matrix)}

    def history(recipe: int, edit: int) -> dict[str, Any]:
        found = broken.get((recipe, edit))
        return {
            "id": matrix.recipes[recipe].edits[edit].id,
            "broke_in": labels[found.broke] if found else None,
            "last_good": labels[found.last_good] if found and found.last_good is not None else None,
            "in_range": found.in_range if found else None,
        }

    def cell(found: Cell) -> dict[str, Any]:
        recipe = matrix.recipes[found.recipe]
        needs = [recipe.requires[place] for place in found.missing]
        return {
            "recipe": names[found.recipe],
            "version": labels[found.release],
            "in_range": found.in_range,
            "state": found.state,
            "missing": [{"file": n.file, "symbol": n.symbol or None, "has": n.has or None} for n in needs],
            "edits": [
                {
                    "id": recipe.edits[edit].id,
                    "state": verdict.state,
                    "file": verdict.file,
                    "symbol": verdict.symbol or None,
                    "line": verdict.line or None,
                    "error": verdict.error.as_json() if verdict.error is not None else None,
                }
                for edit, verdict in found.verdicts.items()
            ],
        }

    return {
        "fits": matrix.fits,
        "asked": matrix.asked,
        "planned": matrix.planned,
        "versions": [
            {
                "label": release.label,
                "source": release.source,
                "version": str(release.version) if release.version is not None else None,
                "told_by": release.told_by or None,
                "error": release.error.as_json() if release.error is not None else None,
            }
            for release in matrix.releases
        ],
        "recipes": [
            {
                "name": names[number],
                "path": str(recipe.path),
                "versions": str(recipe.versions),
                "edits": [history(number, edit) for edit in range(len(recipe.edits))],
            }
            for number, recipe in enumerate(matrix.recipes)
        ],
        "cells": [cell(found) for found in matrix.cells],
    }
