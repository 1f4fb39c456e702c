"""``npu-smi info``: a table of two lines for each chip, and a table of processes.

Three layouts are known: ``NPU Name | Health | …`` with one or more chips under each NPU (910, 910B; with ``Phy-ID`` on cards of two
chips, with ``Device`` on 310P), and ``NPU ID | Name | Health | …`` (950). Newer tools add ``Process id in container``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from stages.preflight.smi.card import Card, Holder, UnreadableError, number

COMMAND = ("npu-smi", "info")
_PAIR = re.compile(r"(\d+)\s*/\s*(\d+)")
_NOBODY = re.compile(r"No running processes found in NPU\s+(\d+)")


@dataclass
class _Processes:
    """``told``: the NPUs that the table speaks of."""

    told: set[int] = field(default_factory=set)
    holders: dict[tuple[int, int], list[Holder]] = field(default_factory=dict)


def parse(outputs: Sequence[str]) -> list[Card]:
    """Raises UnreadableError."""
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in outputs[0].splitlines()
        if line.lstrip().startswith("|")
    ]
    start = next((at for at, row in enumerate(rows) if any(cell.startswith("Process id") for cell in row)), len(rows))
    chips = list(_chips(rows[:start]))
    if not chips:
        raise UnreadableError("no table of cards")
    processes = _processes(rows[start:])
    return [
        replace(card, holders=tuple(processes.holders.get((npu, chip), ())) if npu in processes.told else None)
        for npu, chip, card in chips
    ]


def _chips(rows: list[list[str]]) -> Iterator[tuple[int, int, Card]]:
    """(NPU, chip, card without holders)."""
    upper: list[str] | None = None
    wide = False
    for row in rows:
        if any(cell == "Health" for cell in row):
            wide, upper = row[0] == "NPU ID", None
        elif upper is None and len(row) > 2 and row[0].split()[:1] and row[0].split()[0].isdecimal():
            upper = row
        elif upper is not None:
            yield _chip(upper, row, wide)
            upper = None


def _chip(upper: list[str], lower: list[str], wide: bool) -> tuple[int, int, Card]:
    try:
        if wide:
            npu, name, health = int(upper[0]), upper[1], upper[2]
            chip, index, bus, rest = 0, npu, lower[2], lower[3]
        else:
            first, _space, name = upper[0].partition(" ")
            npu, health = int(first), upper[1]
            numbers = [int(word) for word in lower[0].split()]
            chip, bus, rest = numbers[0], lower[1], lower[2]
            index = numbers[1] if len(numbers) > 1 else npu
    except (ValueError, IndexError) as error:
        raise UnreadableError(f"{upper} {lower}") from error
    pairs = [(int(used), int(total)) for used, total in _PAIR.findall(rest)]
    used, total = next(((used, total) for used, total in reversed(pairs) if total), (None, None))
    identity = f"{bus}/{chip}" if ":" in bus else f"{npu}/{chip}"  # two chips may stand at one bus id
    return npu, chip, Card("npu", identity, index, name.strip(), health, used, total, None)


def _processes(rows: list[list[str]]) -> _Processes:
    out = _Processes()
    with_inside = bool(rows) and any(cell.startswith("Process id in container") for cell in rows[0])
    for row in rows[1:]:
        if nobody := _NOBODY.search(row[0]):
            out.told.add(int(nobody[1]))
            continue
        place = [int(word) for word in row[0].split() if word.isdecimal()]
        pid = number(row[1]) if len(row) > 3 else None
        if not place or pid is None:
            continue
        npu, chip = place[0], place[1] if len(place) > 1 else 0
        inside = number(row[4]) if with_inside and len(row) > 4 else None
        out.told.add(npu)
        out.holders.setdefault((npu, chip), []).append(Holder(pid, row[2], number(row[3]), inside))
    return out
