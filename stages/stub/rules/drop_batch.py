"""An axis of size 1 less, the first unless ``axis`` says another: [1, P, H] becomes [P, H]."""

from __future__ import annotations

from typing import Any

NEEDS: dict[str, Any] = {}
MAY: dict[str, Any] = {"axis": {"type": "integer", "minimum": 0, "maximum": 7}}


def apply(torch: Any, tensor: Any, rule: dict[str, Any], rank: int) -> Any:
    axis = rule.get("axis", 0)
    if axis >= tensor.dim() or tensor.shape[axis] != 1:
        raise ValueError(f"axis {axis} of the shape {list(tensor.shape)} is not of size 1")
    return tensor.squeeze(axis)
