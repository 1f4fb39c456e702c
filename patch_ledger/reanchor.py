"""Taking edits out of a changed file, and giving them their places in what remains."""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise

from codemods.splice import Indent, OverlapError, Piece, PlannedEdit, Splice, render
from patch_ledger.align import Alignment


@dataclass(frozen=True, slots=True)
class Place:
    """The bytes on disk that are a splice's text."""

    start: int
    end: int


Places = dict[tuple[int, int], Place]  # (edit, splice) -> place
Unit = tuple[int, int]  # (edit, indent)


@dataclass(slots=True)
class _Rebased:
    """The new base as it grows, and where things stand in it."""

    out: bytearray = field(default_factory=bytearray)
    starts: dict[tuple[int, int], int] = field(default_factory=dict)
    lines: dict[Unit, list[int]] = field(default_factory=dict)


def reanchor(
    parts: Sequence[Piece],
    edits: Sequence[PlannedEdit],
    disk: bytes,
    alignment: Alignment,
    places: Places,
    chosen: Sequence[int],
) -> tuple[bytes, dict[int, PlannedEdit]] | None:
    """``disk`` without the edits in ``chosen``, and those edits in its offsets; None when they cannot be told apart from the rest.

    The result always renders back to ``disk``.
    """
    taken = _in_order(places, edits, chosen)
    dedents = _dedents(parts, edits, disk, alignment, places, chosen)
    if taken is None or dedents is None:
        return None
    rebased = _take_out(disk, taken, dedents, edits)
    baked = _baked_units(parts, edits, set(chosen))
    moved = {e: _moved(e, edits, rebased, baked) for e in chosen}
    base = bytes(rebased.out)
    try:
        proved = render(base, list(moved.values())) == disk
    except (OverlapError, ValueError):
        return None
    return (base, moved) if proved else None


def _in_order(
    places: Places, edits: Sequence[PlannedEdit], chosen: Sequence[int]
) -> list[tuple[Place, list[tuple[int, int]]]] | None:
    """The places to take out, each once, with the splices that it stands for; None when they overlap."""
    at: dict[tuple[int, int, int, bytes, bytes], list[tuple[int, int]]] = {}
    for e in chosen:
        for s, splice in enumerate(edits[e].splices):
            place = places[e, s]
            at.setdefault((place.start, place.end, splice.start, splice.removed, splice.inserted), []).append((e, s))
    ordered = [(Place(start, end), owners) for (start, end, *_rest), owners in sorted(at.items())]
    if any(one[0].end > other[0].start for one, other in pairwise(ordered)):
        return None
    return ordered


def _take_out(
    disk: bytes,
    taken: Sequence[tuple[Place, list[tuple[int, int]]]],
    dedents: dict[int, list[Unit]],
    edits: Sequence[PlannedEdit],
) -> _Rebased:
    rebased = _Rebased()
    done = 0
    lines = sorted(dedents)
    for place, owners in [*taken, (Place(len(disk), len(disk)), [])]:
        while lines and lines[0] < place.start:
            line = lines.pop(0)
            rebased.out += disk[done:line]
            done = _dedent(disk, line, dedents[line], edits, rebased)
        if place.start > done:
            rebased.out += disk[done : place.start]
        for owner in owners:
            rebased.starts[owner] = len(rebased.out)
        if owners:
            rebased.out += edits[owners[0][0]].splices[owners[0][1]].removed
        done = max(done, place.end)
        while lines and lines[0] < done:
            lines.pop(0)  # a line of the text that was just taken out
    return rebased


def _dedent(disk: bytes, line: int, units: Sequence[Unit], edits: Sequence[PlannedEdit], rebased: _Rebased) -> int:
    """Skip the units at the head of a line, noting where they were; returns the offset after them."""
    at = line
    for e, i in units:
        unit = edits[e].indents[i].unit
        if disk.startswith(unit, at):
            rebased.lines.setdefault((e, i), []).append(len(rebased.out))
            at += len(unit)
    return at


def _dedents(
    parts: Sequence[Piece],
    edits: Sequence[PlannedEdit],
    disk: bytes,
    alignment: Alignment,
    places: Places,
    chosen: Sequence[int],
) -> dict[int, list[Unit]] | None:
    """Which lines (offsets on disk) carry which of our indent units, the outer one first."""
    regions: list[tuple[int, int, Unit]] = []
    for e in chosen:
        for i, indent in enumerate(edits[e].indents):
            opening, closing = places[e, indent.opening], places[e, indent.closing]
            if opening.end > closing.start:
                return None
            regions.append((opening.end, closing.start, (e, i)))
    if not regions:
        return {}
    starts = [0, *(n + 1 for n, byte in enumerate(disk) if byte == 0x0A)]
    known = _KnownLines(parts, alignment)
    quoted = _lines_in_strings(disk)
    found: dict[int, list[Unit]] = {}
    regions.sort(key=lambda region: edits[region[2][0]].order)
    for row, line in enumerate(starts, start=1):
        end = starts[row] if row < len(starts) else len(disk)
        if not disk[line:end].strip():
            continue
        ours = known.units(line)
        units = [
            unit
            for low, high, unit in regions
            if low <= line < high and (unit in ours if ours is not None else row not in quoted)
        ]
        if units:
            found[line] = units
    return found


class _KnownLines:
    """What the ancestor says of a line on disk: which of our units it carries."""

    def __init__(self, parts: Sequence[Piece], alignment: Alignment) -> None:
        self._parts = parts
        self._alignment = alignment
        self._starts = list(accumulate((len(part.data) for part in parts), initial=0))[:-1]
        self._heads: dict[int, set[Unit]] = {}
        head, line = 0, -1
        for start, part in zip(self._starts, parts, strict=True):
            if part.edit is not None and part.indent is not None:
                head, line = (start, part.base) if part.base != line else (head, line)
                self._heads.setdefault(head, set()).add((part.edit, part.indent))

    def units(self, new: int) -> set[Unit] | None:
        """The units at the head of a line that the ancestor has too; None for a line of somebody else, or of another edit."""
        old = self._alignment.old_at(new)
        if old is None or not self._parts:
            return None
        if old in self._heads:
            return self._heads[old]
        at = bisect_right(self._starts, old) - 1
        part, within = self._parts[at], old - self._starts[at]
        before = part.data[within - 1 : within] if within else self._parts[at - 1].data[-1:] if at else b"\n"
        return set() if part.edit is None and before == b"\n" else None


def _lines_in_strings(disk: bytes) -> set[int]:
    """The 1-based lines that begin inside a string; as far as the file can be read."""
    import tokenize  # only for a changed file with an indented region

    rows: set[int] = set()
    opened: list[int] = []
    try:
        for token in tokenize.tokenize(io.BytesIO(disk).readline):
            name = tokenize.tok_name[token.type]
            if name == "STRING":
                rows.update(range(token.start[0] + 1, token.end[0] + 1))
            elif name in ("FSTRING_START", "TSTRING_START"):
                opened.append(token.start[0])
            elif name in ("FSTRING_END", "TSTRING_END") and opened:
                rows.update(range(opened.pop() + 1, token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError, ValueError):
        pass
    return rows


def twins_of(parts: Sequence[Piece], edits: Sequence[PlannedEdit]) -> dict[tuple[int, int], tuple[int, int]]:
    """Shared splices (edit, splice) for which another edit's equal splice stands, and that one."""
    made = {(part.edit, part.splice) for part in parts if part.edit is not None and part.splice is not None}
    owners = {}
    for e, s in made:
        splice = edits[e].splices[s]
        owners[splice.start, splice.removed, splice.inserted] = (e, s)
    return {
        (e, s): owners[splice.start, splice.removed, splice.inserted]
        for e, edit in enumerate(edits)
        for s, splice in enumerate(edit.splices)
        if (e, s) not in made
    }


def _baked_units(
    parts: Sequence[Piece], edits: Sequence[PlannedEdit], chosen: set[int]
) -> dict[tuple[int, int], bytes]:
    """For each splice, the units of enclosing indents that stay in the file and so belong to its text from now on."""
    standing: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for twin, owner in twins_of(parts, edits).items():
        standing.setdefault(owner, []).append(twin)
    baked: dict[tuple[int, int], bytes] = {}
    open_units: list[Unit] = []
    for part in parts:
        if part.edit is None or part.splice is None:
            continue
        owners = [(part.edit, part.splice), *standing.get((part.edit, part.splice), [])]
        closed = {(e, i) for e, s in owners for i, indent in enumerate(edits[e].indents) if indent.closing == s}
        open_units = [unit for unit in open_units if unit not in closed]
        for owner in owners:
            baked[owner] = b"".join(edits[e].indents[i].unit for e, i in open_units if e not in chosen)
        open_units += [(e, i) for e, s in owners for i, indent in enumerate(edits[e].indents) if indent.opening == s]
    return baked


def _moved(e: int, edits: Sequence[PlannedEdit], rebased: _Rebased, baked: dict[tuple[int, int], bytes]) -> PlannedEdit:
    """The edit in offsets of the new base."""
    edit = edits[e]
    splices = tuple(
        _with_unit(replace(splice, start=rebased.starts[e, s]), baked.get((e, s), b""))
        for s, splice in enumerate(edit.splices)
    )
    indents = tuple(
        replace(indent, lines=tuple(sorted({*rebased.lines.get((e, i), []), *_hidden(indent, edits, rebased)})))
        for i, indent in enumerate(edit.indents)
    )
    line = rebased.out.count(b"\n", 0, splices[0].start) + 1 if splices else edit.line
    return replace(edit, splices=splices, indents=indents, line=line)


def _with_unit(splice: Splice, unit: bytes) -> Splice:
    if not unit or not splice.lines:
        return splice
    lines = tuple(line + n * len(unit) for n, line in enumerate(splice.lines))
    return replace(splice, inserted=splice.indented(unit), lines=lines)


def _hidden(indent: Indent, edits: Sequence[PlannedEdit], rebased: _Rebased) -> list[int]:
    """Lines of an indent that another edit replaced: they come back with the bytes that it removed."""
    return [
        start + line - edits[e].splices[s].start
        for (e, s), start in rebased.starts.items()
        for line in indent.lines
        if edits[e].splices[s].start <= line < edits[e].splices[s].end
    ]
