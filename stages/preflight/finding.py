"""What a check found: ok, a problem, or not known; with the reason and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OK, PROBLEM, UNKNOWN = "ok", "problem", "unknown"


@dataclass(frozen=True)
class Finding:
    """``check``: the check's name; ``place``: train, infer or here; ``facts``: what programs want to know."""

    check: str
    place: str
    state: str
    what: str
    todo: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {
            "check": self.check,
            "place": self.place,
            "state": self.state,
            "what": self.what,
            "todo": self.todo or None,
            "facts": dict(self.facts),
        }


def passed(findings: list[Finding]) -> bool:
    """No problem stands, and something was looked at."""
    return bool(findings) and all(one.state != PROBLEM for one in findings)
