"""What the capture made in its own folder and must not outlive it: configs that load tensors, sources of stub rounds, payloads.

Dumps, logs and reports are what the capture was for: they stay.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from codemods.errors import RefusedError, UsageError
from locales import _
from stages.card.card import Card

_LARGEST = 1 << 20  # bytes of a config


@dataclass(frozen=True)
class Left:
    """``what``: stub-source, load-config, or payload."""

    path: Path
    what: str

    def as_json(self) -> dict[str, str]:
        return {"path": str(self.path), "what": self.what}


def left_behind(card: Card) -> list[Left]:
    """Empty where the card names no artefact root, or it is not there."""
    named = card.fact("artifacts")
    root = Path(named) if named else None
    if root is None or not root.is_dir():
        return []
    return [*_stubs(root), *_configs(root), *_payloads(root)]


def _stubs(root: Path) -> Iterator[Left]:
    for path in sorted(root.glob("stub_source_round*")):
        yield Left(path, "stub-source")


def _configs(root: Path) -> Iterator[Left]:
    for path in sorted(root.glob("msprobe/*.json")):
        if _loads(path):
            yield Left(path, "load-config")


def _payloads(root: Path) -> Iterator[Left]:
    for pattern in ("launch/probepatch_*.py", "launch/__pycache__/probepatch_*.pyc"):
        for path in sorted(root.glob(pattern)):
            yield Left(path, "payload")


def _loads(path: Path) -> bool:
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
            return False
        config = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(config, dict) and "load" in config


def delete(card: Card, left: Iterable[Left], folders: Iterable[Path]) -> list[Path]:
    """Delete what was left behind, and folders that the user named: they have to lie in the artefact root. Raises UsageError
    before anything is deleted, RefusedError."""
    named = card.fact("artifacts")
    root = Path(named).resolve() if named else None
    wanted = [*(one.path for one in left), *folders]
    for path in wanted:
        real = path.parent.resolve() / path.name
        if root is None or root not in real.parents or path.name in ("", ".", ".."):
            raise UsageError(
                _("{path} is not in the artefact root of this task, and is not deleted").format(path=path),
                todo=_("only folders below {root} are this capture's own").format(root=named or _("unknown")),
            )
    for path in wanted:
        _delete(path)
    return wanted


def _delete(path: Path) -> None:
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif os.path.lexists(path):
            path.unlink()
    except OSError as error:
        raise RefusedError(_("{path} cannot be deleted").format(path=path), why=error.strerror) from error
