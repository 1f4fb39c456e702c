"""An axis of size 1 more, the first unless ``axis`` says another: [P, H] becomes [1, P, H]."""

from __future__ import annotations

from typing import Any

NEEDS: dict[str, Any] = {}
MAY: dict[str, Any] = {"axis": {"type": "integer", "minimum": 0, "maximum": 7}}


def apply(torch: Any, tensor: Any, rule: dict[str, Any], rank: int) -> Any:
    axis = rule.get("axis", 0)
    if axis > tensor.dim():
        raise ValueError(f"there is no place for axis {axis} in the shape {list(tensor.shape)}")
    return tensor.unsqueeze(axis)
