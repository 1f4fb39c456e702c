"""The versions that a matrix is made of: tags of a repository or wheels, with the framework version that each one is."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.version import InvalidVersion, Version

from authoring.trees import GitTree, TreeError, WheelTree, git_tree, wheel_tree
from codemods.catalogue import Framework, frameworks, load_framework
from codemods.errors import ProbePatchError, UsageError
from codemods.gitrepo import GitDir, GitMissing, tags
from codemods.identify import _declared, identify_as
from codemods.recipe import Recipe
from codemods.target import Bases
from locales import _

DECLARED, NAMED, CONTENTS, UNKNOWN = "declared", "name", "contents", ""
_NOWHERE = Path(os.devnull)  # a tree that is no folder has no metadata beside it
_NUMBER = re.compile(r"v?\d+\.\d.*")

Tree = GitTree | WheelTree


class NoVersionsError(UsageError):
    """Nothing matches what was asked for, or none of it holds the framework."""


class NoPackageError(TreeError):
    """The tree can be read and does not hold the framework's package."""


@dataclass(frozen=True)
class Release:
    """``label`` is the tag, or the version in a wheel's name; ``source`` the ref or the wheel's path. ``tree`` is None where the
    package is not in it or it cannot be read: ``error`` says so. ``told_by``: what ``version`` was told by."""

    label: str
    source: str
    tree: Tree | None = None
    version: Version | None = None
    told_by: str = UNKNOWN
    error: ProbePatchError | None = None

    @property
    def place(self) -> tuple[bool, Version]:
        """Sorts oldest first; those of no known version come last."""
        return self.version is None, self.version or Version("0")


def framework_of(recipes: Sequence[Recipe]) -> Framework:
    """The one framework that the recipes are for: described beside them, or shipped, else known by the edits' paths alone."""
    names = sorted({recipe.framework for recipe in recipes})
    if len(names) > 1:
        raise UsageError(
            _("these recipes are for several frameworks: {names}").format(names=", ".join(names)),
            todo=_("call the command once for each"),
        )
    for folder in dict.fromkeys(recipe.path.parent for recipe in recipes):
        path = folder / "framework.yaml"
        if path.is_file() and (beside := load_framework(path)).name == names[0]:
            return beside
    tops = Counter(place.file.partition("/")[0] for recipe in recipes for edit in recipe.edits for place in edit.places)
    return frameworks().get(names[0]) or Framework(names[0], tops.most_common(1)[0][0], (), ())


def from_tags(repo: GitDir, patterns: Iterable[str], framework: Framework) -> list[Release]:
    """The tags that match one of the globs. Raises TreeError, NoVersionsError."""
    try:
        found = list(dict.fromkeys(tag for pattern in patterns for tag in tags(repo, pattern)))
    except GitMissing as error:
        raise TreeError(_("git cannot list the tags"), where=str(repo.top), why=str(error)) from error
    if not found:
        raise NoVersionsError(_("no tag matches {patterns}").format(patterns=", ".join(patterns)), where=str(repo.top))
    return _sorted([_from_tag(repo, tag, framework) for tag in found], framework)


def _from_tag(repo: GitDir, tag: str, framework: Framework) -> Release:
    ref = f"refs/tags/{tag}"
    bare = Release(tag, ref, version=_named(tag))
    return _opened(bare, framework, lambda: git_tree(repo, ref, framework.package, tag))


def from_wheels(paths: Iterable[Path], framework: Framework) -> list[Release]:
    """Labelled by the version in their names, by the whole name where that is the same for several. Raises NoVersionsError."""
    wheels = {path: path.name.split("-") for path in paths}
    versions = {path: parts[1] if len(parts) >= 5 else path.name for path, parts in wheels.items()}
    labels = {
        path: version if [*versions.values()].count(version) == 1 else path.name for path, version in versions.items()
    }
    return _sorted([_from_wheel(path, labels[path], versions[path], framework) for path in wheels], framework)


def _from_wheel(path: Path, label: str, version: str, framework: Framework) -> Release:
    bare = Release(label, str(path), version=_named(version))
    return _opened(bare, framework, lambda: wheel_tree(path, framework.package, label))


def _opened(bare: Release, framework: Framework, opened: Callable[[], Tree | None]) -> Release:
    """``bare`` has the version that its name says."""
    named = replace(bare, told_by=NAMED if bare.version is not None else UNKNOWN)
    try:
        tree = opened()
        if tree is None:
            what = _("there is no package `{package}`").format(package=framework.package)
            return replace(named, error=NoPackageError(what, where=bare.label))
        version, told_by = told(framework, tree, bare.version)
        return replace(bare, tree=tree, version=version, told_by=told_by)
    except TreeError as error:
        return replace(named, error=error)


def _sorted(found: list[Release], framework: Framework) -> list[Release]:
    if all(release.error is not None for release in found):
        raise NoVersionsError(
            _("none of {count} versions holds the package `{package}`").format(
                count=len(found), package=framework.package
            ),
            details=tuple(
                f"{release.label}: {release.error.why or release.error.what}" for release in found if release.error
            ),
        )
    return sorted(found, key=lambda release: release.place)


def told(framework: Framework, tree: Tree, named: Version | None) -> tuple[Version | None, str]:
    """The version by which edits are chosen, and what it was told by.

    What the tree declares counts where its name says the same; where the two differ, or one is missing, the contents judge as
    they do for a checkout.
    """
    bases = Bases(tree.read)
    declared = _declared(framework, bases, _NOWHERE)[0]
    if named is not None and (declared is None or declared.is_devrelease):
        return named, NAMED
    if declared is not None and declared == named:
        return declared, DECLARED
    identity = identify_as(framework, bases, _NOWHERE)
    if identity.version is not None:
        return identity.version, DECLARED
    if named is not None:
        return named, NAMED
    return identity.nearest, CONTENTS if identity.nearest is not None else UNKNOWN


def _named(name: str) -> Version | None:
    found = _NUMBER.search(name)
    try:
        return Version(found.group()) if found else None
    except InvalidVersion:
        return None
