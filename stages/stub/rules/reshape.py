"""Another shape of as many elements, in the same order; one size may be -1."""

from __future__ import annotations

from typing import Any

NEEDS: dict[str, Any] = {
    "shape": {
        "type": "array",
        "minItems": 1,
        "maxItems": 8,
        "items": {"type": "integer", "minimum": -1, "maximum": 2147483647},
    }
}
MAY: dict[str, Any] = {}


def apply(torch: Any, tensor: Any, rule: dict[str, Any], rank: int) -> Any:
    try:
        return tensor.reshape(rule["shape"])
    except (RuntimeError, ValueError) as error:
        raise ValueError(f"the shape {list(tensor.shape)} does not become {rule['shape']}") from error
