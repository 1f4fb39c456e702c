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
    return _inside_strings(_tokens(code))


def _tokens(code: str) -> list[tokenize.TokenInfo]:
    try:
        return list(tokenize.generate_tokens(io.StringIO(code, newline="").readline))
    except tokenize.TokenError as error:
        why = _("line {line}: {reason}").format(line=error.args[1][0], reason=error.args[0])
        raise SnippetError(_("the code cannot be read as Python"), why=why) from error
    except SyntaxError as error:
        why = _("line {line}: {reason}").format(line=error.lineno, reason=error.msg)
        raise SnippetError(_("the code cannot be read as Python"), why=why) from error


def _inside_strings(tokens: list[tokenize.TokenInfo]) -> set[int]:
    inside: set[int] = set()
    opened: list[int] = []
    for token in tokens:
        kind = tokenize.tok_name[token.type]
        if kind.endswith("STRING_START"):
            opened.append(token.start[0])
        elif kind.endswith("STRING_END"):
            inside.update(range(opened.pop() + 1, token.end[0] + 1))
        elif token.type == tokenize.STRING:
            inside.update(range(token.start[0] + 1, token.end[0] + 1))
    return inside


_LAYOUT = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT)


def _statement_lines(tokens: list[tokenize.TokenInfo]) -> set[int]:
    """The 1-based lines on which a statement begins: what brackets, strings and backslashes continue are none."""
    found: set[int] = set()
    fresh = True
    for token in tokens:
        if token.type == tokenize.NEWLINE:
            fresh = True
        elif fresh and token.type not in _LAYOUT:
            found.add(token.start[0])
            fresh = False
    return found


def _author_unit(lines: list[str], statements: set[int]) -> int:
    """The least indentation of a statement; four blanks where none is indented."""
    widths = [len(line) - len(line.lstrip(" ")) for number, line in enumerate(lines, 1) if number in statements]
    return min((width for width in widths if width > 0), default=4)


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
    tokens = _tokens(code)
    inside = _inside_strings(tokens)
    lines = code.split("\n")
    margin = len(lines[0]) - len(lines[0].lstrip(" "))
    author = _author_unit([line[margin:] for line in lines], _statement_lines(tokens))
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
