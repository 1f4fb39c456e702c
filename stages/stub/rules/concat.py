"""All tensors along one axis, in the order of the sources: what the ranks of a tensor-parallel group hold."""

from __future__ import annotations

from typing import Any

NEEDS: dict[str, Any] = {"axis": {"type": "integer", "minimum": -8, "maximum": 7}}
MAY: dict[str, Any] = {}
TAKES = None


def apply(torch: Any, tensors: Any, rule: dict[str, Any], rank: int) -> Any:
    axis, first = rule["axis"], tensors[0]
    if not -first.dim() <= axis < first.dim():
        raise ValueError(f"there is no axis {axis} in the shape {list(first.shape)}")
    if len({one.dtype for one in tensors}) > 1:
        raise ValueError("the tensors are of different dtypes")
    try:
        return torch.cat(tensors, dim=axis)
    except RuntimeError as error:
        raise ValueError(f"these shapes do not fit together: {[list(one.shape) for one in tensors]}") from error
