"""``rocm-smi --json``: cards by ``cardN``, processes under ``system`` as ``PIDn: "name, cards, VRAM, SDMA, occupancy"``.

The second word is how many cards a process uses, not which: with more than one card, who holds which is not told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from stages.preflight.smi.card import Card, Holder, UnreadableError, number

COMMAND = ("rocm-smi", "--showuniqueid", "--showproductname", "--showmeminfo", "vram", "--showpids", "--json")
_CARD = re.compile(r"card(\d+)$")
_PID = re.compile(r"PID ?(\d+)$")
_MB = 1 << 20


def parse(outputs: Sequence[str]) -> list[Card]:
    """Raises UnreadableError."""
    text = outputs[0]
    try:  # warnings may stand before it
        told = json.loads(text[text.index("{") :])
    except (ValueError, RecursionError) as error:
        raise UnreadableError("no JSON") from error
    cards = {
        int(found[1]): about for key, about in told.items() if (found := _CARD.match(key)) and isinstance(about, dict)
    }
    if not cards:
        raise UnreadableError("no cards")
    processes = _processes(told.get("system"))
    holders: tuple[Holder, ...] | None = tuple(processes)
    if processes and len(cards) > 1:
        holders = None
    return [_card(index, about, holders) for index, about in sorted(cards.items())]


def _card(index: int, about: dict[str, Any], holders: tuple[Holder, ...] | None) -> Card:
    lower = {key.lower(): str(value) for key, value in about.items()}
    used, total = number(lower.get("vram total used memory (b)", "")), number(lower.get("vram total memory (b)", ""))
    return Card(
        "rocm",
        lower.get("unique id", f"card{index}"),
        index,
        lower.get("card series") or lower.get("card model") or "",
        None,
        None if used is None else used // _MB,
        None if total is None else total // _MB,
        holders,
    )


def processes(output: str) -> list[Holder]:
    """Everybody who has memory on some card. Raises UnreadableError."""
    try:
        return _processes(json.loads(output[output.index("{") :]).get("system"))
    except (ValueError, RecursionError) as error:
        raise UnreadableError("no JSON") from error


def _processes(system: Any) -> list[Holder]:
    out = []
    for key, value in (system if isinstance(system, dict) else {}).items():
        if (found := _PID.match(str(key))) and isinstance(value, str):
            words = value.split(",")
            memory = number(words[-3]) if len(words) >= 5 else None
            if memory != 0:
                out.append(
                    Holder(int(found[1]), ",".join(words[:-4]).strip(), None if memory is None else memory // _MB)
                )
    return out
