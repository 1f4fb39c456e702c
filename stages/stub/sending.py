"""A payload, put to a side's interpreter together with the files that it imports."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from locales import _
from stages.sides import Side, SideError

_FOLDER = Path(__file__).parent
_LIMIT = 7200.0  # seconds: it reads and writes what may be many gigabytes
_SCRIPT = """
import sys, types
for name, text in GIVEN["files"]:
    module = sys.modules[name] = types.ModuleType(name)
    if text is None:
        module.__path__ = []
    else:
        exec(compile(text, name, "exec", dont_inherit=True), module.__dict__)
    above, _, last = name.rpartition(".")
    if above:
        setattr(sys.modules[above], last, module)
answer(sys.modules[GIVEN["files"][-1][0]].main(GIVEN["given"]))
"""


def ask(side: Side, payload: str, given: Any, rules: Iterable[str] = ()) -> dict[str, Any]:
    """What ``main(given)`` of ``payloads/PAYLOAD.py`` answers there. Raises SideError, also when torch is not there."""
    files: list[tuple[str, str | None]] = [("probepatch_stub", None), ("probepatch_stub.rules", None)]
    files += [(f"probepatch_stub.rules.{name}", _text("rules", name)) for name in rules]
    files += [(f"probepatch_stub.{name}", _text("payloads", name)) for name in ("plain_tensors", payload)]
    told: dict[str, Any] = side.ask(_SCRIPT, {"files": files, "given": given}, _LIMIT)
    if told["error"]:
        raise SideError(
            _("tensors cannot be read with the interpreter of the {side} side").format(side=side.name),
            why=told["error"],
            todo=_("name the interpreter that runs the workers; it has torch"),
        )
    return told


def _text(folder: str, name: str) -> str:
    return (_FOLDER / folder / f"{name}.py").read_text("utf-8")
