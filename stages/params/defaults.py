"""What a Hugging Face config class fills in when config.json says nothing: data, read out of released versions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from stages.params.reading import HF, TEXT_SECTIONS, UNKNOWN, Config

_DATA = Path(__file__).parent / "data" / "hf_defaults.json"


@cache
def _classes() -> Mapping[str, Mapping[str, Any]]:
    classes: dict[str, dict[str, Any]] = json.loads(_DATA.read_text("utf-8"))["classes"]
    return classes


def class_defaults(config: Config) -> Mapping[str, Any]:
    """Defaults of the config's own class; empty for a class that is not known, and for what is no raw HF config."""
    if config.kind not in (HF, UNKNOWN) or config.model_type is None:
        return {}
    name = config.model_type
    known = _classes().get(name) or _classes().get(name.removesuffix("_text")) or {}
    return {key: value for key, default in known.items() if (value := _computed(default, config.values)) is not None}


def _computed(default: Any, values: Mapping[str, Any]) -> Any:
    if not isinstance(default, str) or not default.startswith("="):
        return default
    numbers = [_size(values, name) for name in default[1:].split("//")]
    if any(type(number) is not int or number <= 0 for number in numbers):
        return None
    return numbers[0] // numbers[1] if len(numbers) == 2 else numbers[0]


def _size(values: Mapping[str, Any], name: str) -> Any:
    for section in TEXT_SECTIONS:
        inner = values.get(section)
        if isinstance(inner, Mapping) and name in inner:
            return inner[name]
    return values.get(name)
