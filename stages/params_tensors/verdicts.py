"""The words of the result, and what is known of one pair of tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stages.params_tensors.tensors import View

EXACT = "EXACT"
EXACT_UP_TO_PADDING = "EXACT_UP_TO_PADDING"
DIFF = "DIFF"
SHAPE_DIFF = "SHAPE_DIFF"
DTYPE_DIFF = "DTYPE_DIFF"
QUANTIZED = "QUANTIZED"
MISSING_SIDE = "MISSING_SIDE"
UNSUPPORTED = "UNSUPPORTED"
WORDS = (MISSING_SIDE, SHAPE_DIFF, DTYPE_DIFF, QUANTIZED, DIFF, UNSUPPORTED, EXACT_UP_TO_PADDING, EXACT)
"""From the heaviest to none."""

ALIGNED, PADDED, MISMATCH, NOTHING = "EXACT", "EXACT_UP_TO_PADDING", "MISMATCH", "NOTHING_COMPARED"


@dataclass(frozen=True)
class Finding:
    """One plain name: its verdict, how both sides hold it, and why. ``difference`` is what was measured, None when nothing was."""

    name: str
    verdict: str
    train: View | None
    infer: View | None
    note: str = ""
    difference: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "verdict": self.verdict,
            "train": _view_json(self.train),
            "infer": _view_json(self.infer),
            "note": self.note,
            "difference": dict(self.difference) if self.difference is not None else None,
        }


def _view_json(view: View | None) -> dict[str, Any] | None:
    if view is None:
        return None
    return {
        "dtype": view.dtype,
        "shape": list(view.shape),
        "kind": view.kind or None,
        "stored_as": list(view.stored_as)[:16],
    }


@dataclass(frozen=True)
class Pair:
    """Two views of one name that are to be compared. ``rows`` is how many rows of the first dimension count (None: all), and
    ``scale`` the tensor that one side has to be multiplied with. ``verdict`` is what shape and dtype alone say, EXACT where
    they agree."""

    name: str
    train: View
    infer: View
    verdict: str
    note: str = ""
    rows: int | None = None
    scale: View | None = None


@dataclass(frozen=True)
class Pairing:
    """``missing`` are findings of names that one side lacks; ``ignored`` by side a name with its reason."""

    pairs: tuple[Pair, ...]
    missing: tuple[Finding, ...]
    ignored: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def overall(findings: Iterable[Finding], whole: bool) -> str:
    """One word for all of it. ``whole``: neither side lacks a file, an index entry or a rank."""
    words = {finding.verdict for finding in findings}
    if not words - {MISSING_SIDE, UNSUPPORTED}:
        return NOTHING
    if not whole or words - {EXACT, EXACT_UP_TO_PADDING}:
        return MISMATCH
    return PADDED if EXACT_UP_TO_PADDING in words else ALIGNED
