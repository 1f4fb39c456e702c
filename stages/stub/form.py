"""Whether a value is of a JSON Schema's form: the words that the instruction's schema uses, and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from locales import _

_KINDS: dict[str, Any] = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}


def problems(schema: dict[str, Any], value: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """(place, what is wrong there) of everything that is not of the schema's form."""
    if "anyOf" in schema:
        fitting = [one for one in schema["anyOf"] if _is_kind(one["type"], value)]
        if not fitting:
            yield where, _("it is none of: {kinds}").format(kinds=", ".join(one["type"] for one in schema["anyOf"]))
        for one in fitting:
            yield from problems(one, value, where)
    elif "oneOf" in schema:
        yield from _by_rule(schema["oneOf"], value, where)
    elif "type" in schema and not _is_kind(schema["type"], value):
        yield where, _("it is no {kind}").format(kind=schema["type"])
    elif "const" in schema and value != schema["const"]:
        yield where, _("it is not {value}").format(value=schema["const"])
    elif "enum" in schema and value not in schema["enum"]:
        yield where, _("it is none of: {kinds}").format(kinds=", ".join(map(str, schema["enum"])))
    elif isinstance(value, str):
        yield from _of_string(schema, value, where)
    elif isinstance(value, int):
        low, high = schema.get("minimum", value), schema.get("maximum", value)
        if not low <= value <= high:
            yield where, _("it is not from {low} to {high}").format(low=low, high=high)
    elif isinstance(value, list):
        yield from _of_list(schema, value, where)
    elif isinstance(value, dict):
        yield from _of_object(schema, value, where)


def _is_kind(kind: str, value: Any) -> bool:
    return isinstance(value, _KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _by_rule(choices: list[dict[str, Any]], value: Any, where: str) -> Iterator[tuple[str, str]]:
    """The choice is told by its ``rule``."""
    rules = {one["properties"]["rule"]["const"]: one for one in choices}
    name = value.get("rule") if isinstance(value, dict) else None
    if isinstance(name, str) and name in rules:
        yield from problems(rules[name], value, where)
        return
    near = get_close_matches(name, rules, 1) if isinstance(name, str) and len(name) < 80 else []
    known = _("did you mean `{near}`?").format(near=near[0]) if near else ", ".join(rules)
    yield where, _("it names no rule; {known}").format(known=known)


def _of_string(schema: dict[str, Any], value: str, where: str) -> Iterator[tuple[str, str]]:
    if len(value) > schema.get("maxLength", len(value)):
        yield where, _("it is longer than {limit} characters").format(limit=schema["maxLength"])
    elif "pattern" in schema and not re.search(schema["pattern"], value):
        yield where, _("it is not of the form {form}").format(form=schema.get("description", schema["pattern"]))


def _of_list(schema: dict[str, Any], value: list[Any], where: str) -> Iterator[tuple[str, str]]:
    low, high = schema.get("minItems", 0), schema.get("maxItems", len(value))
    if not low <= len(value) <= high:
        yield where, _("it has {count} items, not {low} to {high}").format(count=len(value), low=low, high=high)
        return
    for number, item in enumerate(value):
        yield from problems(schema.get("items", {}), item, f"{where}[{number}]")


def _of_object(schema: dict[str, Any], value: dict[str, Any], where: str) -> Iterator[tuple[str, str]]:
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{where}.{name}", _("it is missing")
    for name, item in value.items():
        if name in known:
            yield from problems(known[name], item, f"{where}.{name}")
        else:
            near = get_close_matches(name[:80], known, 1)
            hint = _("; did you mean `{near}`?").format(near=near[0]) if near else ""
            yield f"{where}.{name[:80]}", _("there is no such key{hint}").format(hint=hint)
