"""Types of arguments. An empty one is a variable that was not set (``apply "$CHECKOUT"``), and never a wish."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from locales import _

Function = TypeVar("Function", bound=Callable[..., Any])


def text(value: str) -> str:
    """Text that is not empty."""
    if not value:
        raise click.BadParameter(_("it is empty"))
    return value


def file_path(value: str) -> Path:
    """A path that is not empty: ``Path("")`` would be the current folder."""
    return Path(text(value))


base_option = click.option(
    "--base",
    metavar="TREE",
    type=text,
    help=_("a tree that the recipe fits: a folder, a wheel, or a tag of the checkout's repository"),
)
"""Of the commands that try a recipe on another version."""


def recipe_file_option(function: Function) -> Function:
    """``--recipe-file``: a recipe of one's own; a ``framework.yaml`` beside it describes a framework of one's own."""
    help_text = _("a recipe of your own; may be repeated")
    option = click.option("--recipe-file", "files", multiple=True, metavar="FILE", type=file_path, help=help_text)
    return option(function)
