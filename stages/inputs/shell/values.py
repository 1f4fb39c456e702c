"""What words expand to: text that knows where each of its characters was written, and what is not known about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from stages.inputs.shell.nodes import Source

HOLE = "\ufffc"
"""Stands for a piece that is unknown, where a text is looked at in spite of it."""


@dataclass(frozen=True)
class Piece:
    """A run of text. ``text`` is None when it is unknown, and ``why`` says why.

    ``start`` and ``end`` are the characters in ``source`` that it was written as; ``quote`` as in :class:`nodes.Lit`. An
    expansion has the expanded value as ``inner``. ``assumes`` names variables that were taken as not set.
    """

    text: str | None
    source: Source | None = None
    start: int = 0
    end: int = 0
    quote: str = ""
    inner: Value | None = None
    why: str = ""
    assumes: frozenset[str] = frozenset()

    @property
    def exact(self) -> bool:
        """Whether each character was written as itself."""
        return self.inner is None and self.text is not None and len(self.text) == self.end - self.start

    def cut(self, start: int, end: int) -> Piece:
        """A part of a piece without an inner value."""
        assert self.text is not None
        if not self.exact:
            return replace(self, text=self.text[start:end])
        return replace(self, text=self.text[start:end], start=self.start + start, end=self.start + end)


Value = tuple[Piece, ...]


def leaves(value: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces that hold text of their own; what an expansion assumes goes down to them."""
    for piece in value:
        if piece.inner is None:
            yield piece
        else:
            for leaf in leaves(piece.inner):
                yield replace(leaf, assumes=leaf.assumes | piece.assumes) if piece.assumes else leaf


def text_of(value: Iterable[Piece]) -> str | None:
    """The text; None when a piece of it is unknown."""
    found = [leaf.text for leaf in leaves(value)]
    return None if None in found else "".join(text for text in found if text is not None)


def shown(value: Iterable[Piece], hole: str = "…") -> str:
    """The text with ``hole`` for what is unknown."""
    return "".join(hole if leaf.text is None else leaf.text for leaf in leaves(value))


def assumptions(value: Iterable[Piece]) -> frozenset[str]:
    return frozenset().union(*(leaf.assumes for leaf in leaves(value)))


def why_unknown(value: Iterable[Piece]) -> str:
    return next((leaf.why for leaf in leaves(value) if leaf.text is None), "")


def weight(value: Iterable[Piece], most: int = 1 << 62) -> int:
    """How much it takes to look at a value: its pieces and its text; counted no further than ``most``."""
    total = 0
    for leaf in leaves(value):
        total += 1 + len(leaf.text or "") // 16
        if total > most:
            break
    return total


def depth(value: Iterable[Piece]) -> int:
    """How often an expansion stands in an expansion."""
    return max((1 + depth(piece.inner) for piece in value if piece.inner is not None), default=0)


def literal(text: str) -> Value:
    """Text that stands nowhere."""
    return (Piece(text),)


def unknown(why: str, source: Source | None = None, start: int = 0, end: int = 0) -> Value:
    return (Piece(None, source, start, end, why=why),)


def assuming(value: Value, names: frozenset[str]) -> Value:
    return (Piece(None, inner=value, assumes=names),) if names else value


@dataclass(frozen=True)
class Arg:
    """One argument of a command, or one element of an array.

    ``source``, ``start`` and ``end``: the word that it was written as. ``whole``: it is that word, not a part of a longer text
    that was split at blanks. ``loose``: its parts were written in several places, and the word only brings them together.
    ``unquoted``: it came out of an expansion without quotes. ``maybe``: why it is not certain that it is there at all.
    """

    value: Value
    source: Source | None
    start: int
    end: int
    whole: bool = True
    loose: bool = False
    unquoted: bool = False
    maybe: str = ""

    @property
    def text(self) -> str | None:
        return text_of(self.value)

    @property
    def where(self) -> str | None:
        return self.source.where(self.start) if self.source is not None and self.source.path is not None else None


@dataclass(frozen=True)
class Var:
    """A variable: a scalar, or an array of arguments. ``open`` says why an array may have more elements than are known."""

    value: Value = ()
    array: tuple[Arg, ...] | None = None
    open: str = ""

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for variables of equal content; unknown ones are equal only to themselves."""
        if self.array is None:
            text = text_of(self.value)
            return (text, id(self.value) if text is None else None)
        return ("array", self.open, tuple((arg.text, arg.maybe, arg.text is None and id(arg)) for arg in self.array))


def joined(first: Var | None, second: Var | None, why: str) -> Var:
    """A variable after two ways that a script may take. ``why`` names what decides between them."""
    if first is None or second is None:
        known = first or second
        assert known is not None
        if known.array is not None:
            return Var(array=tuple(replace(arg, maybe=arg.maybe or why) for arg in known.array), open=known.open)
        return Var(unknown(why))
    if first.key == second.key:
        return first
    if first.array is not None and second.array is not None:
        return Var(array=tuple(_merged(first.array, second.array, why)), open=first.open or second.open)
    return Var(unknown(why)) if first.array is None and second.array is None else Var(array=(), open=why)


def _merged(first: tuple[Arg, ...], second: tuple[Arg, ...], why: str) -> Iterator[Arg]:
    old, new = ([arg.text if arg.text is not None else f"\0{id(arg)}" for arg in args] for args in (first, second))
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from (x if x.maybe else y for x, y in zip(first[a:b], second[c:d], strict=True))
        else:
            yield from (replace(arg, maybe=arg.maybe or why) for arg in (*first[a:b], *second[c:d]))
