"""q, k or v out of a fused projection's output.

Layouts of the axis: ``contiguous`` all heads of q, then of k, then of v (vLLM, SGLang); ``interleaved`` for each group of heads its
queries, its key, its value (Megatron).
"""

from __future__ import annotations

from typing import Any

NEEDS: dict[str, Any] = {
    "part": {"enum": ["q", "k", "v"]},
    "layout": {"enum": ["contiguous", "interleaved"]},
    "q_heads": {"type": "integer", "minimum": 1, "maximum": 65536},
    "kv_heads": {"type": "integer", "minimum": 1, "maximum": 65536},
    "head_dim": {"type": "integer", "minimum": 1, "maximum": 65536},
}
MAY: dict[str, Any] = {"axis": {"type": "integer", "minimum": -8, "maximum": 7}}


def apply(torch: Any, tensor: Any, rule: dict[str, Any], rank: int) -> Any:
    axis, q, kv, head = rule.get("axis", -1), rule["q_heads"], rule["kv_heads"], rule["head_dim"]
    if not -tensor.dim() <= axis < tensor.dim():
        raise ValueError(f"there is no axis {axis} in the shape {list(tensor.shape)}")
    axis %= tensor.dim()
    if tensor.shape[axis] != (q + 2 * kv) * head:
        wanted = f"{q} + 2 x {kv} heads of {head} make {(q + 2 * kv) * head}"
        raise ValueError(f"{wanted}, and axis {axis} of the shape {list(tensor.shape)} has {tensor.shape[axis]}")
    if rule["layout"] == "contiguous":
        start, count = {"q": (0, q), "k": (q, kv), "v": (q + kv, kv)}[rule["part"]]
        return tensor.narrow(axis, start * head, count * head)
    if q % kv:
        raise ValueError(f"{q} heads of q do not go into {kv} groups")
    before, after = list(tensor.shape[:axis]), list(tensor.shape[axis + 1 :])
    each = q // kv
    groups = tensor.reshape([*before, kv, (each + 2) * head, *after])
    start, count = {"q": (0, each), "k": (each, 1), "v": (each + 1, 1)}[rule["part"]]
    return groups.narrow(axis + 1, start * head, count * head).reshape([*before, kv * count * head, *after])
