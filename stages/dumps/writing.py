"""Files that a stage leaves in the capture's folder: whole or not at all, over its own earlier ones only, never in a checkout."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from codemods.errors import RefusedError, UsageError
from codemods.gitrepo import find_git_dir
from locales import _
from patch_ledger.tree import DOT_FOLDER

_HEAD = 4096  # bytes in which a file says what it is
_LEFT = 3600.0  # seconds after which nobody writes at a temporary file any more


def expect_own_place(folder: Path, checkouts: Iterable[str] = ()) -> None:
    """Only the ledger writes into a checkout: one that is named, or that has a ledger. Raises UsageError."""
    real = Path(os.path.realpath(folder))
    known = {os.path.realpath(one) for one in checkouts}
    repo = find_git_dir(real)
    if repo is not None and os.path.isdir(repo.git_dir / "probepatch"):
        known.add(str(repo.top))
    for place in (real, *real.parents):
        if str(place) in known or (os.path.isdir(place / DOT_FOLDER) and place != Path.home()):
            raise UsageError(
                _("{path} lies in a checkout, and is not written to").format(path=folder),
                why=_("{place} holds code that is put back byte for byte").format(place=place),
                todo=_("name a folder of its own, with --out or `probepatch task set artifacts=/…`"),
            )


def expect_free(path: Path, mark: str) -> None:
    """A file that is there has to be an earlier one of ours: it says ``mark`` at its beginning. Raises RefusedError."""
    if not os.path.lexists(path):
        return
    try:
        head = b""
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                head = file.read(_HEAD)
        if mark.encode() in head or (head == b"" and path.is_file() and not path.is_symlink()):
            return
        why = None
    except OSError as error:
        why = error.strerror
    raise RefusedError(
        _("{path} is there already, and is not what probepatch wrote").format(path=path),
        why=why,
        todo=_("move it away, or name another folder"),
    )


def write_json(path: Path, data: Any) -> None:
    """Strict JSON. Raises RefusedError."""
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def make_folder(path: Path) -> None:
    """Raises RefusedError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RefusedError(_("{path} cannot be made").format(path=path), why=error.strerror) from error


def write_text(path: Path, text: str) -> None:
    """Beside it, then renamed: a reader sees the old file or the new one. What a killed writer left beside it long ago goes away.
    Raises RefusedError."""
    try:
        for left in path.parent.glob(f".{path.name}-*"):
            if time.time() - left.lstat().st_mtime > _LEFT:
                left.unlink(missing_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    except OSError as error:
        raise RefusedError(_("{path} cannot be written").format(path=path), why=error.strerror) from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(name)
        raise RefusedError(_("{path} cannot be written").format(path=path), why=error.strerror) from error
