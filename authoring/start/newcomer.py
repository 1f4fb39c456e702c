"""A framework that nobody described yet: which package it is, and where its tree states the version."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from authoring.start.signs import ASIDE
from codemods.catalogue import Framework
from codemods.checkout import LAYOUTS, NoFrameworkError
from codemods.identify import Identity, identify_as
from codemods.target import Bases
from locales import _

_VERSION_FILES = (
    "{package}/version.py",
    "{package}/_version.py",
    "{package}/__version__.py",
    "{package}/version/version",
    "{package}/version.txt",
    "{package}/VERSION",
    "{package}/__init__.py",
    "version.txt",
    "VERSION",
    "version.py",
)


@dataclass(frozen=True)
class Newcomer:
    """``version_files`` of ``framework`` holds the one that states the version, or none."""

    framework: Framework
    identity: Identity


def find_package(folder: Path) -> str:
    """The name of the package that ``folder`` is, lies in, or holds: of several the one with the most Python files.

    Raises NoFrameworkError.
    """
    real = folder.resolve()
    if _is_package(real):
        while _is_package(real.parent):
            real = real.parent
        return real.name
    for layout in LAYOUTS:
        packages = [path for path in sorted((real / layout).glob("*")) if _is_package(path) and _may_be(path)]
        if packages:
            return max(packages, key=lambda path: sum(1 for _file in path.rglob("*.py"))).name
    unpacked = next(iter(sorted(real.glob("*.data/p*lib"))), None)
    raise NoFrameworkError(
        _("no Python package in {path}").format(path=folder),
        why=_("looked for a folder with an __init__.py in it, in src/ and in python/"),
        todo=_("name the folder that holds the package, or the package folder itself")
        if unpacked is None
        else _("an unpacked wheel may hold it in a folder of its own: {path}").format(
            path=folder / unpacked.relative_to(real)
        ),
    )


def meet(package: str, bases: Bases, import_root: Path) -> Newcomer:
    """What can be told of a framework by its package alone."""
    candidates = tuple(name.format(package=package) for name in _VERSION_FILES)
    name = re.sub(r"[^a-z0-9._-]", "-", package.lower()).lstrip("._-")[:60] or "framework"
    identity = identify_as(Framework(name, package, candidates, ()), bases, import_root)
    stated = (identity.declared_in,) if identity.declared_in in candidates else ()
    return Newcomer(Framework(name, package, stated, ()), identity)


def _is_package(folder: Path) -> bool:
    return (folder / "__init__.py").is_file()


def _may_be(folder: Path) -> bool:
    return folder.name.isidentifier() and not ASIDE.search(folder.name)
