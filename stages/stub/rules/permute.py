"""The axes in another order: ``[1, 0, 2]`` makes (s, b, h) of (b, s, h)."""

from __future__ import annotations

from typing import Any

NEEDS: dict[str, Any] = {
    "order": {"type": "array", "minItems": 1, "maxItems": 8, "items": {"type": "integer", "minimum": 0, "maximum": 7}}
}
MAY: dict[str, Any] = {}


def apply(torch: Any, tensor: Any, rule: dict[str, Any], rank: int) -> Any:
    if sorted(rule["order"]) != list(range(tensor.dim())):
        raise ValueError(f"{rule['order']} does not name each axis of {list(tensor.shape)} once")
    return tensor.permute(rule["order"])
