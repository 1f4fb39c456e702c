"""``probepatch identify CHECKOUT``: framework, version, commit, dirty or not, and the recipes that fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from packaging.specifiers import Specifier, SpecifierSet
from packaging.version import Version

from codemods.gitrepo import GitFacts, git_facts
from commands.arguments import recipe_file_option
from commands.output import json_option, print_json, say, table, warn
from commands.planning import Scene, Wish, look
from commands.recipes import print_fits, recipe_as_json
from commands.target import as_json as tree_as_json
from commands.target import checkout_options, other_copy
from locales import _, ngettext


@click.command
@checkout_options
@recipe_file_option
@json_option
def command(
    checkout: Path | None, package: str | None, python: str | None, files: tuple[Path, ...], as_json: bool
) -> int:
    """Exit code 1 when the declared version and the tree's contents disagree."""
    scene = look(Wish(checkout, package, python, files=files))
    facts = git_facts(scene.tree.git)
    notes = (*scene.tree.notes, *other_copy(scene.tree, python))
    if as_json:
        print_json(identity_as_json(scene, facts, notes))
    else:
        print_identity(scene, facts)
        for note in notes:
            warn(note)
    return 1 if scene.identity.agree is False else 0


def identity_as_json(scene: Scene, facts: GitFacts, notes: tuple[str, ...]) -> dict[str, Any]:
    """Unknown is null."""
    identity = scene.identity
    return {
        "checkout": tree_as_json(scene.tree),
        "framework": identity.framework.name if identity.framework else None,
        "version": {
            "declared": str(identity.declared) if identity.declared is not None else None,
            "declared_in": identity.declared_in or None,
            "probed": str(identity.probed) or None,
            "agree": identity.agree,
        },
        "commit": facts.commit,
        "branch": facts.branch,
        "dirty": facts.dirty,
        "recipes": [recipe_as_json(fit.recipe) | {"fits": fit.fits, "reason": fit.reason} for fit in identity.fits],
        "notes": list(notes),
    }


def print_identity(scene: Scene, facts: GitFacts) -> None:
    """A short table of facts, then the recipes."""
    identity, unknown = scene.identity, _("unknown")
    declared = f"{identity.declared} ({identity.declared_in})" if identity.declared is not None else unknown
    rows = [
        (_("checkout"), str(scene.tree.root)),
        (_("framework"), identity.framework.name if identity.framework else unknown),
        (_("declared version"), declared),
        (_("its contents say"), tightest(identity.probed) or unknown),
        (_("commit"), _commit(facts)),
    ]
    table(("", ""), rows, "cyan")
    if identity.agree is False:
        say(_("the declared version and the contents of the tree disagree; recipes are chosen by contents"), "bad")
    if identity.fits:
        print_fits([(fit.recipe, fit.fits, fit.reason) for fit in identity.fits])


def tightest(probed: SpecifierSet) -> str:
    """The tightest bounds of many: ``>=0.7,>=0.8,<0.10`` is ``>=0.8,<0.10``."""
    bounds: dict[str, Specifier] = {}
    for one in probed:
        known = bounds.get(one.operator)
        tighter = known is None or (Version(one.version) > Version(known.version)) == one.operator.startswith(">")
        bounds[one.operator] = one if tighter or known is None else known
    return ",".join(str(bounds[operator]) for operator in sorted(bounds, reverse=True))


def _commit(facts: GitFacts) -> str:
    if facts.commit is None:
        return _("unknown")
    place = _("{commit} on {branch}").format(commit=facts.commit[:12], branch=facts.branch or _("no branch"))
    if not facts.dirty:
        return _("{place}, clean").format(place=place)
    changed = ngettext("{place}, {count} file changed", "{place}, {count} files changed", facts.dirty)
    return changed.format(place=place, count=facts.dirty)
