"""A range of one axis: from ``start`` up to ``stop``, both within the axis."""

from __future__ import annotations

from typing import Any

NEEDS: dict[str, Any] = {"axis": {"type": "integer", "minimum": -8, "maximum": 7}}
MAY: dict[str, Any] = {
    "start": {"type": "integer", "minimum": 0, "maximum": 2147483647},
    "stop": {"type": "integer", "minimum": 1, "maximum": 2147483647},
}


def apply(torch: Any, tensor: Any, rule: dict[str, Any], rank: int) -> Any:
    axis = rule["axis"]
    if not -tensor.dim() <= axis < tensor.dim():
        raise ValueError(f"there is no axis {axis} in the shape {list(tensor.shape)}")
    size = tensor.shape[axis]
    start, stop = rule.get("start", 0), rule.get("stop", size)
    if not 0 <= start < stop <= size:
        raise ValueError(f"{start}:{stop} is not within axis {axis}, whose size is {size}")
    return tensor.narrow(axis, start, stop - start)
