"""On which line of a file each recorded edit stands now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codemods.splice import PlannedEdit, pieces
from patch_ledger.align import align
from patch_ledger.threeway import Located


def lines_now(base: bytes, edits: Sequence[PlannedEdit], found: Located, disk: bytes) -> tuple[int, ...]:
    """The 1-based line of the first thing that each edit put there; of an edit that somebody changed the line where it stood.

    ``found`` is what became of ``edits``, which were made on ``base``, in ``disk``.
    """
    standing = [edit for edit in found.edits if edit is not None]
    firm = iter(_offsets(found.base, standing))
    now = [next(firm) if edit is not None else None for edit in found.edits]
    if None in now:
        alignment = align(b"".join(piece.data for piece in pieces(base, edits)), disk)
        was = _offsets(base, edits)
        now = [new if new is not None else alignment.gap(old, old + 1)[0] for old, new in zip(was, now, strict=True)]
    return tuple(disk.count(b"\n", 0, offset or 0) + 1 for offset in now)


def _offsets(base: bytes, edits: Sequence[PlannedEdit]) -> list[int]:
    """Where the first text of each edit begins in the patched bytes; a shared line break counts where there is nothing else."""
    at: dict[tuple[int, int], int] = {}
    shared: dict[tuple[int, bytes, bytes], int] = {}
    offset = 0
    for piece in pieces(base, edits):
        if piece.edit is not None and piece.splice is not None:
            splice = edits[piece.edit].splices[piece.splice]
            blank = len(splice.inserted) - len(splice.inserted.lstrip(b" \t\r\n"))
            begins = offset + (blank if blank < len(splice.inserted) else 0)
            at[piece.edit, piece.splice] = begins
            if splice.shared:
                shared[splice.start, splice.removed, splice.inserted] = begins
        offset += len(piece.data)
    return [_first(edit, number, at, shared) for number, edit in enumerate(edits)]


def _first(
    edit: PlannedEdit,
    number: int,
    at: Mapping[tuple[int, int], int],
    shared: Mapping[tuple[int, bytes, bytes], int],
) -> int:
    places = []
    for index, splice in enumerate(edit.splices):
        place = at.get((number, index), shared.get((splice.start, splice.removed, splice.inserted)))
        if place is not None:
            places.append((not splice.inserted.strip() and not splice.removed.strip(), place))
    return min(places)[1] if places else 0
