"""Files that a stage leaves in the capture's folder: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from codemods.errors import RefusedError
from locales import _


def make_folder(path: Path) -> None:
    """Raises RefusedError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RefusedError(_("{path} cannot be made").format(path=path), why=error.strerror) from error


def write_text(path: Path, text: str) -> None:
    """Beside it, then renamed: a reader sees the old file or the new one. Raises RefusedError."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    except OSError as error:
        raise RefusedError(_("{path} cannot be written").format(path=path), why=error.strerror) from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(name)
        raise RefusedError(_("{path} cannot be written").format(path=path), why=error.strerror) from error
