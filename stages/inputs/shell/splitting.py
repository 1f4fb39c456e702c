"""Splitting at blanks, joining, and the texts of ``${name%pattern}`` and its kin."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import translate

from stages.inputs.shell.values import Arg, Piece, Value, leaves, literal, shown, unknown


def has_blank(pieces: Value) -> bool:
    return any(leaf.text is not None and re.search(r"[ \t\n]", leaf.text) for leaf in leaves(pieces))


def atoms(pieces: Value, assumed: frozenset[str] = frozenset()) -> Iterator[Piece]:
    """Pieces that a split can be made in or between: an expansion without a blank in its value stays one."""
    for piece in pieces:
        assumes = piece.assumes | assumed
        if piece.inner is not None and has_blank(piece.inner):
            yield from atoms(piece.inner, assumes)
        else:
            yield replace(piece, assumes=assumes)


def runs(piece: Piece) -> Iterator[Piece | None]:
    """The runs between blanks of a piece; None for an empty one at either end."""
    if piece.inner is not None or piece.text is None:
        yield piece
        return
    at = 0
    for blank in re.finditer(r"[ \t\n]+", piece.text):
        yield piece.cut(at, blank.start()) if blank.start() > at else None
        at = blank.end()
    yield piece.cut(at, len(piece.text)) if at < len(piece.text) else None


def resplit(arg: Arg) -> Iterator[Arg]:
    """An array's element that comes out of an expansion without quotes."""
    if not has_blank(arg.value):
        yield replace(arg, unquoted=True)
        return
    for word in shown(arg.value, "\0").split():
        value = unknown("") if "\0" in word else literal(word)
        yield replace(arg, value=value, whole=False, loose=True, unquoted=True)


def spaced(args: Sequence[Arg]) -> Value:
    """All arguments in one text."""
    pieces: list[Piece] = []
    for number, arg in enumerate(args):
        pieces += [Piece(" ")] if number else []
        pieces += unknown(arg.maybe) if arg.maybe else arg.value
    return tuple(pieces)


_LONGEST = 2_000  # characters that a pattern is tried on, at each of their places
_GROWN = 1 << 20


def transform(op: str, text: str, arg: str) -> str | None:
    if op in ("^^", ",,", "^", ","):
        whole = len(op) == 2
        change = str.upper if "^" in op else str.lower
        return change(text) if whole else change(text[:1]) + text[1:]
    if op in ("%", "%%", "#", "##"):
        if len(text) > _LONGEST or len(arg) > _LONGEST:
            return None
        pattern = re.compile(translate(arg))
        places = range(len(text) + 1)
        if op in ("%", "%%"):
            hits = [at for at in places if pattern.match(text[at:])]
            return text[: hits[-1] if op == "%" else hits[0]] if hits else text
        hits = [at for at in places if pattern.match(text[:at])]
        return text[hits[0] if op == "#" else hits[-1] :] if hits else text
    if op in ("/", "//"):
        old, _slash, new = arg.partition("/")
        if not old or re.search(r"[*?\[#%]", old):
            return None
        if text.count(old) * len(new) > _GROWN:
            return None
        return text.replace(old, new, -1 if op == "//" else 1)
    if op == ":":
        found = re.fullmatch(r"\s*(\d+)(?::\s*(\d+))?\s*", arg)
        if found is None:
            return None
        start = int(found.group(1))
        return text[start : start + int(found.group(2))] if found.group(2) else text[start:]
    return None
