"""Whether taking our text out leaves every line of everybody else whole.

Our text may hold the line break that ends, or begins, a line of the file. When somebody rearranged the lines around it, taking it
out could join two lines that are now theirs, or put restored bytes behind a comment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codemods.splice import Piece, PlannedEdit
from patch_ledger.reanchor import Place, Places, twins_of

Owner = tuple[int, int]  # (edit, splice)
_BREAKS = (b"\n", b"\r\n")


@dataclass(slots=True)
class _Run:
    """Texts of ours that stand without a byte between them: on disk, and what comes back in their place."""

    start: int
    end: int
    owners: list[Owner]
    removed: bytes


def places_in(parts: Sequence[Piece], edits: Sequence[PlannedEdit]) -> Places:
    """Where each splice's text stands in the file as we left it."""
    found: Places = {}
    offset = 0
    for part in parts:
        if part.edit is not None and part.splice is not None:
            found[part.edit, part.splice] = Place(offset, offset + len(part.data))
        offset += len(part.data)
    return found | {twin: found[owner] for twin, owner in twins_of(parts, edits).items()}


def torn(
    ancestor: bytes,
    ours: Mapping[Owner, Place],
    disk: bytes,
    places: Mapping[Owner, Place],
    edits: Sequence[PlannedEdit],
    chosen: Sequence[int],
) -> set[int]:
    """The edits of ``chosen`` that cannot be taken out together without tearing or joining lines of others."""
    found: set[int] = set()
    for run in _runs(ours, places, edits, chosen):
        text = disk[run.start : run.end]
        if b"\n" not in text and b"\n" not in run.removed:
            continue
        left, right = _around(disk, run.start, run.end)
        first, last = ours[run.owners[0]], ours[run.owners[-1]]
        our_left, our_right = _around(ancestor, first.start, last.end)
        moved = (left and not our_left) or (right and not our_right and not text.endswith(b"\n"))
        stood, stands = _alone(left, text, right), _alone(left, run.removed, right)
        joins = any(before and not after for before, after in zip(stood, stands, strict=True))
        if moved or (joins and (left, right) != (our_left, our_right)):
            found |= {e for e, _s in run.owners}
    return found


def _runs(
    ours: Mapping[Owner, Place], places: Mapping[Owner, Place], edits: Sequence[PlannedEdit], chosen: Sequence[int]
) -> list[_Run]:
    runs: list[_Run] = []
    owners = [(e, s) for e in chosen for s in range(len(edits[e].splices))]
    for e, s in sorted(owners, key=lambda owner: (places[owner].start, places[owner].end, ours[owner].start)):
        place, removed = places[e, s], edits[e].splices[s].removed
        if runs and place.start <= runs[-1].end:
            run = runs[-1]
            twin = place == places[run.owners[-1]] and ours[e, s] == ours[run.owners[-1]]
            run.removed += b"" if twin else removed
            run.end = place.end
            run.owners.append((e, s))
        else:
            runs.append(_Run(place.start, place.end, [(e, s)], removed))
    return runs


def _around(data: bytes, start: int, end: int) -> tuple[bytes, bytes]:
    """What stands before ``start`` and behind ``end`` in their lines, without the line's end."""
    line_end = data.find(b"\n", end)
    right = data[end : line_end if line_end >= 0 else len(data)]
    return data[data.rfind(b"\n", 0, start) + 1 : start], right.removesuffix(b"\r")


def _alone(left: bytes, middle: bytes, right: bytes) -> tuple[bool, bool]:
    """Whether ``left`` ends its line, and ``right`` begins its own, with ``middle`` between them."""
    ends = not left or middle.startswith(_BREAKS) or (not middle and not right)
    begins = not right or middle.endswith(b"\n") or (not middle and not left)
    return ends, begins
