"""The text of a recipe, changed key by key: comments, quotes and layout of everything else stay as their author wrote them."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML

from codemods.errors import InvalidError
from locales import _


class LayoutError(InvalidError):
    """The recipe is valid, but written so that keys cannot be changed one by one in its text."""


@dataclass(frozen=True)
class Item:
    """One entry of a list of tables: its text (``- key: …`` at the margin, with the comments above it) and its plain values."""

    text: str
    values: Mapping[str, Any]


def _layout(what: str) -> LayoutError:
    return LayoutError(
        what, todo=_("write a list as `- key: value`, each key on a line of its own; then its layout can be kept")
    )


_BREAKS = re.compile("[\n\r\x85\u2028\u2029]")  # YAML's line breaks


def _root(text: str) -> Any:
    return YAML(typ="rt", pure=True).compose(io.StringIO(text))


def _pairs(text: str, node: Any) -> Iterator[tuple[str, int, int]]:
    """Each key of a mapping with the offsets at which its line begins and the next key's line (or the mapping) ends."""
    starts = [text.rfind("\n", 0, key.start_mark.index) + 1 for key, _value in node.value]
    ends = [*starts[1:], node.end_mark.index]
    for (key, _value), start, end in zip(node.value, starts, ends, strict=True):
        yield key.value, start, end


def heading(text: str) -> str:
    """The file without its `edits`, `examples` and `include`."""
    gone = [(start, end) for key, start, end in _blocks(text) if key in ("edits", "examples", "include")]
    for start, end in reversed(gone):
        text = text[:start] + text[end:]
    return text.rstrip("\n") + "\n"


def _blocks(text: str) -> list[tuple[str, int, int]]:
    """The top-level keys: a comment above a key belongs to it."""
    found = list(_pairs(text, _root(text)))
    starts = [_with_comments(text, start) for _key, start, _end in found]
    return [
        (key, start, end) for (key, _s, _e), start, end in zip(found, starts, [*starts[1:], len(text)], strict=True)
    ]


def _with_comments(text: str, start: int) -> int:
    while start:
        above = text.rfind("\n", 0, start - 1) + 1
        if not text[above:start].lstrip().startswith("#") or above == 0:
            return start
        start = above
    return start


def texts(text: str, key: str) -> list[str]:
    """The plain entries of the top-level list ``key``."""
    return [entry.value for name, value in _root(text).value if name.value == key for entry in value.value]


def items(text: str, key: str) -> list[Item]:
    """The entries of the top-level list ``key``; none where it is missing or empty."""
    for name, value in _root(text).value:
        if name.value == key and value.id == "sequence" and value.value:
            if value.flow_style:
                raise _layout(_("`{key}` is written in one line").format(key=key))
            column = value.start_mark.column
            starts = [text.rfind("\n", 0, node.start_mark.index) + 1 for node in value.value]
            starts = [_with_comments(text, start) for start in starts]
            end = next((start for _key, start, _end in _blocks(text) if start > starts[-1]), len(text)) if starts else 0
            bounds = zip(starts, [*starts[1:], end], strict=True)
            return [_item(text[begin:stop], column) for begin, stop in bounds]
    return []


def _item(text: str, column: int) -> Item:
    lines = [line[column:] if not line[:column].strip() else line.lstrip() for line in text.split("\n")]
    plain = "\n".join(lines).rstrip("\n") + "\n"
    values = YAML(typ="safe", pure=True).load(plain)
    if not isinstance(values, list) or not values or not isinstance(values[0], dict):
        raise _layout(_("`{text}` is laid out in a way of its own").format(text=plain.strip()[:60]))
    return Item(plain, values[0])


def with_key(text: str, key: str, value: str | int | list[str] | Mapping[str, Any]) -> str:
    """An item's or a heading's text with ``key`` set: in its place; where it is missing, behind `file` or else the first key."""
    node, shift = _mapping(text)
    line = _line(key, value, " " * shift)
    pairs = list(_pairs(text, node))
    for place, (name, start, end) in enumerate(pairs):
        if name == key:
            head = "-" + " " * (shift - 1) if place == 0 and shift else " " * shift
            return text[:start] + head + line.lstrip() + text[end:]
    end = next((end for name, _start, end in pairs if name == "file"), pairs[0][2])
    return text[:end] + line + text[end:]


def without_key(text: str, key: str) -> str:
    node, _shift = _mapping(text)
    for name, start, end in _pairs(text, node):
        if name == key:
            return text[:start] + text[end:]
    return text


def _mapping(text: str) -> tuple[Any, int]:
    """The mapping, and the column of its keys."""
    root = _root(text)
    node = root.value[0] if root.id == "sequence" else root
    if node.flow_style:
        raise _layout(_("`{text}` is written in one line").format(text=text.strip()[:60]))
    return node, node.value[0][0].start_mark.column


def _line(key: str, value: str | int | list[str] | Mapping[str, Any], indent: str) -> str:
    if isinstance(value, str) and "\n" in value.strip("\n"):
        body = textwrap.indent(value.strip("\n"), indent + "  ")
        return f"{indent}{key}: |\n{body}\n"
    return f"{indent}{key}: {scalar(value)}\n"


def scalar(value: str | int | list[str] | Mapping[str, Any]) -> str:
    """A value on one line."""
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return "[" + ", ".join(f'"{item}"' for item in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {scalar(item)}" for name, item in value.items()) + "}"
    text = value.strip("\n")
    if re.search(r": |:$| #|^[\s\-?:,\[\]{}#&*!|>'\"%@`=<~]|\s$", text) or not _plain(text):
        return "'" + text.replace("'", "''") + "'"
    return text


def _plain(text: str) -> bool:
    try:
        return bool(YAML(typ="safe", pure=True).load(f"k: {text}") == {"k": text})
    except Exception:  # noqa: BLE001  (whatever the parser says: then it has to be quoted)
        return False


def indented(text: str) -> str:
    """An item as an entry of a list two blanks from the margin."""
    return textwrap.indent(text, "  ")


def commented(text: str) -> str:
    return "".join(f"  # {line}\n" if line.strip() else "  #\n" for line in _BREAKS.split(text.rstrip("\n")))


def pasted(keys: Mapping[str, Any]) -> list[str]:
    """Keys and values as the lines of a recipe."""
    return "".join(_line(key, value, "") for key, value in keys.items()).rstrip("\n").split("\n") if keys else []
