"""What looks like a difference between two sides and is none: known of pairs of frameworks, told to whoever analyses the dumps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("false_alarms.json")
_MEGATRON = ("slime", "vime")


def known_alarms(facts: Mapping[str, Any]) -> list[dict[str, str]]:
    """Those that apply to this pair. ``facts``: train.framework, train.backend, infer.framework, hardware, as the card has them;
    what is unknown (None) rules nothing out."""
    known = {**facts, "train.layout": layout(facts.get("train.framework"), facts.get("train.backend"))}
    alarms = json.loads(_FILE.read_text("utf-8"))["alarms"]
    return [
        {key: one[key] for key in ("id", "where", "what", "instead")} for one in alarms if _applies(one["when"], known)
    ]


def layout(framework: Any, backend: Any) -> str | None:
    """Whose modules the training side is made of."""
    if backend == "megatron" or framework in _MEGATRON:
        return "megatron"
    return "huggingface" if backend == "fsdp" else None


def _applies(when: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    for name, wanted in when.items():
        value = known.get(name)
        if value is not None and value not in ([wanted] if isinstance(wanted, str) else wanted):
            return False
    return True
