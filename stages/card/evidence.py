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
MISSING = "missing"


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
        "files": {str(path.absolute()): _digest(card, path) for path in files},
        "facts": {name: card.fact(name) for name in facts},
        "result": dict(result or {}),
    }
    card.note(_("stage {stage}: {summary}").format(stage=stage, summary=summary))


def learn(card: Card, name: str, value: Any) -> None:
    """Put a fact that was unknown and that a stage has found out: what earlier stages found without it still holds."""
    if value is None or card.fact(name) is not None:
        return
    card.put(name, value)
    for found in card.data["stages"].values():
        if name in found["facts"]:
            found["facts"][name] = value


def evidence(card: Card, stage: int) -> Evidence | None:
    found = card.data["stages"].get(str(stage))
    return Evidence(**found) if isinstance(found, dict) else None


def _digest(card: Card, path: Path) -> str:
    """Of a file that has exactly the edits of this task: the digest of what it was without them."""
    current = digest(path)
    if not card.data["edits"] or current == MISSING:
        return current
    from stages.card.edits import without_ours

    return without_ours(card, path, current) or current


def digest(path: Path) -> str:
    """SHA-256 of a file; ``missing`` where there is none, or something else in its place."""
    sha = hashlib.sha256()
    try:
        if not path.is_file():  # reading a pipe would wait for ever
            return MISSING
        with path.open("rb") as file:
            while block := file.read(_CHUNK):
                sha.update(block)
    except (OSError, ValueError):
        return MISSING
    return sha.hexdigest()


def stale(card: Card, found: Evidence) -> str | None:
    """Why evidence does not hold any more: a file or a fact has changed since; None when it holds. Edits of ours in a file are no
    change of it."""
    for path, known in found.files.items():
        current = _digest(card, Path(path))
        if current == MISSING != known:
            return _("{path} is not there any more").format(path=path)
        if current != known:
            return _("{path} has changed since").format(path=path)
    for name, value in found.facts.items():
        if card.fact(name) != value:
            return _("{name} has changed since").format(name=name)
    return None
