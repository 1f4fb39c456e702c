"""The values of elements that differ, with numpy: all of them, where plain Python stops at a number of them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from stages.params_tensors.dtypes import EIGHT, float8

if TYPE_CHECKING:
    from stages.params_tensors.difference import Difference

np: Any
try:
    np = importlib.import_module("numpy")
except ImportError:
    np = None

_TYPES = {
    "BOOL": "u1", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4", "U64": "<u8", "I64": "<i8",
    "F16": "<f2", "F32": "<f4", "F64": "<f8", "C64": "<c8",
}  # fmt: skip


def places(a: bytes, b: bytes, size: int) -> Any:
    """The elements whose bytes differ."""
    return np.flatnonzero(np.frombuffer(a, f"<u{size}") != np.frombuffer(b, f"<u{size}"))


def floats(dtype: str, raw: bytes) -> Any:
    """The elements as an array of numbers that holds them exactly."""
    if dtype == "BF16":
        return (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")
    if dtype in EIGHT:
        return np.array(float8(dtype), "<f4")[np.frombuffer(raw, "u1")]
    return np.frombuffer(raw, _TYPES[dtype])


def unlike(a: Any, b: Any) -> Any:
    """The elements whose values differ; two NaNs do not."""
    return np.flatnonzero(~((a == b) | (np.isnan(a) & np.isnan(b))))


def measure(found: Difference, a: Any, b: Any, where: Any) -> None:
    """Add the elements at ``where`` to what was found."""
    one, other = (a, b) if len(where) == len(a) else (a[where], b[where])
    found.measured += len(where)
    with np.errstate(invalid="ignore", over="ignore"):
        wide = np.dtype("<c16" if a.dtype.kind == "c" else "<f8")
        gaps = np.abs(np.subtract(one, other, dtype=wide))
        finite = np.isfinite(gaps)
        largest = float(gaps.max(where=finite, initial=-1.0))
        alike = one == other
    equal = int(np.count_nonzero(alike))
    if finite.all():
        nan = odd = 0
    else:
        pair = np.isnan(one) & np.isnan(other)
        same = alike & ~finite  # two infinities of one sign
        nan, odd = int(pair.sum()), int((~finite & ~pair & ~same).sum())
    found.signs += equal
    found.both_nan += nan
    found.not_finite += odd
    if equal + nan + odd < len(where):
        found.largest = max(found.largest or 0.0, largest)
