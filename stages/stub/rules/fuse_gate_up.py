"""Two tensors, gate and up, made one in the layout of a fused projection's output; the layouts are those of ``split_gate_up``."""

from __future__ import annotations

from typing import Any

NEEDS: dict[str, Any] = {"layout": {"enum": ["contiguous", "interleaved"]}}
MAY: dict[str, Any] = {"axis": {"type": "integer", "minimum": -8, "maximum": 7}}
TAKES = 2


def apply(torch: Any, tensors: Any, rule: dict[str, Any], rank: int) -> Any:
    axis, (gate, up) = rule.get("axis", -1), tensors
    if gate.shape != up.shape or gate.dtype != up.dtype:
        raise ValueError(f"gate is {list(gate.shape)} {gate.dtype}, up is {list(up.shape)} {up.dtype}")
    if not -gate.dim() <= axis < gate.dim():
        raise ValueError(f"there is no axis {axis} in the shape {list(gate.shape)}")
    axis %= gate.dim()
    if rule["layout"] == "contiguous":
        return torch.cat([gate, up], dim=axis)
    whole = list(gate.shape)
    whole[axis] *= 2
    return torch.stack([gate, up], dim=axis + 1).reshape(whole)
