"""``probepatch diff CHECKOUT``: what apply would write. ``--patch`` prints it for `git apply`. Writes nothing."""

from __future__ import annotations

import sys
from typing import Any

import click

from codemods.errors import UsageError
from commands.output import json_option, print_json, say, warn
from commands.planning import Prepared, Wish, planning_options, prepare
from commands.preview import edit_key, file_as_json, line_counts, plan_patch, print_plan
from commands.target import as_json as tree_as_json
from locales import _, ngettext


@click.command
@planning_options
@click.option("--patch", is_flag=True, help=_("print a patch for `git apply`, byte for byte"))
@json_option
def command(patch: bool, as_json: bool, **options: Any) -> None:
    """The command."""
    if patch and as_json:
        raise UsageError(_("--patch and --json exclude each other"), todo=_("run it once with each"))
    prepared = prepare(Wish(**options))
    if as_json:
        print_json(plan_as_json(prepared))
        return
    if patch:
        sys.stdout.buffer.write(plan_patch(prepared.plan, prepared.scene.tree.root))
    else:
        print_plan(prepared.plan, known_edits(prepared))
        print_summary(prepared, _("nothing was written; `probepatch apply` does it"))
    print_notes(prepared)


def print_notes(prepared: Prepared) -> None:
    """What the user should know before a change; nothing when there is none."""
    for note in prepared.plan.notes if prepared.plan.changed else ():
        warn(note)


def known_edits(prepared: Prepared) -> dict[str, frozenset[str]]:
    """The edits that stand in the ledger, by path."""
    entries = prepared.scene.ledger.active()
    return {path: frozenset(edit_key(edit) for edit in entry.edits) for path, entry in entries.items()}


def plan_as_json(prepared: Prepared) -> dict[str, Any]:
    """The plan for programs."""
    known = known_edits(prepared)
    plan = prepared.plan
    return {
        "checkout": tree_as_json(prepared.scene.tree),
        "recipes": [{"id": name, "digest": digest} for name, digest in plan.recipes.items()],
        "changes": bool(plan.changed),
        "files": [file_as_json(file, known.get(file.path, frozenset())) for file in plan.files],
        "notes": list(plan.notes),
    }


def print_summary(prepared: Prepared, closing: str) -> None:
    """One line of counts, and what comes next."""
    plan = prepared.plan
    names = ", ".join(plan.recipes)
    if not plan.changed:
        say(_("nothing to do: {recipes} is applied already").format(recipes=names), "good")
        return
    edits = sum(len(file.edits) for file in plan.changed)
    added, removed = (sum(n) for n in zip(*(line_counts(file) for file in plan.changed), strict=True))
    files = ngettext("{n} file", "{n} files", len(plan.changed)).format(n=len(plan.changed))
    count = ngettext("{n} edit", "{n} edits", edits).format(n=edits)
    say(f"{names}: {files}, {count}, +{added} -{removed}; {closing}", "head")
