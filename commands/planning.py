"""From a checkout and a wish to a checked plan: identify, choose, plan on the base, merge with the ledger, compile."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from codemods.catalogue import Framework, frameworks, load_framework
from codemods.checkout import NoFrameworkError, Tree, python_files
from codemods.errors import FindingError, ProbePatchError
from codemods.identify import Chosen, Fit, Identity, choose, identify, identify_as
from codemods.plan import Plan
from codemods.recipe import Recipe
from codemods.recipe_reader import load_recipe
from codemods.target import Bases
from commands.arguments import recipe_file_option, text
from commands.names import nearest, unknown
from commands.recorded import where_recorded
from commands.target import checkout_options, find_checkout, other_copy
from locales import _
from patch_ledger.merge import BaseView, interrupted, merge, read_base
from patch_ledger.store import Ledger, open_ledger

Function = TypeVar("Function", bound=Callable[..., Any])


class NotAFileError(FindingError):
    """Something else stands where a source file or a version file is expected."""


@dataclass(frozen=True)
class Wish:
    """What the user asked for on a planning command's line."""

    checkout: Path | None
    package: str | None
    python: str | None
    ids: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    side: str | None = None
    settings: tuple[str, ...] = ()


def planning_options(function: Function) -> Function:
    """The options that diff and apply share; together they are a :class:`Wish`."""
    for decorate in (
        click.option(
            "--set", "settings", multiple=True, metavar="NAME=VALUE", type=text, help=_("a parameter's value")
        ),
        click.option("--side", type=click.Choice(["train", "infer"]), help=_("only recipes of this side")),
        recipe_file_option,
        click.option(
            "--recipe", "ids", multiple=True, metavar="ID", type=text, help=_("a shipped recipe; may be repeated")
        ),
        checkout_options,
    ):
        function = decorate(function)
    return function


@dataclass(frozen=True)
class Scene:
    """A checkout with what is known of it: its ledger, what framework it is, and the recipes given by file."""

    tree: Tree
    ledger: Ledger
    identity: Identity
    files: tuple[Recipe, ...]
    bases: Bases
    views: Mapping[str, BaseView]


@dataclass(frozen=True)
class Prepared:
    """A plan that was checked, and the recipes it comes from."""

    scene: Scene
    chosen: Chosen
    plan: Plan


def find_tree(wish: Wish) -> Tree:
    """The checkout; with recipe files of one's own any folder may be one."""
    packages = [framework.package for framework in _frameworks_beside(wish.files).values()]
    packages += [package for path in wish.files if (package := _package(load_recipe(path)))]
    tree = find_checkout(wish.checkout, wish.package, wish.python, packages, any_folder=bool(wish.files))
    return where_recorded(tree, to_plan=True)


def look(wish: Wish) -> Scene:
    """Find the checkout and tell what it is. Writes nothing."""
    tree = find_tree(wish)
    own = _frameworks_beside(wish.files)
    recipes = tuple(load_recipe(path) for path in wish.files)
    ledger = open_ledger(tree)
    if ledger.pending is not None:
        raise interrupted(ledger)

    views: dict[str, BaseView] = {}

    def read(path: str) -> bytes | None:
        _expect_file(tree.root, path)
        views[path] = read_base(ledger, path)
        return views[path].base

    bases = Bases(read, tree.prefix, lambda: python_files(tree.import_root))
    ours = [framework for framework in own.values() if framework.package in tree.packages]
    if not ours:
        return Scene(tree, ledger, identify(bases, tree.import_root, tree.packages), recipes, bases, views)
    identity = identify_as(ours[0], bases, tree.import_root)
    fits = tuple(_fit(identity, recipe) for recipe in recipes)
    return Scene(tree, ledger, replace(identity, fits=fits), recipes, bases, views)


def _expect_file(root: Path, path: str) -> None:
    """A directory or a pipe in a source file's place is a fact of the tree; all else is told by those who read it."""
    try:
        mode = os.stat(root / path).st_mode
    except (OSError, ValueError):
        return
    if not stat.S_ISREG(mode):
        reason = _("it is a directory") if stat.S_ISDIR(mode) else _("it is a pipe, a socket or a device")
        raise NotAFileError(_("{path} is not a regular file").format(path=path), where=path, why=reason)


def _frameworks_beside(files: Sequence[Path]) -> Mapping[str, Framework]:
    """The frameworks described beside recipe files, by name."""
    folders = dict.fromkeys(path.parent for path in files)
    found = [load_framework(folder / "framework.yaml") for folder in folders if (folder / "framework.yaml").is_file()]
    return {framework.name: framework for framework in found}


def _package(recipe: Recipe) -> str:
    """The package that a recipe changes: its framework's, where that is described; else the one that most of its edits are in."""
    beside = _frameworks_beside([recipe.path]).get(recipe.framework)
    known = beside if beside is not None else frameworks().get(recipe.framework)
    return known.package if known is not None else recipe.top


def _expect_package(tree: Tree, recipe: Recipe) -> None:
    """Raises NoFrameworkError when nothing that the recipe changes can be in this tree."""
    package = _package(recipe)
    if not package or (tree.import_root / package).exists() or (tree.import_root / f"{package}.py").exists():
        return
    raise NoFrameworkError(
        _("there is no `{package}` in {folder}").format(package=package, folder=tree.import_root),
        where=str(recipe.path),
        why=_("the recipe `{name}` changes that package; looked for it there, in src/ and in python/").format(
            name=recipe.id
        ),
        todo=_("name the folder that holds `{package}/`").format(package=package),
    )


def _fit(identity: Identity, recipe: Recipe) -> Fit:
    try:
        choose(identity, files=[recipe])
    except ProbePatchError as error:
        return Fit(recipe, False, error.why or error.what)
    return Fit(recipe, True, _("its versions are {range}").format(range=recipe.versions))


def prepare(wish: Wish) -> Prepared:
    """The plan for a wish, with every check made. Writes nothing."""
    scene = look(wish)
    try:
        return _plan(wish, scene)
    except ProbePatchError:
        scene.ledger.still_current()  # beside another run a plan fails for what that run has done
        raise


def _plan(wish: Wish, scene: Scene) -> Prepared:
    from codemods.compiling import check
    from codemods.planner import plan_edits
    from codemods.settings import digest_with, parse_settings

    known = [fit.recipe.id for fit in scene.identity.fits]
    for name in wish.ids:
        if name not in known and nearest(name, known):
            raise unknown(_("there is no recipe `{name}`").format(name=name), name, known)
    applied = {edit.recipe for entry in scene.ledger.active().values() for edit in entry.edits}
    chosen = choose(scene.identity, wish.side, wish.ids, scene.files, applied)
    for recipe in scene.files:
        _expect_package(scene.tree, recipe)
    values = parse_settings(wish.settings, chosen.recipes)
    planned = plan_edits(chosen.recipes, scene.bases, version=scene.identity.nearest, values=values)
    digests = {recipe.id: digest_with(recipe, values) for recipe in chosen.recipes}
    plan = merge(scene.ledger, scene.views, planned, digests)
    verdicts = check([(f.path, f.base, f.after) for f in plan.files if f.changes and f.after is not None], wish.python)
    notes = (
        *scene.tree.notes,
        *other_copy(scene.tree, wish.python),
        *chosen.notes,
        *plan.notes,
        *(note for recipe in chosen.recipes for note in recipe.notes),
    )
    files = tuple(replace(file, compiled=verdicts.get(file.path, file.compiled)) for file in plan.files)
    return Prepared(scene, chosen, replace(plan, files=files, notes=tuple(dict.fromkeys(notes))))
