"""A question of ``probes/``, put to a side's interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stages.sides import Side

_PROBES = Path(__file__).with_name("probes")


def ask(side: Side, question: str, given: Mapping[str, Any], limit: float = 120.0) -> Any:
    """What ``probe(given)`` of ``probes/QUESTION.py`` answers there. Raises SideError."""
    source = (_PROBES / f"{question}.py").read_text("utf-8")
    script = (
        "_scope = {'__name__': 'probe'}\n"
        f"exec(compile({source!r}, {question!r}, 'exec', dont_inherit=True), _scope)\n"
        "answer(_scope['probe'](GIVEN))\n"
    )
    return side.ask(script, dict(given), limit)
