"""What the commands for recipe authors share: a recipe by id or file, the checkout's base, and the tree it was written for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.version import InvalidVersion, Version

from authoring.drift.view import View
from authoring.trees import FolderTree, SourceTree, TreeError, WheelTree, git_tree, open_repository
from codemods.catalogue import catalogue
from codemods.checkout import Tree, open_tree
from codemods.errors import UsageError
from codemods.gitrepo import GitMissing, renamed, tags
from codemods.recipe import Recipe
from codemods.recipe_reader import RECIPES, load_recipe
from commands.names import unknown
from commands.planning import Scene, Wish, look
from locales import _
from patch_ledger.merge import interrupted, read_base
from patch_ledger.store import open_ledger


@dataclass(frozen=True)
class OnCheckout:
    """A recipe with the tree to try it on (the user's files without our edits) and, where there is one, a tree it fits."""

    recipe: Recipe
    scene: Scene
    view: View
    version: Version | None
    was: View | None
    was_label: str


@dataclass(frozen=True)
class Pristine:
    """The checkout without our edits: files that only our edits added are not there. ``base`` gives a file's bytes by its path
    from the import root."""

    folder: FolderTree
    base: Callable[[str], bytes | None]

    @property
    def label(self) -> str:
        return self.folder.label

    def files(self) -> tuple[str, ...]:
        return self.folder.files()

    def read(self, file: str) -> bytes | None:
        return self.base(file)

    def key(self, file: str) -> str | None:
        return self.folder.key(file)


def pristine(tree: Tree) -> Pristine:
    """The checkout ``tree`` without our edits, for reading only: of a file whose edits somebody changed, the recorded original.

    Raises RefusedError where a transaction has to be repaired first.
    """
    folder, ledger = FolderTree(tree.import_root, tree.given), open_ledger(tree)
    if ledger.pending is not None:
        raise interrupted(ledger)
    ours = ledger.active()

    def read(file: str) -> bytes | None:
        path = tree.path(file)
        return read_base(ledger, path).base if path in ours else folder.read(file)

    return Pristine(folder, read)


def named_recipe(name: str) -> Recipe:
    """A shipped recipe by its id, or one by its file. Raises UsageError, RecipeError."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        if not path.is_file():
            raise UsageError(_("there is no file {path}").format(path=path))
        return load_recipe(path)
    known = {heading.id: heading.path for heading in catalogue()}
    if name not in known:
        raise unknown(_("there is no recipe `{name}`").format(name=name), name, known)
    return load_recipe(known[name])


def on_checkout(name: str, checkout: Path, base: str | None) -> OnCheckout:
    """Everything that doctor and port work on. Writes nothing."""
    recipe = named_recipe(name)
    shipped = recipe.path.resolve().is_relative_to(RECIPES)
    scene = look(Wish(checkout, None, None, files=() if shipped else (recipe.path,)))
    identity = scene.identity
    version = identity.declared if identity.declared is not None else identity.nearest
    tree = Pristine(FolderTree(scene.tree.import_root, str(checkout)), scene.bases.read)
    older = _base(base, recipe, scene, version)
    return OnCheckout(
        recipe,
        scene,
        View(tree, _renames(scene)),
        version,
        View(older) if older is not None else None,
        older.label if older else "",
    )


def _renames(scene: Scene) -> Callable[[str], tuple[str, str] | None]:
    """Where git says that a file has gone, by paths from the import root; each asked once."""

    @cache
    def ask(file: str) -> tuple[str, str] | None:
        repo, head = scene.tree.git, f"{scene.tree.prefix}/" if scene.tree.prefix else ""
        found = renamed(repo, scene.tree.path(file)) if repo is not None else None
        return (found[0].removeprefix(head), found[1]) if found is not None and found[0].startswith(head) else None

    return ask


def _base(base: str | None, recipe: Recipe, scene: Scene, version: Version | None) -> SourceTree | None:
    package = scene.tree.packages[0] if scene.tree.packages else recipe.framework
    if base is None:
        return _tagged(recipe, scene, package, version)
    path = Path(base)
    if path.is_dir():
        return FolderTree(open_tree(path, [package]).import_root, base)
    if path.is_file():
        return _holding(WheelTree(path, path.name), package)
    if scene.tree.git is not None:
        with suppress(TreeError):
            if (found := git_tree(scene.tree.git, base, package)) is not None:
                return found
    raise UsageError(
        _("--base {base}: no folder, no wheel, and no tag of the checkout's repository").format(base=base),
        todo=_("unpack the version that the recipe fits, or give its wheel"),
    )


def _holding(tree: SourceTree, package: str) -> SourceTree:
    """The tree, when it can be read and holds the package. Raises UsageError."""
    try:
        if any(file.startswith(f"{package}/") for file in tree.files()):
            return tree
        why = _("it does not hold the package `{package}`").format(package=package)
    except TreeError as error:
        why = error.why or error.what
    raise UsageError(_("--base {base} cannot be compared with").format(base=tree.label), why=why)


def _tagged(recipe: Recipe, scene: Scene, package: str, version: Version | None) -> SourceTree | None:
    """The newest version on which the recipe was tried and that the checkout's repository has a tag for."""
    if scene.tree.git is None:
        return None
    try:
        known = {_plain(tag): tag for tag in tags(scene.tree.git, "*")}
    except GitMissing:
        return None
    tried = sorted({Version(text) for text in recipe.verified}, reverse=True)
    earlier = [one for one in tried if version is None or one <= version] or tried
    for one in earlier:
        if str(one) in known and one != version:
            return git_tree(open_repository(scene.tree.git.top), known[str(one)], package)
    return None


def _plain(tag: str) -> str:
    try:
        return str(Version(tag))
    except InvalidVersion:
        return tag
