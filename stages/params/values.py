"""When two values of a config mean the same: numbers however they are written, dtypes and activations under their names.

Nothing is near enough: 1e-6 and 0.000001 are one number, 1e-6 and 1.0000001e-6 are two.
"""

from __future__ import annotations

import re
import struct
from decimal import Decimal, InvalidOperation
from typing import Any

from locales import _

DTYPES = {
    "bfloat16": ("bf16", "BF16"),
    "float16": ("fp16", "half", "f16", "F16", "FP16"),
    "float32": ("fp32", "float", "f32", "F32", "FP32"),
    "float64": ("fp64", "double", "f64", "F64", "FP64"),
    "float8_e4m3fn": ("fp8_e4m3", "e4m3", "fp8_e4m3fn", "F8_E4M3"),
    "float8_e5m2": ("fp8_e5m2", "e5m2", "F8_E5M2"),
}
ACTIVATIONS = {"silu": ("swish", "SiLU"), "gelu": ("GELU",), "relu": ("ReLU",)}
_PREFIXES = re.compile(r"^(?:torch|jnp|np)\.(?=(?:bfloat|float|half|double|int|uint)\w*$)")
_ALIASES = {
    alias: name for names in (DTYPES, ACTIVATIONS) for name, aliases in names.items() for alias in (name, *aliases)
}
_ACTIVATION_NAMES = {name for own, aliases in ACTIVATIONS.items() for name in (own, *aliases)}
_NUMBER = re.compile(r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_FLAGS = {"true": True, "false": False, "True": True, "False": False}
_LONGEST = 400  # characters of a number that is written as text


def same(a: Any, b: Any) -> bool:
    """Whether the two are one value. A flag is no number, and null is only null."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(one, other) for one, other in zip(a, b, strict=True))
    one, other = plain(a), plain(b)
    if isinstance(one, bool) or isinstance(other, bool):
        return isinstance(one, bool) and isinstance(other, bool) and one == other
    return bool(one == other) and (one is None) == (other is None)


def plain(value: Any) -> Any:
    """A number as Decimal or int, a flag as bool, a dtype or an activation under its one name; anything else as it is."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        return Decimal(repr(value)) if isinstance(value, float) else value
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text in _FLAGS:
        return _FLAGS[text]
    number = _number(text)
    return number if number is not None else _name(text)


def _number(text: str) -> Decimal | None:
    if len(text) > _LONGEST or not _NUMBER.fullmatch(text):
        return None
    try:
        return Decimal(text.replace("_", ""))
    except InvalidOperation:
        return None


def _name(text: str) -> str:
    """``torch.bfloat16`` and ``bf16``; ``torch.nn.functional.silu`` and ``swish``."""
    short = _PREFIXES.sub("", text)
    last = short.rpartition(".")[2]
    return _ALIASES.get(last if last in _ACTIVATION_NAMES else short, short)


def on(value: Any) -> bool:
    """Whether a switch is on: null, 0, false, an empty list and the words for them are off."""
    known = plain(value)
    if isinstance(known, str):
        return known.lower() not in ("", "none", "null", "off", "no", "disabled")
    return bool(known)


def remark(a: Any, b: Any) -> str | None:
    """What a person would want to know beside equal or not; None when there is nothing."""
    one, other = plain(a), plain(b)
    numbers = isinstance(one, (int, Decimal)) and isinstance(other, (int, Decimal))
    if not numbers or isinstance(one, bool) or isinstance(other, bool):
        return None
    if one == other:
        return _("one side has the number as text") if isinstance(a, str) != isinstance(b, str) else None
    if _float32(one) == _float32(other):
        return _("the two are one number in float32")
    return None


def _float32(number: int | Decimal) -> float | None:
    try:
        return float(struct.unpack("<f", struct.pack("<f", float(number)))[0])
    except (OverflowError, struct.error):
        return None
