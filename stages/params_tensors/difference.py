"""How two runs of elements differ: where first, how many, by how much. Reads only what is not equal to the bit."""

from __future__ import annotations

import math
import struct
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stages.params_tensors import by_numpy
from stages.params_tensors.dtypes import rounded_to_bf16, values, widened, width

BUDGET = 1 << 20
"""Elements of one tensor whose values are read without numpy; with numpy, all."""

_WORDS = {1: "B", 2: "H", 4: "I", 8: "Q"}


@dataclass
class Difference:
    """Counts of elements. ``first`` is the index of the first whose bits (dtypes alike) or values (dtypes not alike) differ.

    ``largest`` is the largest finite difference of values; ``both_nan`` differ in the bits of a NaN only, ``signs`` in the sign of
    a zero, ``not_finite`` have a NaN or an infinity on one side. ``measured`` elements were read as values; where the tensor is not
    looked at to its end after that, ``complete`` is false and the counts are the least there can be.
    """

    elements: int = 0
    first: int | None = None
    differing: int = 0
    measured: int = 0
    largest: float | None = None
    both_nan: int = 0
    signs: int = 0
    not_finite: int = 0
    after_cast: bool = False
    complete: bool = True

    @property
    def values(self) -> str:
        """equal, equal_after_cast (the wider one rounded to the narrower), nan (but for the bits of NaNs equal), differ, or not
        computed."""
        if not self.complete and self.differing == self.signs + self.both_nan:
            return "not computed"
        if self.differing == self.signs:
            return "equal_after_cast" if self.after_cast else "equal"
        if self.differing == self.signs + self.both_nan:
            return "nan"
        return "differ"

    def as_json(self, shape: Sequence[int]) -> dict[str, Any]:
        return {
            "elements": self.elements,
            "differing": self.differing,
            "complete": self.complete,
            "first_index": None if self.first is None else _unravelled(self.first, shape),
            "values": self.values,
            "max_abs": self.largest,
            "max_abs_of": self.measured,
            "not_finite": self.not_finite,
            "both_nan": self.both_nan,
            "signs_of_zero": self.signs,
        }

    def same_dtype(self, dtype: str, a: bytes, b: bytes, before: int) -> None:
        """Two runs of one dtype whose bytes are not equal; ``before`` elements precede them."""
        if self._spent():
            return
        places = _places(a, b, width(dtype))
        self._count(before, places)
        if by_numpy.np is not None:
            by_numpy.measure(self, by_numpy.floats(dtype, a), by_numpy.floats(dtype, b), places)
        else:
            self._measure(values(dtype, a), values(dtype, b), places, 2 if dtype == "C64" else 1)

    def other_dtype(self, dtype_a: str, a: bytes, dtype_b: str, b: bytes, before: int) -> None:
        """Two runs of the same elements in two dtypes."""
        kind = _alike(dtype_a, a, dtype_b, b)
        if kind:
            self.after_cast |= kind == "equal_after_cast"
        elif by_numpy.np is not None:
            one, other = by_numpy.floats(dtype_a, a), by_numpy.floats(dtype_b, b)
            places = by_numpy.unlike(one, other)
            self._count(before, places)
            by_numpy.measure(self, one, other, places)
        elif not self._spent():
            left, right = values(dtype_a, a), values(dtype_b, b)
            found = [at for at, (one, other) in enumerate(zip(left, right, strict=True)) if not _same(one, other)]
            self._count(before, found)
            self._measure(left, right, found, 1)

    def _spent(self) -> bool:
        """Whether no more values are read. The budget is for plain Python, which takes a second for some million."""
        if by_numpy.np is not None or self.measured < BUDGET:
            return False
        self.complete = False
        return True

    def _count(self, before: int, places: Sequence[int]) -> None:
        if self.first is None and len(places):
            self.first = before + int(places[0])
        self.differing += len(places)

    def _measure(self, a: Sequence[float], b: Sequence[float], places: Sequence[int], each: int) -> None:
        self.measured += len(places)
        for place in places:
            for at in range(place * each, place * each + each):
                one, other = a[at], b[at]
                if one == other:
                    self.signs += each == 1
                elif one != one and other != other:
                    self.both_nan += 1
                elif math.isfinite(one) and math.isfinite(other):
                    self.largest = max(self.largest or 0.0, abs(float(one) - float(other)))
                else:
                    self.not_finite += 1


def _same(one: float, other: float) -> bool:
    return one == other or (one != one and other != other)


def _places(a: bytes, b: bytes, size: int) -> Sequence[int]:
    """The elements whose bytes differ."""
    if by_numpy.np is not None:
        found: Sequence[int] = by_numpy.places(a, b, size)
        return found
    words = array(_WORDS[size])
    words.frombytes((int.from_bytes(a, "little") ^ int.from_bytes(b, "little")).to_bytes(len(a), "little"))
    return [at for at, word in enumerate(words) if word]


def _alike(dtype_a: str, a: bytes, dtype_b: str, b: bytes) -> str:
    """equal, equal_after_cast, or nothing known yet; whole runs at a time."""
    if (dtype_a, dtype_b) == ("BF16", "F32"):
        return _alike(dtype_b, b, dtype_a, a)
    if (dtype_a, dtype_b) == ("F32", "BF16"):
        if a == widened(b):
            return "equal"
        rounded = rounded_to_bf16(a)
        return "equal_after_cast" if rounded is not None and bytes(rounded) == b else ""
    left, right = values(dtype_a, a), values(dtype_b, b)
    if list(left) == list(right):
        return "equal"
    wide, narrow = (left, dtype_b) if width(dtype_a) > width(dtype_b) else (right, dtype_a)
    other = right if wide is left else left
    cast = _rounded(wide, narrow)
    return "equal_after_cast" if cast is not None and list(cast) == list(other) else ""


def _rounded(wide: Sequence[float], dtype: str) -> Sequence[float] | None:
    """To F32 or F16; None for other dtypes and for what does not fit."""
    try:
        if dtype == "F32":
            return array("f", wide)
        if dtype == "F16":
            return struct.unpack(f"<{len(wide)}e", struct.pack(f"<{len(wide)}e", *wide))
        if dtype == "BF16":
            rounded = rounded_to_bf16(array("f", wide).tobytes())
            return None if rounded is None else values("BF16", rounded)
    except OverflowError:
        return None
    return None


def _unravelled(at: int, shape: Sequence[int]) -> list[int]:
    out: list[int] = []
    for size in reversed(shape):
        at, rest = divmod(at, size)
        out.append(rest)
    return out[::-1]
