"""Hunks between a pristine file and the same file edited by hand, in bytes, and the places where one may as well be cut."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from codemods.nesting import syntax
from codemods.patchtext import hunks, split_lines

_MOST_SLIDES = 40
_MOST_TURNED = 4000


@dataclass(frozen=True)
class Hunk:
    """The base's ``start:end`` give way to ``text``; whole lines but at the end of a file without a final newline."""

    start: int
    end: int
    text: bytes

    @property
    def inserts(self) -> bool:
        return self.start == self.end

    def applied(self, base: bytes) -> bytes:
        return base[: self.start] + self.text + base[self.end :]

    def bounds(self, base: bytes) -> tuple[int, int]:
        """Statements hold the change when they begin at the first offset or before, and end at the second or behind.

        What only inserts bytes can often be moved along equal ones: then the first is its last place, the second its first one.
        """
        old, new = base[self.start : self.end], self.text
        head = _common(old, new)
        tail = min(_common(old[::-1], new[::-1]), min(len(old), len(new)) - head)
        start, end = self.start + head, self.end - tail
        if start < end:
            return start, end
        put = new[head : len(new) - tail]
        return start + _turned(base[start:], put), end - _turned(base[:end][::-1], put[::-1])


def between(base: bytes, edited: bytes, shift: int = 0) -> list[Hunk]:
    """The hunks in order; offsets are moved by ``shift``."""
    starts = [0]
    for line in split_lines(base):
        starts.append(starts[-1] + len(line))
    lines = split_lines(edited)
    found = []
    for hunk in hunks(base, edited, context=0):
        text = b"".join(lines[hunk.new_start : hunk.new_end])
        start, end = starts[hunk.old_start], starts[hunk.old_end]
        if start < end == len(base) and not base.endswith(b"\n") and text.startswith(base[start:end]):
            text, start = text[end - start :], end  # behind a last line without a newline
        found.append(Hunk(start + shift, end + shift, text))
    return found


def _common(one: bytes, other: bytes) -> int:
    most = min(len(one), len(other))
    return next((n for n in range(most) if one[n] != other[n]), most)


def _turned(beside: bytes, put: bytes) -> int:
    """How far ``put`` moves along what stands beside it, without a byte becoming another."""
    moved = 0
    while moved < min(len(beside), _MOST_TURNED) and put and beside[moved] == put[moved % len(put)]:
        moved += 1
    return moved


def joined(base: bytes, parts: list[Hunk]) -> Hunk:
    """Neighbouring hunks as one, what stands between them included."""
    text, at = b"", parts[0].start
    for part in parts:
        text += base[at : part.start] + part.text
        at = part.end
    return Hunk(parts[0].start, parts[-1].end, text)


def slides(base: bytes, hunk: Hunk) -> list[Hunk]:
    """The same insertion, written down at every line where it comes to the same bytes; the given one first."""
    found = [hunk]
    if not hunk.text.endswith(b"\n"):
        return found
    for upward in (True, False):
        current = hunk
        while len(found) < _MOST_SLIDES:
            moved = _up(base, current) if upward else _down(base, current)
            if moved is None:
                break
            found.append(moved)
            current = moved
    return found


def _up(base: bytes, hunk: Hunk) -> Hunk | None:
    line = base[base.rfind(b"\n", 0, max(hunk.start - 1, 0)) + 1 : hunk.start]
    if not line or not hunk.text.endswith(line) or not (len(hunk.text) == len(line) or _at_line(hunk.text, -len(line))):
        return None
    at = hunk.start - len(line)
    return Hunk(at, at, line + hunk.text[: -len(line)])


def _at_line(text: bytes, place: int) -> bool:
    return text[place - 1 : place] == b"\n"


def _down(base: bytes, hunk: Hunk) -> Hunk | None:
    end = base.find(b"\n", hunk.start) + 1
    line = base[hunk.start : end] if end else b""
    if not line or not hunk.text.startswith(line):
        return None
    return Hunk(end, end, hunk.text[len(line) :] + line)


def indent_of(text: bytes) -> bytes:
    """The white space in front of the first line that is not blank."""
    found = re.search(rb"^([ \t]*)[^\s]", text, re.MULTILINE)
    return found.group(1) if found else b""


def parsed(text: bytes) -> tuple[list[ast.stmt], int]:
    """The statements of a piece of a block, and how many lines stand above the piece in what was parsed."""
    try:
        code = text.decode("utf-8")
        head = "if 1:\n" if indent_of(text) else ""
        body = syntax(head + code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [], 0
    return (body[0].body, 1) if head and isinstance(body[0], ast.If) else (body, 0)


def by_statement(text: bytes) -> list[tuple[ast.stmt, bytes]]:
    """The statements of an inserted piece of one block, each with its lines and what stands above it; else nothing."""
    statements, above = parsed(text)
    lines = text.splitlines(keepends=True)
    found: list[tuple[ast.stmt, bytes]] = []
    done = 0
    for number, node in enumerate(statements, 1):
        end = (node.end_lineno or node.lineno) - above
        if end <= done:
            return []  # two on one line
        piece = lines[done:] if number == len(statements) else lines[done:end]
        found.append((node, b"".join(piece)))
        done = end
    return found


def at_dedent(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The piece in two, where a line stands further out than the first: blank lines go with the second part."""
    lines = text.splitlines(keepends=True)
    first = len(indent_of(text))
    for number, line in enumerate(lines):
        if line.strip() and len(line) - len(line.lstrip(b" \t")) < first:
            while number and not lines[number - 1].strip():
                number -= 1
            if number:
                yield b"".join(lines[:number]), b"".join(lines[number:])
            return
