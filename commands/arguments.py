"""Types of arguments. An empty one is a variable that was not set (``apply "$CHECKOUT"``), and never a wish."""

from __future__ import annotations

from pathlib import Path

import click

from locales import _


def text(value: str) -> str:
    """Text that is not empty."""
    if not value:
        raise click.BadParameter(_("it is empty"))
    return value


def file_path(value: str) -> Path:
    """A path that is not empty: ``Path("")`` would be the current folder."""
    return Path(text(value))
