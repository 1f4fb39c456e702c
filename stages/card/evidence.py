"""What a stage found, with the hashes of what it rests on: evidence that can be looked at again, and that can go stale."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from locales import _
from stages.card.card import Card, now

_CHUNK = 1 << 20
DONE, FAILED = "done", "failed"


@dataclass(frozen=True)
class Evidence:
    """``state``: done or failed; ``summary`` one sentence; ``files`` the path and SHA-256 of what the result rests on and of
    what it wrote; ``facts`` the card's facts that were used, with their values; ``result`` what programs want to know."""

    state: str
    summary: str
    at: str
    files: Mapping[str, str]
    facts: Mapping[str, Any]
    result: Mapping[str, Any]


def record(
    card: Card,
    stage: int,
    passed: bool,
    summary: str,
    *,
    files: Iterable[Path] = (),
    facts: Iterable[str] = (),
    result: Mapping[str, Any] | None = None,
) -> None:
    """Leave a stage's evidence in the card, in place of an earlier one."""
    card.data["stages"][str(stage)] = {
        "state": DONE if passed else FAILED,
        "summary": summary,
        "at": now(),
        "files": {str(path.absolute()): digest(path) for path in files},
        "facts": {name: card.fact(name) for name in facts},
        "result": dict(result or {}),
    }
    card.note(_("stage {stage}: {summary}").format(stage=stage, summary=summary))


def evidence(card: Card, stage: int) -> Evidence | None:
    found = card.data["stages"].get(str(stage))
    return Evidence(**found) if isinstance(found, dict) else None


def digest(path: Path) -> str:
    """SHA-256 of a file; ``missing`` where there is none."""
    sha = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_CHUNK):
                sha.update(block)
    except OSError:
        return "missing"
    return sha.hexdigest()


def stale(card: Card, found: Evidence) -> str | None:
    """Why evidence does not hold any more: a file or a fact has changed since; None when it holds."""
    for path, known in found.files.items():
        if digest(Path(path)) != known:
            return _("{path} has changed since").format(path=path)
    for name, value in found.facts.items():
        if card.fact(name) != value:
            return _("{name} has changed since").format(name=name)
    return None
