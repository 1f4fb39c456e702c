"""What the capture made in its own folder and must not outlive it: configs that load tensors, sources of stub rounds, payloads.

Dumps, logs and reports are what the capture was for: they stay.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
    if not named or not named.startswith("/") or not os.path.isdir(named):
        return []
    root = Path(named)
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
