"""Dtypes by their names in a safetensors header: how wide an element is, and how its values are read."""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Sequence
from functools import cache

BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "U16": 16, "I16": 16, "F16": 16, "BF16": 16,
    "U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64, "C64": 64,
    "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip
"""Bits of an element. A dtype that is not here is unknown: its tensors are named, never skipped."""

READABLE = frozenset(BITS) - {"F4", "F6_E2M3", "F6_E3M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ"}
"""What can be compared; of the others nobody here knows what a difference in their bits means."""

EIGHT = ("F8_E4M3", "F8_E5M2", "F8_E8M0")
"""Floats of 8 bits; their values are looked up."""

FLOATS = frozenset(("F8_E4M3", "F8_E5M2", "F16", "BF16", "F32", "F64"))
PACKED = frozenset(("F8_E4M3", "F8_E5M2", "I8", "U8", "I32"))
"""What quantised weights are stored as."""

_ARRAYS = {
    "BOOL": "B", "U8": "B", "I8": "b", "U16": "H", "I16": "h", "U32": "I", "I32": "i", "U64": "Q", "I64": "q",
    "F32": "f", "F64": "d", "C64": "f",
}  # fmt: skip


def width(dtype: str) -> int:
    """Bytes of an element of a readable dtype."""
    return BITS[dtype] // 8


def values(dtype: str, raw: bytes | bytearray) -> Sequence[float]:
    """The elements as numbers, exactly; a complex number as two."""
    if dtype == "BF16":
        return values("F32", widened(raw))
    if dtype == "F16":
        return struct.unpack(f"<{len(raw) // 2}e", raw)
    if dtype in EIGHT:
        table = float8(dtype)
        return [table[byte] for byte in raw]
    found = array(_ARRAYS[dtype])
    found.frombytes(raw)
    if sys.byteorder == "big":
        found.byteswap()
    return found


def widened(raw: bytes | bytearray) -> bytearray:
    """BF16 as F32: the two upper bytes of each element."""
    out = bytearray(2 * len(raw))
    out[2::4], out[3::4] = raw[0::2], raw[1::2]
    return out


def rounded_to_bf16(raw: bytes | bytearray) -> bytearray | None:
    """F32 as BF16, to the nearest, ties to even; None where there is a NaN. All at once, in the lanes of one large integer."""
    count = len(raw) // 4
    bits, ones = int.from_bytes(raw, "little"), int.from_bytes(b"\1\0\0\0" * count, "little")
    if (bits & ones * 0x7FFFFFFF) + ones * 0x7FFFFF & ones << 31:
        return None
    bits += ones * 0x7FFF + ((bits >> 16) & ones)
    wide = bits.to_bytes(len(raw), "little")
    out = bytearray(2 * count)
    out[0::2], out[1::2] = wide[2::4], wide[3::4]
    return out


@cache
def float8(dtype: str) -> tuple[float, ...]:
    """The 256 values of an 8-bit float. E5M2 has infinities, E4M3 has one NaN in their place, E8M0 is a power of 2."""
    if dtype == "F8_E8M0":
        return (*(2.0 ** (byte - 127) for byte in range(255)), float("nan"))
    exponent_bits, fraction_bits, bias = (4, 3, 7) if dtype == "F8_E4M3" else (5, 2, 15)
    found = []
    for byte in range(256):
        exponent, fraction = (byte & 0x7F) >> fraction_bits, byte & ((1 << fraction_bits) - 1)
        top = exponent == (1 << exponent_bits) - 1
        if top and (dtype == "F8_E5M2" or fraction == 7):
            value = float("nan") if fraction else float("inf")
        elif exponent:
            value = (1 + fraction / (1 << fraction_bits)) * 2.0 ** (exponent - bias)
        else:
            value = fraction / (1 << fraction_bits) * 2.0 ** (1 - bias)
        found.append(-value if byte & 0x80 else value)
    return tuple(found)
