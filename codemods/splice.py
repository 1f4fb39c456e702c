"""Splices: the only form in which an edit reaches a file's bytes.

All offsets are byte offsets in the *base*, the file without any of our edits. A file's patched bytes are always
``render(base, edits)``; taking one edit away, in any order, is a render without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from codemods.errors import FindingError
from locales import _

Rank = tuple[int, int, int]


def trailing(depth: int, step: int = 1) -> Rank:
    """Rank of text that follows a statement at block ``depth``: the deeper statement's text comes first."""
    return (0, -depth, step)


def leading(step: int = 0) -> Rank:
    """Rank of text that precedes a statement; it stands after whatever follows the statement before."""
    return (1, 0, step)


@dataclass(frozen=True, slots=True)
class Splice:
    """``removed`` bytes at ``start`` of the base give way to ``inserted``.

    ``shared``: an equal splice of another edit is the same change (an import, a payload file) and is made once.
    ``rank`` orders splices at one offset. ``lines`` are offsets in ``inserted`` of lines which move right when an
    :class:`Indent` of another edit encloses them.
    """

    start: int
    removed: bytes
    inserted: bytes
    shared: bool = False
    rank: Rank = (1, 0, 0)
    lines: tuple[int, ...] = ()

    @property
    def end(self) -> int:
        return self.start + len(self.removed)

    def indented(self, unit: bytes) -> bytes:
        """``inserted`` with ``unit`` before each of ``lines``."""
        if not unit or not self.lines:
            return self.inserted
        parts, last = [], 0
        for offset in self.lines:
            parts += [self.inserted[last:offset], unit]
            last = offset
        return b"".join(parts) + self.inserted[last:]


@dataclass(frozen=True, slots=True)
class Indent:
    """``unit`` goes before each base line of ``lines`` (offsets), between two splices of the same edit (by index)."""

    unit: bytes
    lines: tuple[int, ...]
    opening: int
    closing: int


@dataclass(frozen=True, slots=True)
class PlannedEdit:
    """One edit of one recipe on one file, found and checked.

    ``digest`` is the recipe's hash with its parameters; ``order`` is (the recipe's order, the edit's place in it);
    ``symbol`` the qualified name that encloses every splice, empty for the module; ``line`` the 1-based line in the base.
    """

    recipe: str
    id: str
    digest: str
    order: tuple[int, int]
    symbol: str = ""
    line: int = 0
    why: str = ""
    splices: tuple[Splice, ...] = ()
    indents: tuple[Indent, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.recipe}/{self.id}"


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of patched bytes and where it comes from.

    ``edit`` is None for base bytes; else the index into the edits that were rendered, with the index of the ``splice`` or of
    the ``indent``. ``base`` is the base offset at which the piece stands.
    """

    data: bytes
    base: int
    edit: int | None = None
    splice: int | None = None
    indent: int | None = None


class OverlapError(FindingError):
    """Two edits change the same bytes, or insert at the same place without an order between their recipes."""


@dataclass(slots=True)
class _Event:
    """A splice or an indent unit on its way into the output. ``opens`` and ``closes`` are (edit, indent) pairs."""

    start: int
    rank: Rank
    order: tuple[int, ...]
    edit: int
    splice: int | None = None
    indent: int | None = None
    opens: list[tuple[int, int]] = field(default_factory=list)
    closes: list[tuple[int, int]] = field(default_factory=list)


def _events(edits: Sequence[PlannedEdit]) -> list[_Event]:
    """Every splice once (equal shared ones are one event) and every indent unit, in the order of the output."""
    events: list[_Event] = []
    shared: dict[tuple[int, bytes, bytes], _Event] = {}
    for e, edit in enumerate(edits):
        for s, splice in enumerate(edit.splices):
            opens = [(e, i) for i, indent in enumerate(edit.indents) if indent.opening == s]
            closes = [(e, i) for i, indent in enumerate(edit.indents) if indent.closing == s]
            order = tuple(-n for n in edit.order) if closes else edit.order  # the outer one closes last
            event = _Event(splice.start, splice.rank, order, e, splice=s, opens=opens, closes=closes)
            if splice.shared:
                first = shared.setdefault((splice.start, splice.removed, splice.inserted), event)
                if first is not event:
                    first.order = min(first.order, event.order)
                    first.opens += opens
                    first.closes += closes
                    continue
            events.append(event)
        for i, indent in enumerate(edit.indents):
            events += [_Event(line, (2, 0, 0), edit.order, e, indent=i) for line in indent.lines]
    return sorted(events, key=lambda event: (event.start, event.rank, event.order))


def pieces(base: bytes, edits: Sequence[PlannedEdit]) -> Iterator[Piece]:
    """The patched bytes, piece by piece, in order.

    Raises OverlapError when two edits claim the same bytes, or when ``base`` does not hold the bytes to remove.
    """
    done = 0  # everything of the base before this offset is out
    open_units: list[tuple[int, int]] = []
    removing: PlannedEdit | None = None
    for event in _events(edits):
        edit = edits[event.edit]
        if event.start < done:
            if event.indent is not None:
                continue  # the line was removed by a replacement inside the block
            raise _overlap(removing or edit, edit)
        if event.start > done:
            yield Piece(base[done : event.start], done)
            done = event.start
        if event.indent is not None:
            yield Piece(edit.indents[event.indent].unit, event.start, event.edit, indent=event.indent)
            continue
        assert event.splice is not None
        splice = edit.splices[event.splice]
        if base[splice.start : splice.end] != splice.removed:
            raise OverlapError(
                _("{edit} does not fit the bytes at offset {offset}").format(edit=edit.name, offset=splice.start)
            )
        open_units = [pair for pair in open_units if pair not in event.closes]
        unit = b"".join(edits[e].indents[i].unit for e, i in open_units)
        yield Piece(splice.indented(unit), event.start, event.edit, splice=event.splice)
        open_units += event.opens
        if splice.removed:
            removing = edit
        done = splice.end
    if done < len(base):
        yield Piece(base[done:], done)


def _overlap(first: PlannedEdit, second: PlannedEdit) -> OverlapError:
    return OverlapError(_("{first} and {second} change the same bytes").format(first=first.name, second=second.name))


def render(base: bytes, edits: Sequence[PlannedEdit]) -> bytes:
    """The file's bytes with these edits: ``base`` itself when there are none."""
    return b"".join(piece.data for piece in pieces(base, edits))


def check_order(path: str, edits: Sequence[PlannedEdit]) -> None:
    """Refuse two recipes that insert at the same place without an order between them."""
    seen: dict[tuple[int, Rank], tuple[PlannedEdit, Splice]] = {}
    for edit in edits:
        for splice in edit.splices:
            key = (splice.start, splice.rank)
            other, theirs = seen.setdefault(key, (edit, splice))
            if other.recipe == edit.recipe or other.order[0] != edit.order[0]:
                continue
            if splice.shared and theirs.shared:
                continue
            raise OverlapError(
                _("{first} and {second} insert at the same place, and nothing says which comes first").format(
                    first=other.name, second=edit.name
                ),
                where=f"{path}:{edit.line}",
                todo=_("give one of the two recipes an `order:`"),
            )
