"""The report of stage 5: all layers joined, points numbered by weight, and whether the capture may begin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from locales import _, ngettext
from stages.params.compare import EXACT
from stages.params.layers import Layer
from stages.params.mapping import SIDES, STRUCTURE, SWITCH
from stages.params.points import NOT_COMPUTED, Point, ordered
from stages.params.waivers import holding

FORMAT = "probepatch/param-alignment-report/1"
REPORT, INSTRUCTION = "param_alignment_report.json", "param_alignment_instruction.json"
ALIGNED, WAIVED, MISMATCH = "EXACT", "WAIVED", "MISMATCH"
_TENSORS_OF = {
    "mHC": ("hyper_connection", "hc_", "mhc"),
    "MoE": ("expert", "router", ".gate."),
    "MLA": ("kv_a", "kv_b", "q_a_", "q_b_", "_down_proj", "_up_proj", "compressor"),
    "attention": ("attn", "attention"),
    "MLP": ("mlp", "ffn"),
    "norm": ("norm",),
    "output layer": ("lm_head", "output_layer", "embed"),
}
"""Parts of the names of a module's tensors, for the third of its three elements."""


@dataclass(frozen=True)
class Report:
    """``points`` numbered from 1, each with its waiver or None."""

    layers: tuple[Layer, ...]
    points: tuple[tuple[Point, Mapping[str, Any] | None], ...]

    @property
    def sides(self) -> Mapping[str, Mapping[str, Any]]:
        """What the config layer says of each side's config."""
        return next((one.sides for one in self.layers if one.sides), {})

    @property
    def verdict(self) -> str:
        if not self.points:
            return ALIGNED
        return WAIVED if all(waiver is not None for _point, waiver in self.points) else MISMATCH

    @property
    def open(self) -> list[tuple[str, Point]]:
        return [(f"P{number}", point) for number, (point, waiver) in enumerate(self.points, 1) if waiver is None]

    @property
    def statement(self) -> str:
        """For the card and the handoff."""
        if self.verdict == ALIGNED:
            return _("aligned at parameter level")
        waived = [point.name for point, waiver in self.points if waiver is not None]
        if self.verdict == WAIVED:
            return _("not aligned at parameter level; waived: {names}").format(names=", ".join(waived))
        count = len(self.open)
        first = self.open[0][1].name
        text = ngettext(
            "not aligned at parameter level: {count} open point ({first})",
            "not aligned at parameter level: {count} open points, first {first}",
            count,
        )
        return text.format(count=count, first=first)

    def as_json(self, inputs: Mapping[str, str]) -> dict[str, Any]:
        only = {side: sorted({key for one in self.layers if one.only for key in one.only[side]}) for side in SIDES}
        return {
            "format": FORMAT,
            "verdict": self.verdict,
            "statement": self.statement,
            "layers": {one.name: one.as_json() for one in self.layers},
            "mismatch_points": [
                {**point.as_json(number), "waived": waiver} for number, (point, waiver) in enumerate(self.points, 1)
            ],
            "items": [item for one in self.layers for item in one.items],
            "modules": three_elements(self.layers),
            "train_only_keys": only["train"],
            "infer_only_keys": only["infer"],
            "inputs": dict(inputs),
        }


def join(layers: Iterable[Layer], waivers: Mapping[str, Any]) -> Report:
    """The points of all layers, heaviest first."""
    found = tuple(layers)
    points = ordered(point for one in found for point in one.points)
    return Report(found, tuple((point, holding(point, waivers)) for point in points))


def three_elements(layers: tuple[Layer, ...]) -> dict[str, dict[str, str]]:
    """For each module: its switch, what it consumes, and its shapes in the checkpoint. Equal switches alone are no alignment."""
    by_name = {one.name: one for one in layers}
    items = [item for one in layers for item in one.items if item.get("module")]
    out = {}
    for module in dict.fromkeys(str(item["module"]) for item in items):
        mine = [item for item in items if item["module"] == module]
        consumed = [item for item in mine if item["layer"] == "modules"]
        out[module] = {
            "switch": _worst(item for item in mine if item["kind"] == SWITCH and item["layer"] == "config"),
            "parameters": _worst(item for item in mine if item["kind"] != SWITCH and item["layer"] == "config"),
            "consumed": _worst(consumed),
            "shapes": _shapes(module, by_name["structure"]),
        }
    return out


def _worst(items: Iterable[Mapping[str, Any]]) -> str:
    results = [str(item["result"]) for item in items]
    return next((one for one in results if one != EXACT), EXACT if results else NOT_COMPUTED)


def _shapes(module: str, structure: Layer) -> str:
    if structure.state == NOT_COMPUTED or module not in _TENSORS_OF:
        return NOT_COMPUTED
    parts = _TENSORS_OF[module]
    for point in structure.points:
        if point.kind == STRUCTURE and any(part in point.name for part in parts):
            return point.result
    return EXACT
