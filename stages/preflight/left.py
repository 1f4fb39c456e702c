"""What an earlier preflight left on the card, as far as later commands rest on it: checked, since anybody can edit a card."""

from __future__ import annotations

from typing import Any

from locales import _
from stages.card.card import Card, CardError
from stages.card.evidence import evidence
from stages.card.order import PREFLIGHT
from stages.card.shape import problems
from stages.preflight.places import HERE, SIDES

_TEXT, _MAYBE = {"type": "string"}, {"type": ["string", "null"]}
_NUMBER, _FLAG = {"type": "integer"}, {"type": "boolean"}
_PROCESS = {
    "place": {"enum": [*SIDES, HERE]},
    "pid": _NUMBER,
    "start": _NUMBER,
    "boot": _MAYBE,
    "namespace": _MAYBE,
    "kind": _MAYBE,
    "command": _TEXT,
    "nested": _FLAG,
    "inside": _NUMBER,
}
_LEFT = {
    "type": "object",
    "properties": {
        "baseline_mb": {"type": "object", "additionalProperties": _NUMBER},
        "cards_before": {"type": "object"},
        "processes": {"type": "array", "items": {"type": "object", "properties": _PROCESS, "required": list(_PROCESS)}},
        "stopped": {"type": "array", "items": {"type": "object"}},
    },
}


def left(card: Card) -> dict[str, Any]:
    """The result of the stage; empty when there is none. Raises CardError."""
    found = evidence(card, PREFLIGHT)
    if found is None:
        return {}
    result = dict(found.result)
    wrong = next(problems(_LEFT, result, ".stages.1.result"), None)
    if wrong is not None:
        raise CardError(_("what the preflight left on the card is not of its form"), why=wrong)
    return result
