"""One line of a patched file: which edits put it there or changed it, and whether the rest is the file's own. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from codemods.splice import Piece, PlannedEdit, pieces
from patch_ledger.align import Alignment, align
from patch_ledger.threeway import locate

LINE = "line"  # the whole line is the edit's
PART = "part"  # the edit's code stands within the line
INDENT = "indent"  # the edit moved the line to the right
REMOVED = "removed"  # code that stood here was taken out by the edit
CHANGED = "changed"  # the edit put it here, and somebody changed it since

_BLANK = b" \t\r\n\f"
_END = re.compile(rb"\r?\n\Z")


@dataclass(frozen=True, slots=True)
class Share:
    """What the edit with this index (in the ledger's order) did to the line."""

    edit: int
    did: str


@dataclass(frozen=True, slots=True)
class LineOrigin:
    """``shares`` of our edits; ``own`` the stretches of the line that are none of ours, as offsets in ``base``: the file without
    the edits that can be told apart from it."""

    shares: tuple[Share, ...]
    own: tuple[tuple[int, int], ...]
    base: bytes


def line_span(data: bytes, line: int) -> tuple[int, int] | None:
    """The offsets of a line (1-based) without its end, as editors count; of an empty line with it. None when there is none."""
    starts = [0, *(found.end() for found in re.finditer(rb"\n", data))]
    if starts[-1] == len(data):
        starts.pop()
    if not 1 <= line <= len(starts):
        return None
    start = starts[line - 1]
    whole = data[start : starts[line] if line < len(starts) else len(data)]
    text = _END.sub(b"", whole)
    return start, start + len(text or whole)


def origin(base: bytes, edits: Sequence[PlannedEdit], disk: bytes, span: tuple[int, int]) -> LineOrigin:
    """Where the line at ``span`` of ``disk`` comes from. ``edits`` were made on ``base``; the file may have been changed since."""
    located = locate(base, edits, disk)
    standing = [(number, edit) for number, edit in enumerate(located.edits) if edit is not None]
    numbers = [number for number, _edit in standing]
    moved = [edit for _number, edit in standing]
    placed = list(_placed(pieces(located.base, moved)))
    own = tuple(_own(placed, disk, span))
    shares = [Share(numbers[share.edit], share.did) for share in _shares(placed, moved, disk, span, bool(own))]
    stuck = [number for number in range(len(edits)) if number not in numbers]
    changed = list(_changed(base, edits, stuck, disk, span)) if stuck else []
    if any(share.did == LINE for share in changed):
        own = ()
    return LineOrigin(tuple(dict.fromkeys([*shares, *changed])), own, located.base)


Placed = tuple[int, int, Piece]  # start, end, and what stands there


def _placed(parts: Iterator[Piece]) -> Iterator[Placed]:
    at = 0
    for part in parts:
        yield at, at + len(part.data), part
        at += len(part.data)


def _own(placed: Sequence[Placed], disk: bytes, span: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """The line's stretches of the base that hold more than blanks; an empty line counts as it is."""
    for start, end, part in placed:
        low, high = max(start, span[0]), min(end, span[1])
        if part.edit is not None or low >= high:
            continue
        if disk[low:high].strip(_BLANK) or not disk[span[0] : span[1]].strip(_BLANK):
            yield part.base + low - start, part.base + high - start


def _shares(
    placed: Sequence[Placed], edits: Sequence[PlannedEdit], disk: bytes, span: tuple[int, int], shared_line: bool
) -> Iterator[Share]:
    last = span[1] >= len(disk.rstrip(b"\r\n"))
    for start, end, part in placed:
        if part.edit is None:
            continue
        for number in _owners(part, edits):
            if part.indent is not None:
                if start < span[1] and end > span[0]:
                    yield Share(number, INDENT)
            elif start == end:
                if span[0] <= start <= span[1] or (last and start == len(disk)):
                    yield Share(number, REMOVED)
            elif start < span[1] and end > span[0]:
                text = disk[max(start, span[0]) : min(end, span[1])].strip(_BLANK)
                if text or not disk[span[0] : span[1]].strip(_BLANK):
                    yield Share(number, PART if shared_line else LINE)
    yield from _moved_along(placed, edits, span)


def _owners(part: Piece, edits: Sequence[PlannedEdit]) -> list[int]:
    """The edits that wanted this piece: of a shared one (an import) several."""
    assert part.edit is not None
    if part.splice is None:
        return [part.edit]
    mine = edits[part.edit].splices[part.splice]
    if not mine.shared:
        return [part.edit]
    key = (mine.start, mine.removed, mine.inserted)
    return [
        number
        for number, edit in enumerate(edits)
        if any(one.shared and (one.start, one.removed, one.inserted) == key for one in edit.splices)
    ]


def _moved_along(placed: Sequence[Placed], edits: Sequence[PlannedEdit], span: tuple[int, int]) -> Iterator[Share]:
    """An inserted line inside another edit's ``around`` moved to the right with the block."""
    where = {(part.edit, part.splice): (start, end) for start, end, part in placed if part.splice is not None}
    holding = {
        part.edit for start, end, part in placed if part.splice is not None and start < span[1] and end > span[0]
    }
    for number, edit in enumerate(edits):
        for indent in edit.indents:
            opening, closing = where.get((number, indent.opening)), where.get((number, indent.closing))
            inside = opening and closing and opening[1] <= span[0] and span[1] <= closing[0]
            if inside and holding - {number, None}:
                yield Share(number, INDENT)


def _changed(
    base: bytes, edits: Sequence[PlannedEdit], stuck: Sequence[int], disk: bytes, span: tuple[int, int]
) -> Iterator[Share]:
    """Edits that cannot be taken out any more, by what we left: the line is still theirs, or stands where theirs was."""
    placed = list(_placed(pieces(base, edits)))
    alignment = align(b"".join(part.data for _start, _end, part in placed), disk)
    for start, end, part in placed:
        if part.edit is None or part.splice is None or start == end:
            continue
        owners = [number for number in _owners(part, edits) if number in stuck]
        low, high = alignment.gap(start, end)
        if not owners or not (low < span[1] and high > span[0]):
            continue
        did = _kept(alignment, disk, span, start, end)
        yield from (Share(number, did) for number in owners)


def _kept(alignment: Alignment, disk: bytes, span: tuple[int, int], start: int, end: int) -> str:
    """Whether every byte of the line is one that the piece at ``start:end`` of our version put there, in its order."""
    text = disk[span[0] : span[1]]
    low = span[0] + len(text) - len(text.lstrip(_BLANK))
    high = span[0] + len(text.rstrip(_BLANK))
    olds = [alignment.old_at(at) for at in range(low, high)]
    if not olds or olds[0] is None or olds != list(range(olds[0], olds[0] + len(olds))):
        return CHANGED
    return LINE if start <= olds[0] and olds[0] + len(olds) <= end else CHANGED


def kept_from(original: bytes, base: bytes, stretches: Sequence[tuple[int, int]]) -> bool:
    """Whether these stretches of ``base`` stand in ``original`` too, byte for byte and in their order."""
    alignment = align(original, base)
    for start, end in stretches:
        olds = [alignment.old_at(at) for at in range(start, end)]
        if olds[0] is None or olds != list(range(olds[0], olds[0] + len(olds))):
            return False
    return True
