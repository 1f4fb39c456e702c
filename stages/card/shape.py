"""Whether a card read from disk has the published form: the few words of JSON Schema that its schema uses, and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_KINDS = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}


def problems(schema: dict[str, Any], value: Any, where: str = "") -> Iterator[str]:
    """The places at which the value is not of the schema's form, each with what is wrong there."""
    at = where or "."
    kinds = schema.get("type", ())
    wanted = [_KINDS[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    if wanted and (not isinstance(value, tuple(wanted)) or (isinstance(value, bool) and bool not in wanted)):
        yield f"{at}: {type(value).__name__}"
    elif "const" in schema and value != schema["const"]:
        yield f"{at}: not {schema['const']}"
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {str(value)[:40]!r}"
    elif isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{at}: {value[:40]!r}"
    elif isinstance(value, dict):
        yield from _of_object(schema, value, where)
    elif isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            yield from problems(schema["items"], item, f"{where}[{number}]")


def _of_object(schema: dict[str, Any], value: dict[str, Any], where: str) -> Iterator[str]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{where}.{name}: missing"
    for name, item in value.items():
        inner = f"{where}.{name}"
        yield from problems(schema.get("propertyNames", {}), name, inner)
        if name in known:
            yield from problems(known[name], item, inner)
        elif isinstance(others, dict):
            yield from problems(others, item, inner)
        elif not others:
            yield f"{inner}: unknown"
