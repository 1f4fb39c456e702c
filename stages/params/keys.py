"""A key of a JSON or YAML file gets another value: only the bytes of that value change, and the file is read again to prove it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codemods.errors import FindingError
from locales import _
from stages.params.paths import at
from stages.params.reading import EFFECTIVE, TEXT_SECTIONS, parse_object

_BLANKS = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class NotSettableError(FindingError):
    """The key cannot be given that value in this file; nothing was written."""


@dataclass(frozen=True)
class Change:
    """The characters ``start`` to ``end`` of the text give way to ``new``."""

    start: int
    end: int
    new: str


def set_key(path: Path, text: str, key: str, value: Any) -> Change | None:
    """The change that gives ``key`` (dotted) the value; None when it has it. Raises NotSettableError, ConfigError."""
    before = parse_object(text, path, _("config"))
    if before.get("format") == EFFECTIVE:
        raise NotSettableError(
            _("{path} tells what the training built; nothing reads it").format(path=path.name),
            where=str(path),
            todo=_("name the launch script, the config or the bridge that sets {key}").format(key=key),
        )
    if _alike(at(before, key), value):
        return None
    yaml = path.suffix.lower() in (".yaml", ".yml")
    change = _in_yaml(path, text, key, value) if yaml else _in_json(path, text, key, value)
    after = text[: change.start] + change.new + text[change.end :]
    if not _alike(parse_object(after, path, _("config")), _with(before, key, value)):
        raise NotSettableError(
            _("with another value of {key} more than that would change").format(key=key), where=str(path)
        )
    return change


def _alike(a: Any, b: Any) -> bool:
    """One value of one type: 1, 1.0 and true are three."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_alike(one, b[name]) for name, one in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_alike, a, b))
    return bool(a == b)


def _with(data: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A copy in which the key has the value."""
    head, _dot, rest = key.partition(".")
    if key in data or not rest or not isinstance(data.get(head), Mapping):
        return {**data, key: value}
    return {**data, head: _with(data[head], rest, value)}


# --- JSON -----------------------------------------------------------------------------------------------------------------


def _in_json(path: Path, text: str, key: str, value: Any) -> Change:
    start = _blanks(text, 1 if text.startswith("\ufeff") else 0)
    prefix = key
    while True:
        members = _members(text, start)
        if prefix in members:
            _name, begin, end = members[prefix]
            return Change(begin, end, json.dumps(value, ensure_ascii=False))
        head, _dot, rest = prefix.partition(".")
        if not rest or head not in members or text[members[head][1]] != "{":
            return _added(path, text, key, prefix, start, members, value)
        start, prefix = members[head][1], rest


def _added(
    path: Path, text: str, key: str, name: str, start: int, members: Mapping[str, tuple[int, int, int]], value: Any
) -> Change:
    """A member behind the last one, parted from it as that one is from what stands before it."""
    inside = {section.partition(".")[0] for section in TEXT_SECTIONS} & members.keys()
    if "." in name or (name == key and inside):
        raise NotSettableError(
            _("{key} is not in {path}").format(key=key, path=path.name),
            where=str(path),
            todo=_("`key` of the instruction is its dotted path in that file"),
        )
    pair = f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
    if not members:
        return Change(start + 1, start + 1, pair)
    first, _begin, end = list(members.values())[-1]
    gap = text[len(text[:first].rstrip(" \t\r\n")) : first]
    return Change(end, end, f",{gap}{pair}")


def _members(text: str, start: int) -> dict[str, tuple[int, int, int]]:
    """Of the object at ``start``, which is known to be valid: name -> where it, its value and the value's end are."""
    found: dict[str, tuple[int, int, int]] = {}
    place = _blanks(text, start + 1)
    while text[place] != "}":
        name, after = _DECODER.raw_decode(text, place)
        begin = _blanks(text, _blanks(text, after) + 1)
        _value, end = _DECODER.raw_decode(text, begin)
        found[name] = (place, begin, end)
        place = _blanks(text, end)
        if text[place] == ",":
            place = _blanks(text, place + 1)
    return found


def _blanks(text: str, place: int) -> int:
    found = _BLANKS.match(text, place)
    assert found is not None
    return found.end()


# --- YAML -----------------------------------------------------------------------------------------------------------------


def _in_yaml(path: Path, text: str, key: str, value: Any) -> Change:
    from ruamel.yaml import YAML

    node: Any = YAML(typ="safe", pure=True).compose(text.replace("\r\n", " \n"))
    rest = key
    while rest:
        if node.anchor is not None or type(node).__name__ != "MappingNode":
            raise _left_to_you(path, key)
        inner = {str(one.value): below for one, below in node.value}
        name = rest if rest in inner else rest.partition(".")[0]
        if name not in inner:
            raise _left_to_you(path, key)
        node, rest = inner[name], rest[len(name) + 1 :]
    if type(node).__name__ != "ScalarNode" or node.anchor is not None or node.style in ("|", ">"):
        raise _left_to_you(path, key)
    return Change(node.start_mark.index, node.end_mark.index, _yaml_text(value))


def _left_to_you(path: Path, key: str) -> NotSettableError:
    return NotSettableError(
        _("{key} is no plain value in {path}").format(key=key, path=path.name),
        where=str(path),
        why=_("it is not there, or a block, a list, or used in several places (an anchor); that is left to you"),
    )


def _yaml_text(value: Any) -> str:
    """As JSON writes it; a float so that YAML 1.1 reads it as one, too."""
    if isinstance(value, float) and math.isfinite(value):
        digits, e, exponent = repr(value).partition("e")
        return f"{digits}{'' if '.' in digits else '.0'}e{exponent}" if e else digits
    return json.dumps(value, ensure_ascii=False)
