"""Three tensors, q, k and v, made one in the layout of a fused projection's output; the layouts are those of ``split_qkv``."""

from __future__ import annotations

from typing import Any

NEEDS: dict[str, Any] = {
    "layout": {"enum": ["contiguous", "interleaved"]},
    "q_heads": {"type": "integer", "minimum": 1, "maximum": 65536},
    "kv_heads": {"type": "integer", "minimum": 1, "maximum": 65536},
    "head_dim": {"type": "integer", "minimum": 1, "maximum": 65536},
}
MAY: dict[str, Any] = {"axis": {"type": "integer", "minimum": -8, "maximum": 7}}
TAKES = 3


def apply(torch: Any, tensors: Any, rule: dict[str, Any], rank: int) -> Any:
    axis, q, kv, head = rule.get("axis", -1), rule["q_heads"], rule["kv_heads"], rule["head_dim"]
    first = tensors[0]
    if not -first.dim() <= axis < first.dim():
        raise ValueError(f"there is no axis {axis} in the shape {list(first.shape)}")
    axis %= first.dim()
    before, after = list(first.shape[:axis]), list(first.shape[axis + 1 :])
    wanted = [[*before, heads * head, *after] for heads in (q, kv, kv)]
    found = [list(one.shape) for one in tensors]
    if found != wanted:
        raise ValueError(f"q, k and v are of the shapes {found}; {q} and {kv} heads of {head} need {wanted}")
    if len({one.dtype for one in tensors}) > 1:
        raise ValueError("q, k and v are of different dtypes")
    if rule["layout"] == "contiguous":
        return torch.cat(tensors, dim=axis)
    if q % kv:
        raise ValueError(f"{q} heads of q do not go into {kv} groups")
    sizes = (q // kv * head, head, head)
    parts = [tensors[n].reshape([*before, kv, size, *after]) for n, size in enumerate(sizes)]
    return torch.cat(parts, dim=axis + 1).reshape([*before, (q + 2 * kv) * head, *after])
