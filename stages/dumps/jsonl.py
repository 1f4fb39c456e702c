"""Lines of JSON as other processes wrote them: streamed, bounded, and every value checked before it is taken."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from locales import _
from stages.dumps.problem import ERROR

LONGEST_LINE = 64 << 20
"""Bytes: the log-probs of about two million tokens."""
_LARGEST = 2**53
_LONGEST_WORD = 1024
_SHA256 = re.compile(r"[0-9a-f]{64}")
T = TypeVar("T")


class WrongLine(ValueError):
    """What is wrong with a line, which is left out; ``name`` and ``level`` are the problem's."""

    def __init__(self, name: str, what: str, level: str = ERROR) -> None:
        super().__init__(what)
        self.name = name
        self.level = level


def lines(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """Number from 1, content, and whether the line ended. One that is too long comes without content; empty ones are left out."""
    with path.open("rb") as file:
        number = 0
        while text := file.readline(LONGEST_LINE + 1):
            number += 1
            whole = text.endswith(b"\n")
            if not whole and len(text) > LONGEST_LINE:
                while not whole and (rest := file.readline(1 << 20)):
                    whole = rest.endswith(b"\n")
                yield number, b"", True
            elif text.strip():
                yield number, text, whole


def parse(text: bytes) -> dict[str, Any]:
    """The object of a line; NaN and infinities pass as floats. Raises WrongLine."""
    if not text:
        raise WrongLine("log-huge-line", _("longer than {limit} bytes").format(limit=LONGEST_LINE))
    try:
        data = json.loads(text.decode("utf-8"), object_pairs_hook=_object)
    except WrongLine:
        raise
    except UnicodeDecodeError as error:
        raise WrongLine("log-not-json", _("not UTF-8 at byte {at}").format(at=error.start)) from error
    except json.JSONDecodeError as error:
        what = _("not JSON at character {at}: {why}").format(at=error.pos, why=error.msg)
        raise WrongLine("log-not-json", what) from error
    except (ValueError, RecursionError) as error:
        raise WrongLine(
            "log-not-json", _("not JSON that can be read: {why}").format(why=type(error).__name__)
        ) from error
    if not isinstance(data, dict):
        raise WrongLine("log-not-an-object", _("{kind}, where an object belongs").format(kind=_kind(data)))
    return data


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise WrongLine("log-duplicate-key", _("a key stands twice"))
    return data


# --- values: each check takes a key's value, and raises ValueError with what belongs there -----------------------------


def required(data: dict[str, Any], key: str, check: Callable[[Any], T]) -> T:
    if key not in data:
        raise WrongLine("log-key-missing", _("`{key}` is missing").format(key=key))
    return _checked(data[key], key, check)


def optional(data: dict[str, Any], key: str, check: Callable[[Any], T]) -> T | None:
    """None where the key is missing or null."""
    return None if data.get(key) is None else _checked(data[key], key, check)


def listed(data: dict[str, Any], key: str, check: Callable[[Any], T], count: int | None = None) -> tuple[T | None, ...]:
    """``count`` elements, each of which may be null."""
    values = required(data, key, _list)
    if count is not None and len(values) != count:
        what = _("`{key}` has {found} elements for {count} requests").format(key=key, found=len(values), count=count)
        raise WrongLine("log-lengths-differ", what)
    return tuple(None if value is None else _checked(value, f"{key}[{at}]", check) for at, value in enumerate(values))


def counts(data: dict[str, Any], key: str, number: int) -> tuple[int, ...] | None:
    """None where the key is missing or null, or where an element is null."""
    if data.get(key) is None:
        return None
    found = listed(data, key, count, number)
    return None if None in found else tuple(value for value in found if value is not None)


def _checked(value: Any, key: str, check: Callable[[Any], T]) -> T:
    try:
        return check(value)
    except ValueError as error:
        what = _("`{key}` is {found}, where {wanted} belongs").format(key=key, found=_kind(value), wanted=error)
        raise WrongLine("log-wrong-value", what) from error


def count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _LARGEST:
        raise ValueError(_("a count"))
    return value


def positive(value: Any) -> int:
    if type(value) is not int or not 0 < value <= _LARGEST:
        raise ValueError(_("a count above 0"))
    return value


def number(value: Any) -> float:
    if type(value) not in (int, float) or abs(value) > _LARGEST or not math.isfinite(value):
        raise ValueError(_("a finite number"))
    return float(value)


def floats(value: Any) -> tuple[float, ...]:
    """NaN and infinities pass."""
    if not isinstance(value, list) or not all(map(_is_float, value)):
        raise ValueError(_("a list of numbers"))
    return tuple(map(float, value))


def _is_float(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) <= _LARGEST)


def word(value: Any) -> str:
    if not isinstance(value, str) or not value or len(value) > _LONGEST_WORD or not value.isprintable():
        raise ValueError(_("a word of printable characters"))
    return value


def sha256(value: Any) -> str:
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise ValueError(_("a SHA-256 of 64 hexadecimal digits"))
    return value


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(_("true or false"))
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(_("a list"))
    return value


def _kind(value: Any) -> str:
    """What was found, without its content: it may be a prompt."""
    if value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) <= _LARGEST):
        return json.dumps(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    names = {int: _("a huge number"), float: _("a fraction"), str: _("text"), list: _("a list"), dict: _("an object")}
    return names.get(type(value), type(value).__name__)
