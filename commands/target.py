"""Which checkout a command works on: a folder, or the package that a named interpreter would import."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from codemods.checkout import PACKAGES, NoFrameworkError, Tree, open_tree
from codemods.errors import FindingError, UsageError
from commands.arguments import file_path, text
from locales import _

Function = TypeVar("Function", bound=Callable[..., Any])


def checkout_options(function: Function) -> Function:
    """``CHECKOUT``, or in its place ``--package NAME --python EXE``."""
    for decorate in (
        click.option("--python", metavar="EXE", type=text, help=_("the interpreter that runs the framework")),
        click.option(
            "--package", metavar="NAME", type=text, help=_("in place of CHECKOUT: the copy that --python would import")
        ),
        click.argument("checkout", required=False, type=file_path),
    ):
        function = decorate(function)
    return function


def find_checkout(
    checkout: Path | None,
    package: str | None,
    python: str | None,
    more_packages: Iterable[str] = (),
    *,
    any_folder: bool = True,
) -> Tree:
    """The named checkout. With ``any_folder`` one without a known framework will do and is its own import root."""
    if (checkout is None) == (package is None):
        raise UsageError(_("name one checkout: a folder, or --package with --python"))
    if package is not None:
        if python is None:
            raise UsageError(_("--package needs --python, the interpreter that would import it"))
        from codemods.interpreter import locate_package

        return open_tree(locate_package(package, python), packages=(package,))
    assert checkout is not None
    try:
        return open_tree(checkout, (*PACKAGES, *more_packages))
    except NoFrameworkError:
        if not any_folder:
            raise
        return open_tree(checkout, packages=())


def other_copy(tree: Tree, python: str | None) -> tuple[str, ...]:
    """A note for each package of the checkout that ``python`` would import from elsewhere, or not at all."""
    if python is None:
        return ()
    from codemods.interpreter import locate_package

    notes = []
    for package in tree.packages:
        ours = (tree.import_root / package).resolve()
        try:
            theirs = locate_package(package, python)
        except FindingError as error:
            notes.append(error.what)
            continue
        if theirs != ours:
            note = _("{python} would import {package} from {theirs}, not from this checkout")
            notes.append(note.format(python=python, package=package, theirs=theirs))
    return tuple(notes)


def as_json(tree: Tree) -> dict[str, Any]:
    """The checkout in every JSON answer."""
    return {
        "given": tree.given,
        "root": str(tree.root),
        "import_root": str(tree.import_root),
        "git_dir": str(tree.git_dir) if tree.git_dir else None,
        "packages": list(tree.packages),
    }
