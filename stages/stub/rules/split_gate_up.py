"""The gate or the up half of a fused projection's output: ``contiguous`` all of gate, then all of up; ``interleaved`` by turns."""

from __future__ import annotations

from typing import Any

NEEDS: dict[str, Any] = {"part": {"enum": ["gate", "up"]}, "layout": {"enum": ["contiguous", "interleaved"]}}
MAY: dict[str, Any] = {"axis": {"type": "integer", "minimum": -8, "maximum": 7}}


def apply(torch: Any, tensor: Any, rule: dict[str, Any], rank: int) -> Any:
    axis = rule.get("axis", -1)
    if not -tensor.dim() <= axis < tensor.dim() or tensor.shape[axis] % 2:
        raise ValueError(f"axis {axis} of the shape {list(tensor.shape)} has no two halves")
    axis %= tensor.dim()
    half, number = tensor.shape[axis] // 2, ("gate", "up").index(rule["part"])
    if rule["layout"] == "contiguous":
        return tensor.narrow(axis, number * half, half)
    before, after = list(tensor.shape[:axis]), list(tensor.shape[axis + 1 :])
    return tensor.reshape([*before, half, 2, *after]).select(axis + 1, number)
