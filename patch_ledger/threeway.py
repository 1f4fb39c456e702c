"""Finding our edits in a file that somebody changed since, and the base without them.

Three versions: the base, the ancestor (the base with our edits) and what is on disk. Whatever is found is proved: the
new base, rendered with the edits at their new places, must give the bytes on disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codemods.splice import Piece, PlannedEdit, pieces
from patch_ledger.align import Alignment, align
from patch_ledger.reanchor import Place, Places, reanchor, twins_of
from patch_ledger.seams import places_in, torn
from patch_ledger.symbols import span
from patch_ledger.traces import is_gone, is_left

APPLIED = "applied"  # the file is as we left it
NEARBY = "nearby"  # the file was changed, our bytes were not
INSIDE = "inside"  # our bytes were changed
GONE = "gone"  # our bytes are no longer there
HALF = "half"  # some of an edit's places are there, some are gone

_WORD = re.compile(rb"\w")


@dataclass(frozen=True, slots=True)
class Located:
    """For each edit, in order: its state, and itself in offsets of ``base``; None when it could not be taken out.

    ``base`` are the bytes on disk without the edits that could.
    """

    states: tuple[str, ...]
    base: bytes
    edits: tuple[PlannedEdit | None, ...]

    @property
    def whole(self) -> bool:
        """Whether every edit is either intact or gone."""
        return all(state in (APPLIED, NEARBY, GONE) for state in self.states)

    @property
    def intact(self) -> tuple[PlannedEdit, ...]:
        return tuple(edit for edit in self.edits if edit is not None)


def locate_in(base: bytes | None, edits: Sequence[PlannedEdit], disk: bytes) -> Located:
    """:func:`locate`, where ``base`` is None for a file that our edits added: it is ours as a whole, so a change is one inside."""
    found = locate(base or b"", edits, disk)
    if base is not None or all(state in (APPLIED, GONE) for state in found.states):
        return found
    states = tuple(GONE if state == GONE else INSIDE for state in found.states)
    return Located(states, disk, (None,) * len(edits))


def locate(base: bytes, edits: Sequence[PlannedEdit], disk: bytes) -> Located:
    """Find each of ``edits``, which were applied to ``base``, in the bytes on disk."""
    parts = tuple(pieces(base, edits))
    ancestor = b"".join(part.data for part in parts)
    if disk == ancestor:
        return Located((APPLIED,) * len(edits), base, tuple(edits))
    if disk == base:
        return Located((GONE,) * len(edits), base, (None,) * len(edits))
    alignment = align(ancestor, disk)
    places, certain = _find(parts, edits, ancestor, disk, alignment)
    found = [e for e, edit in enumerate(edits) if all((e, s) in places for s in range(len(edit.splices)))]
    safe = [e for e in found if all((e, s) in certain for s in range(len(edits[e].splices)))]
    ours = places_in(parts, edits)
    while bad := torn(ancestor, ours, disk, places, edits, found):
        found = [e for e in found if e not in bad]
    tried = reanchor(parts, edits, disk, alignment, places, found)
    if tried is None:
        whole, found = found, []
        for e in sorted(whole, key=lambda e: e not in safe):
            more = sorted([*found, e])
            if torn(ancestor, ours, disk, places, edits, more):
                continue
            better = reanchor(parts, edits, disk, alignment, places, more)
            found, tried = (more, better) if better is not None else (found, tried)
    new_base, moved = tried or (disk, {})
    states = tuple(
        NEARBY if e in moved else _state_of(parts, edits, e, base, disk, new_base, alignment, places)
        for e in range(len(edits))
    )
    return Located(states, new_base, tuple(moved.get(e) for e in range(len(edits))))


def _find(
    parts: Sequence[Piece], edits: Sequence[PlannedEdit], ancestor: bytes, disk: bytes, alignment: Alignment
) -> tuple[Places, set[tuple[int, int]]]:
    """Where each splice's text stands on disk; and which of them the alignment alone found."""
    places: Places = {}
    missing: list[tuple[Piece, int]] = []
    offset = 0
    for part in parts:
        if part.edit is not None and part.splice is not None:
            at = _aligned(part.data, offset, alignment)
            if at is None:
                missing.append((part, offset))
            else:
                places[part.edit, part.splice] = Place(at, at + len(part.data))
        offset += len(part.data)
    certain = set(places)
    for part, offset in missing:
        assert part.edit is not None and part.splice is not None
        place = _by_context(part.data, offset, ancestor, disk, edits[part.edit].symbol, places.values())
        if place is not None:
            places[part.edit, part.splice] = place
    for twin, owner in twins_of(parts, edits).items():
        if owner in places:
            places[twin] = places[owner]
            certain |= {twin} if owner in certain else set()
    return places, certain


def _aligned(data: bytes, offset: int, alignment: Alignment) -> int | None:
    """The place of our text by alignment. Text without a word (a bracket) must keep a neighbour, or it could be anybody's."""
    end = offset + len(data)
    if data and not _WORD.search(data):
        before = alignment.find(max(offset - 1, 0), end)
        after = alignment.find(offset, min(end + 1, alignment.old_size))
        if before is None and after is None:
            return None
    return alignment.find(offset, end)


def _by_context(
    data: bytes, offset: int, ancestor: bytes, disk: bytes, symbol: str, taken: Iterable[Place]
) -> Place | None:
    """The one place inside the symbol where our text stands, helped by the lines around it when it stands there twice."""
    if not _WORD.search(data):
        return None
    low, high = span(disk, symbol)
    end = offset + len(data)
    before = ancestor[ancestor.rfind(b"\n", 0, max(offset - 1, 0)) + 1 : offset]
    line_end = ancestor.find(b"\n", end)
    after = ancestor[end : line_end + 1 if line_end >= 0 else len(ancestor)]
    for left, right in ((before, after), (before, b""), (b"", after), (b"", b"")):
        hits = []
        at = disk.find(left + data + right, low, high)
        while at >= 0:
            place = Place(at + len(left), at + len(left) + len(data))
            if not any(place.start < other.end and other.start < place.end for other in taken):
                hits.append(place)
            at = disk.find(left + data + right, at + 1, high)
        if len(hits) == 1:
            return hits[0]
    return None


def _state_of(
    parts: Sequence[Piece],
    edits: Sequence[PlannedEdit],
    e: int,
    base: bytes,
    disk: bytes,
    rest: bytes,
    alignment: Alignment,
    places: Places,
) -> str:
    """The state of an edit that could not be taken out; ``rest`` is the file without those that could."""
    twins = twins_of(parts, edits)
    here, gone = 0, 0
    for s in range(len(edits[e].splices)):
        owner = twins.get((e, s), (e, s))
        if owner in places:
            here += 1
            continue
        offset = 0
        for part in parts:
            if (part.edit, part.splice) == owner:
                break
            offset += len(part.data)
        low, high = alignment.gap(offset, offset + len(part.data))
        gone += is_gone(edits[e].splices[s], base, rest, disk[low:high])
    if gone == len(edits[e].splices):
        return INSIDE if is_left(edits[e], base, rest) else GONE
    return HALF if here and gone and here + gone == len(edits[e].splices) else INSIDE
