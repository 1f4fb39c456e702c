"""Another dtype. A finite number that becomes an infinity there, or a whole one that becomes another, is refused."""

from __future__ import annotations

from typing import Any

NEEDS: dict[str, Any] = {
    "dtype": {"enum": ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]}
}
MAY: dict[str, Any] = {}


def apply(torch: Any, tensor: Any, rule: dict[str, Any], rank: int) -> Any:
    new = tensor.to(getattr(torch, rule["dtype"]))
    if tensor.is_floating_point() and new.is_floating_point():
        if bool((torch.isfinite(tensor) & ~torch.isfinite(new)).any()):
            raise ValueError(f"it holds numbers that are too large for {rule['dtype']}")
    elif not bool((new.to(tensor.dtype) == tensor).all()):
        raise ValueError(f"it holds numbers that {rule['dtype']} cannot hold")
    return new
