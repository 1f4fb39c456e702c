"""The JSON Schema of recipe files, from the same declarations that the reader checks."""

from __future__ import annotations

from typing import Any

from codemods.fields import table_schema
from codemods.recipe_fields import RECIPE
from codemods.verbs import VERBS


def recipe_schema() -> dict[str, Any]:
    """For editors: keys, kinds, and that an edit has exactly one verb."""
    schema = table_schema(RECIPE)
    edit = schema["properties"]["edits"]["items"]
    edit["oneOf"] = [{"required": [name]} for name in VERBS]
    edit["allOf"] = [
        {
            "if": {"required": [verb.name], "not": {"required": ["any_of"]}},
            "then": {"required": [key for key, item in verb.keys.items() if item.required]},
        }
        for verb in VERBS.values()
        if any(item.required for item in verb.keys.values())
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "probepatch recipe",
        **schema,
    }
