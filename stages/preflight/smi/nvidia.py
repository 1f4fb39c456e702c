"""``nvidia-smi --query-…``: comma separated lines, once for the cards and once for who computes on them."""

from __future__ import annotations

import csv
from collections.abc import Sequence

from stages.preflight.smi.card import Card, Holder, UnreadableError, number

CARDS = ("nvidia-smi", "--query-gpu=index,uuid,name,memory.used,memory.total", "--format=csv,noheader,nounits")
HOLDERS = ("nvidia-smi", "--query-compute-apps=gpu_uuid,pid,process_name,used_memory", "--format=csv,noheader,nounits")
COMMANDS = (CARDS, HOLDERS)


def parse(outputs: Sequence[str]) -> list[Card]:
    """``outputs``: of CARDS and of HOLDERS. Raises UnreadableError."""
    rows = [[cell.strip() for cell in row] for row in csv.reader(outputs[0].splitlines()) if row]
    cards = [row for row in rows if len(row) >= 5 and row[1].startswith(("GPU-", "MIG-"))]
    if not cards or len(cards) != len(rows):
        raise UnreadableError("no list of cards")
    holders = _holders(outputs[1], {row[1] for row in cards})
    return [
        Card(
            "nvidia",
            row[1],
            number(row[0]),
            ", ".join(row[2:-2]),
            None,
            number(row[-2]),
            number(row[-1]),
            None if holders is None else tuple(holders.get(row[1], ())),
        )
        for row in cards
    ]


def _holders(text: str, known: set[str]) -> dict[str, list[Holder]] | None:
    """By card; None when a line cannot be read."""
    out: dict[str, list[Holder]] = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("No running"):
            continue
        cells = line.split(",")
        card, pid = cells[0].strip(), number(cells[1]) if len(cells) > 3 else None
        if pid is None or card not in known:
            return None
        out.setdefault(card, []).append(Holder(pid, ",".join(cells[2:-1]).strip(), number(cells[-1])))
    return out
