"""The published form of stub_instruction.json. A rule's part comes from its own file."""

from __future__ import annotations

import importlib
from typing import Any

from stages.stub.rules import NAMES

MOST_MODULES, MOST_SOURCES, MOST_RULES = 4096, 256, 32
ENTRY = r"^Module\.[^\s/\\\x00-\x1f\x7f]+\.forward\.\d{1,6}$"
ARGUMENT = r"^(input\.\d{1,4}|kwargs\.[A-Za-z_]\w*)$"
_SOURCE = r"^[^\x00-\x1f\x7f]+\.pt$"


def rule_module(name: str) -> Any:
    """A rule's file, imported: its form is needed here, its work is done in the side's interpreter."""
    assert name in NAMES, name
    return importlib.import_module(f"stages.stub.rules.{name}")


def instruction_schema() -> dict[str, Any]:
    side = {"enum": ["train", "infer"]}
    properties = {
        "round": {"type": "integer", "minimum": 1, "maximum": 9999, "description": "counts from 1"},
        "target_side": {**side, "description": "the side whose module inputs are overridden"},
        "source_side": {**side, "description": "the side whose dump they come from"},
        "source_round": {
            "type": "integer",
            "minimum": 0,
            "maximum": 9999,
            "description": "whose dump of the source side; 0, the first capture, when it is left out",
        },
        "isolate_boundary": {
            "type": "string",
            "maxLength": 400,
            "pattern": "^[^\\x00-\\x1f\\x7f]+$",
            "description": "what the boundary is called, for people",
        },
        "step": {
            "type": "integer",
            "minimum": 0,
            "maximum": 1_000_000,
            "description": "the target's step; the one that has the entries when it is left out",
        },
        "dump_after_load": {"type": "boolean", "description": "false: override only, dump nothing"},
        "modules": {"type": "array", "minItems": 1, "maxItems": MOST_MODULES, "items": _module()},
    }
    required = [name for name in properties if name not in ("source_round", "step")]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "stub_instruction.json: which inputs of which modules are overridden, with what",
        **_closed(properties, required),
    }


def _module() -> dict[str, Any]:
    source = {"type": "string", "maxLength": 1024, "pattern": _SOURCE}
    properties = {
        "target": {
            "type": "string",
            "maxLength": 220,
            "pattern": ENTRY,
            "description": "Module.PATH.CLASS.forward.N",
        },
        "argument": {
            "type": "string",
            "maxLength": 120,
            "pattern": ARGUMENT,
            "description": "input.N or kwargs.NAME, as in the dump; may be left out where the module gets one tensor only",
        },
        "source": {
            "description": "a .pt file, or several: within the source side's dump folder, from there on",
            "anyOf": [source, {"type": "array", "minItems": 1, "maxItems": MOST_SOURCES, "items": source}],
        },
        "transform": {
            "type": "array",
            "maxItems": MOST_RULES,
            "items": {"oneOf": [_rule(name) for name in NAMES]},
            "description": "applied in this order; in the end there is one tensor of the target's shape and dtype",
        },
        "rank": {
            "type": "integer",
            "minimum": 0,
            "maximum": 1_000_000,
            "description": "the target's rank; all that have the entry when it is left out",
        },
    }
    return _closed(properties, ["target", "source", "transform"])


def _rule(name: str) -> dict[str, Any]:
    module = rule_module(name)
    about = " ".join((module.__doc__ or "").split("\n\n")[0].split())
    properties = {"rule": {"const": name}, **module.NEEDS, **module.MAY}
    return {"description": about, **_closed(properties, ["rule", *module.NEEDS])}


def _closed(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
