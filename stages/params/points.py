"""Mismatch points: what is not EXACT, of all layers, named, in order of weight: P1, P2, …"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from locales import _, ngettext
from stages.card.credentials import looks_secret
from stages.params.compare import CONFLICT, EXACT, MISSING_SIDE, Item
from stages.params.mapping import DTYPE, PADDING, SIDES, STRUCTURE, SWITCH, VALUE
from stages.params.paths import Reading

LAYERS = ("config", "modules", "structure", "weights")
NEVER_WAIVED = (SWITCH, STRUCTURE)
NOT_COMPUTED = "not computed"
_KIND_OF = {
    "MISSING_SIDE": STRUCTURE,
    "SHAPE_DIFF": STRUCTURE,
    "DTYPE_DIFF": DTYPE,
    "QUANTIZED": DTYPE,
    "EXACT_UP_TO_PADDING": PADDING,
}
_LONGEST = 2000  # characters of a value in a report


@dataclass(frozen=True)
class Point:
    """``name`` is what a waiver names; ``train`` and ``infer`` are JSON, null where a side has nothing."""

    name: str
    layer: str
    kind: str
    result: str
    side: str | None
    why: str
    train: Any = None
    infer: Any = None
    module: str | None = None

    @property
    def waivable(self) -> bool:
        """A switch, a missing module, a size: never; nor that the config or the structure was not compared at all."""
        return self.kind not in NEVER_WAIVED

    @property
    def fingerprint(self) -> list[Any]:
        """A waiver holds for this, not for whatever the name may stand for later."""
        return [self.result, self.side, self.train, self.infer]

    def as_json(self, number: int) -> dict[str, Any]:
        return {
            "id": f"P{number}",
            "name": self.name,
            "layer": self.layer,
            "kind": self.kind,
            "result": self.result,
            "side": self.side,
            "module": self.module,
            "train": self.train,
            "infer": self.infer,
            "why": self.why,
            "waivable": self.waivable,
        }


def weight(point: Point) -> tuple[int, int]:
    """Less is heavier: switches, then what is missing, sizes, values, weights, dtypes, padding."""
    kinds = {SWITCH: 0, STRUCTURE: 1, VALUE: 3, DTYPE: 5, PADDING: 6}
    missing = point.result in (MISSING_SIDE, NOT_COMPUTED)
    later = point.layer == "weights" and point.kind == VALUE
    return kinds[point.kind] + later, 0 if missing or point.result == CONFLICT else 1


def ordered(points: Iterable[Point]) -> list[Point]:
    return sorted(points, key=weight)


def item_json(item: Item) -> dict[str, Any]:
    return {
        "name": item.name,
        "layer": item.layer,
        "result": item.result,
        "kind": item.kind,
        "module": item.module,
        "side": item.side,
        **{side: reading_json(item.of(side)) for side in SIDES},
        "why": item.why,
    }


def reading_json(reading: Reading) -> dict[str, Any] | None:
    if reading.absent and not reading.undeclared:
        return None
    return {
        "path": reading.path,
        "value": tamed(reading.value),
        "assumed": reading.assumed,
        "default_of": reading.default_of,
        "conflict": {path: tamed(value) for path, value in reading.conflict},
        "undeclared": {path: tamed(value) for path, value in reading.undeclared},
    }


def tamed(value: Any) -> Any:
    """A value that may stand in a report: no credential, nothing endless."""
    if isinstance(value, str):
        return _("(hidden: it looks like a credential)") if looks_secret(value) else value[:_LONGEST]
    if isinstance(value, dict):
        return {str(key): tamed(item) for key, item in value.items()}
    return [tamed(item) for item in value] if isinstance(value, list) else value


def of_items(items: Iterable[Mapping[str, Any]]) -> Iterator[Point]:
    """Points of the config and module layers, from their result file."""
    for item in items:
        if item["result"] != EXACT:
            yield Point(
                item["name"],
                item["layer"],
                item["kind"],
                item["result"],
                item["side"],
                item["why"],
                item["train"],
                item["infer"],
                item["module"],
            )


def of_findings(layer: str, findings: Iterable[Mapping[str, Any]]) -> Iterator[Point]:
    """Points of the structure and weight layers: what repeats in every layer of the model is one point."""
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for finding in findings:
        verdict = str(finding["verdict"])
        if verdict != EXACT:
            side = "train" if finding.get("train") is None else "infer" if finding.get("infer") is None else ""
            pattern = re.sub(r"(?<=\.)\d+(?=\.|$)", "*", str(finding["name"]))
            groups.setdefault((verdict, side, pattern), []).append(finding)
    for (verdict, side, pattern), found in groups.items():
        first = found[0]
        count = ngettext("{count} tensor", "{count} tensors", len(found)).format(count=len(found))
        why = "; ".join(part for part in (count, str(first.get("note") or "")) if part)
        name = str(first["name"]) if len(found) == 1 else pattern
        kind = _KIND_OF.get(verdict, VALUE)
        yield Point(name, layer, kind, verdict, side or None, why, _view(first, "train"), _view(first, "infer"))


def _view(finding: Mapping[str, Any], side: str) -> Any:
    view = finding.get(side)
    return {key: view.get(key) for key in ("dtype", "shape")} if isinstance(view, Mapping) else None


def not_computed(layer: str, why: str) -> Point:
    kind = STRUCTURE if layer in ("config", "structure") else VALUE
    return Point(f"{layer}-layer", layer, kind, NOT_COMPUTED, None, why)
