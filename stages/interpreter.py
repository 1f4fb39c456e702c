"""Whether a side's prefix and interpreter answer, and which interpreter it really is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from locales import _
from stages.sides import Side, SideError

_SCRIPT = """
import platform, sys
answer({
    "executable": sys.executable,
    "version": platform.python_version(),
    "implementation": platform.python_implementation(),
    "platform": platform.platform(),
    "host": platform.node(),
})
"""


@dataclass(frozen=True)
class Interpreter:
    """Who answered. ``executable`` is empty where the interpreter does not know its own path."""

    executable: str
    version: str
    implementation: str
    platform: str
    host: str

    def __str__(self) -> str:
        return f"{self.implementation} {self.version}, {self.executable or '?'}, {self.platform}, {self.host}"


def who_answers(side: Side) -> Interpreter:
    """Ask it. Raises SideError."""
    told: Any = side.ask(_SCRIPT)
    names = ("executable", "version", "implementation", "platform", "host")
    if not isinstance(told, dict) or any(not isinstance(told.get(name), (str, type(None))) for name in names):
        raise SideError(_("the interpreter of the {side} side gives an answer of another form").format(side=side.name))
    return Interpreter(*(told.get(name) or "" for name in names))
