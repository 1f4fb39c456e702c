"""Sources in, transformed tensors out, one item after the other."""

from __future__ import annotations

import sys
from typing import Any

from probepatch_stub import plain_tensors  # type: ignore[import-not-found,unused-ignore]


def main(given: dict[str, Any]) -> dict[str, Any]:
    """``items``: each with ``sources``, ``transform`` and ``writes`` (path, rank, shape, dtype). Answers for each what was
    written, or what is wrong; after one that is wrong the others are tried, too."""
    try:
        torch = plain_tensors.torch_here()
    except ValueError as error:
        return {"torch": None, "error": str(error), "items": []}
    with torch.no_grad():
        return {"torch": str(torch.__version__), "error": None, "items": [_item(torch, one) for one in given["items"]]}


def _item(torch: Any, item: dict[str, Any]) -> dict[str, Any]:
    place = ""
    tensors, sources, written = [], [], []
    try:
        for place in item["sources"]:
            tensors.append(plain_tensors.load(torch, place))
            sources.append({"path": place, "sha256": plain_tensors.digest(place), "shape": list(tensors[-1].shape)})
        place = ""
        for write in item["writes"]:
            tensor = _transformed(torch, tensors, item["transform"], write["rank"] or 0)
            _check(tensor, write)
            written.append({"path": write["path"], **plain_tensors.save(torch, tensor, write["path"])})
    except ValueError as error:
        return {"wrong": str(error)[:400], "where": place, "written": [], "sources": []}
    except (RuntimeError, OSError, MemoryError) as error:
        return {"wrong": f"{type(error).__name__}: {error}"[:400], "where": place, "written": [], "sources": []}
    return {"wrong": None, "where": None, "written": written, "sources": sources}


def _transformed(torch: Any, tensors: list[Any], transform: list[dict[str, Any]], rank: int) -> Any:
    now = list(tensors)
    for number, rule in enumerate(transform):
        module = sys.modules[f"probepatch_stub.rules.{rule['rule']}"]
        try:
            if hasattr(module, "TAKES"):
                now = [module.apply(torch, now, rule, rank)]
            else:
                now = [module.apply(torch, one, rule, rank) for one in now]
        except ValueError as error:
            raise ValueError(f"transform[{number}] {rule['rule']}: {error}") from error
    (tensor,) = now
    return tensor


def _check(tensor: Any, write: dict[str, Any]) -> None:
    """Raises ValueError when msprobe would put in something that does not fit."""
    found, wanted = list(tensor.shape), write["shape"]
    if found != wanted:
        raise ValueError(f"the shape is {found} after the transform, and the target has {wanted}")
    if str(tensor.dtype) != write["dtype"]:
        raise ValueError(f"the dtype is {tensor.dtype} after the transform, and the target has {write['dtype']}")
    if tensor.is_floating_point() and bool(tensor.isnan().any()):
        raise ValueError("it holds NaN: everything after it would be NaN as well")
