"""The part of a tensor-parallel rank: one of ``size`` equal parts of an axis, the target's own unless ``index`` says another."""

from __future__ import annotations

from typing import Any

NEEDS: dict[str, Any] = {
    "axis": {"type": "integer", "minimum": -8, "maximum": 7},
    "size": {"type": "integer", "minimum": 1, "maximum": 65536},
}
MAY: dict[str, Any] = {"index": {"type": "integer", "minimum": 0, "maximum": 65535}}


def apply(torch: Any, tensor: Any, rule: dict[str, Any], rank: int) -> Any:
    axis, size = rule["axis"], rule["size"]
    index = rule.get("index", rank % size)
    if not -tensor.dim() <= axis < tensor.dim() or tensor.shape[axis] % size:
        raise ValueError(f"axis {axis} of the shape {list(tensor.shape)} has no {size} equal parts")
    if index >= size:
        raise ValueError(f"there is no part {index} of {size}")
    part = tensor.shape[axis] // size
    return tensor.narrow(axis, index * part, part)
