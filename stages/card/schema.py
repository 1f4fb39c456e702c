"""The JSON Schema of the task card's file, made from the declared facts: there is no second list that could disagree."""

from __future__ import annotations

from typing import Any

from stages.card.card import FORMAT, PERMISSIONS
from stages.card.evidence import DONE, FAILED
from stages.card.fields import FIELDS, Field

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_TIME = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"}


def card_schema() -> dict[str, Any]:
    """The schema. A fact that is unknown is null."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A task card (task_card.json)",
        **_object(
            {
                "format": {"const": FORMAT},
                "created": _TIME,
                "facts": _object({name: _fact(field) for name, field in FIELDS.items()}, needed=()),
                "permissions": _object({name: _permission() for name in PERMISSIONS}, needed=()),
                "stages": {
                    "type": "object",
                    "propertyNames": {"pattern": "^[0-9]$"},
                    "additionalProperties": _evidence(),
                    "description": "what each stage found, by its number",
                },
                "log": {"type": "array", "items": _object({"at": _TIME, "what": _TEXT})},
                "edits": {
                    "type": "array",
                    "items": _object({"checkout": _TEXT, "recipes": _TEXTS, "at": _TIME}),
                    "description": "the checkouts in which edits of this task stand",
                },
            }
        ),
    }


def _object(properties: dict[str, Any], needed: tuple[str, ...] | None = None) -> dict[str, Any]:
    required = list(properties) if needed is None else list(needed)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _fact(field: Field) -> dict[str, Any]:
    if field.kind == "choice":
        return {"enum": [*field.choices, None], "description": field.help}
    kind = "array" if field.kind in ("words", "texts") else "string"
    shape: dict[str, Any] = {"type": [kind, "null"], "description": field.help}
    return shape | {"items": _TEXT} if kind == "array" else shape


def _permission() -> dict[str, Any]:
    return _object({"granted": {"type": "boolean"}, "at": _TIME, "scope": _TEXT})


def _evidence() -> dict[str, Any]:
    return _object(
        {
            "state": {"enum": [DONE, FAILED]},
            "summary": _TEXT,
            "at": _TIME,
            "files": {
                "type": "object",
                "additionalProperties": {"type": "string", "pattern": "^([0-9a-f]{64}|missing)$"},
                "description": "SHA-256 by absolute path",
            },
            "facts": {"type": "object", "propertyNames": {"enum": list(FIELDS)}},
            "result": {"type": "object"},
        }
    )
