"""What the keys of a recipe may hold. One declaration serves the strict reader and the JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Field:
    """``kind``: text, code, pattern, version, integer, flag, texts (a list of text), table, tables (a list of tables),
    mapping (free keys, each a table of ``fields``), value (text, integer or flag), choice (one of ``choices``)."""

    kind: str
    help: str
    required: bool = False
    fields: Mapping[str, Field] = field(default_factory=dict)
    choices: tuple[str, ...] = ()


_PLAIN: Mapping[str, dict[str, Any]] = {
    "text": {"type": "string", "minLength": 1},
    "code": {"type": "string", "minLength": 1},
    "pattern": {"type": "string", "minLength": 1},
    "version": {"type": "string", "minLength": 1},
    "integer": {"type": "integer"},
    "flag": {"type": "boolean"},
    "texts": {"type": "array", "items": {"type": "string", "minLength": 1}},
    "value": {"type": ["string", "integer", "boolean"]},
}


def table_schema(fields: Mapping[str, Field]) -> dict[str, Any]:
    """The JSON Schema of a table with exactly these keys."""
    required = [name for name, item in fields.items() if item.required]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: field_schema(item) for name, item in fields.items()},
        "additionalProperties": False,
    }
    return schema | ({"required": required} if required else {})


def field_schema(item: Field) -> dict[str, Any]:
    if item.kind == "choice":
        schema: dict[str, Any] = {"enum": list(item.choices)}
    elif item.kind == "table":
        schema = table_schema(item.fields)
    elif item.kind == "tables":
        schema = {"type": "array", "items": table_schema(item.fields)}
    elif item.kind == "mapping":
        schema = {"type": "object", "additionalProperties": table_schema(item.fields)}
    else:
        schema = dict(_PLAIN[item.kind])
    return schema | {"description": item.help}
