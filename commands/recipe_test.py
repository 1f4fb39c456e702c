"""``probepatch recipe test FILE…``: the examples that recipes carry, and what has to hold of every edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from codemods.errors import ProbePatchError
from commands.arguments import text
from commands.output import json_option, print_error, print_json, say
from locales import _, ngettext

if TYPE_CHECKING:
    from authoring.examples.run import Check, ExampleRun, RecipeRun

HELP = _(
    """Run the examples of recipes: files, or ids of shipped ones.

    Each example is planned and compared. Of each one with `before` and `after` it is proved, too, that a second apply changes
    nothing, that revert gives `before`, that the result compiles, and that the same comes out with CR LF, a byte-order mark,
    tabs, and without a final newline."""
)


@click.command(help=HELP)
@click.argument("recipes", metavar="FILE|ID…", nargs=-1, required=True, type=text)
@json_option
def command(recipes: tuple[str, ...], as_json: bool) -> int:
    """Exit code 1 when an example fails or a recipe has none, 2 for a name that is none, 4 when a recipe is not valid."""
    results, worst = [], 0
    for name in dict.fromkeys(recipes):
        result, code = _tested(name, as_json)
        results.append(result)
        worst = max(worst, code)
    if as_json:
        print_json({"recipes": results, "ok": worst == 0})
    else:
        _print_sum(results)
    return worst


def _tested(name: str, as_json: bool) -> tuple[dict[str, Any], int]:
    from authoring.examples.run import run_examples
    from commands.authoring import named_recipe

    try:
        run = run_examples(named_recipe(name))
    except ProbePatchError as error:
        if not as_json:
            print_error(error)
        broken: dict[str, Any] = {"path": name, "recipe": None, "ok": False, "examples": [], "no_example": []}
        return broken | {"error": error.as_json()}, error.exit_code
    if not as_json:
        _print_run(run)
    return _as_json(run), 0 if run.ok else 1


def _as_json(run: RecipeRun) -> dict[str, Any]:
    return {
        "path": str(run.recipe.path),
        "recipe": run.recipe.id,
        "ok": run.ok,
        "examples": [_example_as_json(example) for example in run.runs],
        "no_example": list(run.without),
        "error": None,
    }


def _example_as_json(run: ExampleRun) -> dict[str, Any]:
    return {
        "where": run.example.where,
        "kind": run.kind,
        "edits": list(run.example.edits),
        "version": run.example.version or None,
        "ok": run.ok,
        "checks": [
            {"check": one.name, "result": one.result, "why": one.why or None, "diff": list(one.diff)}
            for one in run.checks
        ],
    }


def _print_run(run: RecipeRun) -> None:
    say(f"{run.recipe.id}  ({run.recipe.path})", "head")
    for example in run.runs:
        word = _("holds ") if example.ok else _("FAILED")
        say(f"  {word}  {example.example.where}: {', '.join(example.example.edits)}", "good" if example.ok else "bad")
        held = ", ".join(_name(one) for one in example.checks if one.result == "ok")
        if held:
            say(f"          {held}", "dim")
        for one in example.checks:
            _print_check(one)
    if run.without:
        say("  " + _("no example: {edits}").format(edits=", ".join(run.without)), "note")
    if not run.runs:
        say("  " + _("FAILED  the recipe has no example: zero examples prove nothing"), "bad")


def _print_check(one: Check) -> None:
    if one.result == "not-applicable":
        say("          " + _("not applicable: {check} ({why})").format(check=_name(one), why=one.why))
    elif one.result == "failed":
        first, *more = one.why.split("\n")
        say(f"          {_name(one)}: {first}", "bad")
        for line in more:
            say(f"            {line}")
        for line in one.diff:
            style = {"+": "add", "-": "del", "@": "hunk"}.get(line[:1], "")
            say(f"            {line}", style)


def _name(one: Check) -> str:
    """A check in the user's language."""
    return {
        "after": _("after"),
        "unchanged": _("unchanged"),
        "no-match": _("no match"),
        "apply": _("apply"),
        "idempotent": _("idempotent"),
        "revert": _("revert"),
        "compile": _("compiles"),
        "crlf": _("CR LF"),
        "bom": _("byte-order mark"),
        "tabs": _("tabs"),
        "no-final-newline": _("no final newline"),
    }[one.name]


def _print_sum(results: Sequence[dict[str, Any]]) -> None:
    """What holds, and in the same line what failed otherwise: the sum has to say what the exit code says."""
    examples = [example for result in results for example in result["examples"]]
    held = sum(example["ok"] for example in examples)
    broken = sum(result["error"] is not None for result in results)
    bare = sum(result["error"] is None and not result["examples"] for result in results)
    parts = []
    if examples:
        text = ngettext("{held} of {n} example holds", "{held} of {n} examples hold", len(examples))
        parts.append(text.format(held=held, n=len(examples)))
    if bare:
        parts.append(ngettext("{n} recipe has no example", "{n} recipes have no example", bare).format(n=bare))
    if broken:
        parts.append(ngettext("{n} recipe could not be read", "{n} recipes could not be read", broken).format(n=broken))
    say("; ".join(parts), "good" if all(result["ok"] for result in results) else "bad")
