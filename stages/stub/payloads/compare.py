"""What was prepared against what the target's module really got, bit by bit."""

from __future__ import annotations

from typing import Any

from probepatch_stub import plain_tensors  # type: ignore[import-not-found,unused-ignore]


def main(given: dict[str, Any]) -> dict[str, Any]:
    """``pairs``: each with the paths ``prepared``, ``dumped`` and ``before`` (the target's own value
    of an earlier round, or None)."""
    try:
        torch = plain_tensors.torch_here()
    except ValueError as error:
        return {"torch": None, "error": str(error), "pairs": []}
    with torch.no_grad():
        return {"torch": str(torch.__version__), "error": None, "pairs": [_pair(torch, one) for one in given["pairs"]]}


def _pair(torch: Any, pair: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"wrong": None, "where": None, "equal": None, "cast": False}
    answer.update(cosine=None, max_abs=None, was_equal=None)
    place = pair["prepared"]
    try:
        prepared = plain_tensors.load(torch, place)
        place = pair["dumped"]
        dumped = plain_tensors.load(torch, place)
        if prepared.shape != dumped.shape:
            raise ValueError(f"it has the shape {list(dumped.shape)}, and what was prepared {list(prepared.shape)}")
    except ValueError as error:
        return {**answer, "wrong": str(error), "where": place}
    if prepared.dtype != dumped.dtype:  # the target casts what goes into the module
        answer["cast"], prepared = True, prepared.to(dumped.dtype)
    answer["equal"] = _same_bits(torch, prepared, dumped)
    answer["cosine"], answer["max_abs"] = _distance(torch, prepared, dumped)
    if pair["before"]:
        try:
            answer["was_equal"] = _same_bits(torch, prepared, plain_tensors.load(torch, pair["before"]))
        except ValueError:  # an earlier dump that is gone tells nothing
            answer["was_equal"] = None
    return answer


def _same_bits(torch: Any, one: Any, other: Any) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return bool(torch.equal(_bytes(torch, one), _bytes(torch, other)))


def _bytes(torch: Any, tensor: Any) -> Any:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _distance(torch: Any, one: Any, other: Any) -> tuple[float | None, float | None]:
    """(cosine, largest difference); None where it is not a number."""
    if not one.numel():
        return None, None
    a, b = one.reshape(-1).to(torch.float64), other.reshape(-1).to(torch.float64)
    product = float(a.norm() * b.norm())
    cosine = float(a.dot(b)) / product if product > 0 else float("nan")
    return _number(cosine), _number(float((a - b).abs().max()))


def _number(value: float) -> float | None:
    return value if value == value and abs(value) != float("inf") else None
