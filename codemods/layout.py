"""Inserted code takes the block's own indentation, its unit and its neighbour's line ending."""

from __future__ import annotations

import io
import tokenize
from dataclasses import dataclass

from codemods.errors import InvalidError
from locales import _


class SnippetError(InvalidError):
    """A recipe's code to insert cannot be read as Python."""


@dataclass(frozen=True, slots=True)
class Text:
    """Whole lines, each with its line ending; ``lines`` are the offsets of those that an enclosing indent would move."""

    data: bytes
    lines: tuple[int, ...]

    def __add__(self, below: Text) -> Text:
        return Text(self.data + below.data, (*self.lines, *(line + len(self.data) for line in below.lines)))


def inside_strings(code: str) -> set[int]:
    """The 1-based lines of ``code`` that begin inside a string token. Raises SnippetError."""
    inside: set[int] = set()
    opened: list[int] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(code, newline="").readline):
            kind = tokenize.tok_name[token.type]
            if kind.endswith("STRING_START"):
                opened.append(token.start[0])
            elif kind.endswith("STRING_END"):
                inside.update(range(opened.pop() + 1, token.end[0] + 1))
            elif token.type == tokenize.STRING:
                inside.update(range(token.start[0] + 1, token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError) as error:
        raise SnippetError(_("the code cannot be read as Python"), why=str(error)) from error
    return inside


def _author_unit(lines: list[str], inside: set[int]) -> int:
    widths = [
        len(line) - len(line.lstrip(" "))
        for number, line in enumerate(lines, 1)
        if line.strip() and number not in inside
    ]
    return min((width for width in widths if width), default=4)


def _head(line: str, margin: int, author: int, unit: str) -> str:
    width = len(line) - len(line.lstrip(" ")) - margin
    return unit * (width // author) + " " * (width % author) + line.lstrip(" ")


def _marked(lines: list[str], inside: set[int], marker: str) -> list[str]:
    """The marker goes behind the first line, or above it when that line cannot take a comment."""
    if 2 in inside or lines[0].endswith("\\"):
        return [f"# {marker}", *lines]
    return [f"{lines[0]}  # {marker}", *lines[1:]]


def lay_out(code: str, indent: bytes, unit: bytes, newline: bytes, marker: str = "") -> Text:
    """``code`` (a recipe's, indented with blanks from its own margin) as whole lines of the target block.

    Lines that begin inside a string keep their bytes. Raises SnippetError.
    """
    code = code.strip("\n").rstrip()
    inside = inside_strings(code)
    lines = code.split("\n")
    margin = len(lines[0]) - len(lines[0].lstrip(" "))
    author = _author_unit([line[margin:] for line in lines], inside)
    step, head, end = unit.decode(), indent.decode(), newline.decode()
    marked = _marked(lines, inside, marker) if marker else lines
    inside = {number + len(marked) - len(lines) for number in inside}
    out, moved, size = [], [], 0
    for number, line in enumerate(marked, 1):
        if number in inside:
            text = line
        elif not line.strip():
            text = ""
        else:
            moved.append(size)
            text = head + _head(line, margin, author, step)
        data = (text + end).encode("utf-8")
        out.append(data)
        size += len(data)
    return Text(b"".join(out), tuple(moved))
