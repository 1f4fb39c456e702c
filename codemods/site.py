"""A site: one matched place in one scope, and how lines get before it, behind it and around it.

A statement that shares its line (``a; b``, ``if x: a``) is first given a line of its own by shared splices.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from codemods.errors import FindingError
from codemods.inserted import FRAMES, STATEMENTS, fill
from codemods.layout import Text, inside_strings, lay_out
from codemods.outline import Definition, Outline
from codemods.pattern import Match
from codemods.scope import Scope, Statement, flat
from codemods.source import Source
from codemods.splice import Indent, Rank, Splice, leading, trailing
from codemods.target import Target

_DIRECTIVE = re.compile(rb"#!|#.*coding[:=]")


class MeaningError(FindingError):
    """The edit would change what the code around it means, so the verb refuses it."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a verb does to the bytes of one file."""

    splices: tuple[Splice, ...] = ()
    indents: tuple[Indent, ...] = ()


@dataclass(frozen=True)
class Site:
    """``definition`` is None for the module; ``scope`` holds the match, if any; ``fields`` are the verb's keys."""

    target: Target
    definition: Definition | None
    scope: Scope | None
    match: Match | None
    fields: Mapping[str, str]
    marker: str = ""

    @property
    def source(self) -> Source:
        return self.target.source

    @property
    def outline(self) -> Outline:
        return self.target.outline

    @cached_property
    def parsed(self) -> Scope:
        """The scope of the match, else the definition, parsed now if nobody asked for it before."""
        if self.scope is not None:
            return self.scope
        assert self.definition is not None
        return self.target.scope(self.definition.start, self.definition.end, self.definition)

    @property
    def first(self) -> Statement:
        assert self.match is not None
        return self.match.statements[0]

    @property
    def last(self) -> Statement:
        assert self.match is not None
        return self.match.statements[-1]

    @cached_property
    def captured(self) -> dict[str, str]:
        captures = self.match.captures if self.match else {}
        return {name: self.parsed.code(node).replace("\r\n", "\n") for name, node in captures.items()}

    def field(self, name: str) -> str:
        """The verb's key with the captured holes filled in."""
        return fill(self.fields[name].strip("\n"), self.captured, FRAMES.get(name, STATEMENTS))

    def inline(self, name: str, offset: int) -> bytes:
        """The verb's key as a part of a line, with the file's own line ending should it break."""
        return self.field(name).strip().encode("utf-8").replace(b"\n", self.source.newline_near(offset))

    def refuse(self, what: str, offset: int | None = None, todo: str | None = None) -> MeaningError:
        place = offset if offset is not None else (self.parsed.span(self.first.node)[0] if self.match else 0)
        return MeaningError(what, where=self.source.where(place), todo=todo)

    # --- layout of the block -------------------------------------------------------------------------------------------

    def unit(self, statement: Statement) -> bytes:
        """One indentation step of the block that holds the statement."""
        owner = self._owner_indent(statement)
        if not statement.suite_on_line:
            own = self.indent(statement)
            if statement.owner is not None and own.startswith(owner) and own != owner:
                return own[len(owner) :]
        return self.file_unit(owner)

    def file_unit(self, indent: bytes = b"") -> bytes:
        """The first indentation of the file; a tab when ``indent`` is made of tabs; else four blanks."""
        if indent.startswith(b"\t"):
            return b"\t"
        found = re.search(rb"^(?:(?:async )?def|class) .*:[ \t]*\r?\n([ \t]+)\S", self.source.text, re.MULTILINE)
        return found.group(1) if found else b"    "

    def _owner_indent(self, statement: Statement) -> bytes:
        return self.source.indent_at(self.parsed.span(statement.owner)[0]) if statement.owner is not None else b""

    def indent(self, statement: Statement) -> bytes:
        if statement.suite_on_line:
            return self._owner_indent(statement) + self.unit(statement)
        return self.source.indent_at(self.parsed.span(self._siblings(statement)[0].node)[0])

    def lines(self, code: str, indent: bytes, unit: bytes, offset: int, marker: bool = True) -> Text:
        return lay_out(code, indent, unit, self.source.newline_near(offset), self.marker if marker else "")

    # --- a line of its own ---------------------------------------------------------------------------------------------

    def _siblings(self, statement: Statement) -> tuple[Statement, ...]:
        row = flat(statement.block, statement.owner, statement.depth)
        return tuple(other for other in row if other.row == statement.row)

    def _gap_before(self, statement: Statement) -> list[Splice]:
        """Open the one-line suite, and break the line before the statement when it is not the first on it."""
        start = self.parsed.span(statement.node)[0]
        splices = []
        if statement.suite_on_line:
            first = self.parsed.span(self._siblings(statement)[0].node)[0]
            splices.append(self._line_break(first, statement, b" \t\\\r\n"))
        if statement.column:
            splices.append(self._line_break(start, statement, b" \t;\\\r\n"))
        return splices

    def _line_break(self, start: int, statement: Statement, blank: bytes) -> Splice:
        text = self.source.text
        begin = len(text[:start].rstrip(blank))
        newline = self.source.newline_near(start)
        inserted = newline + self.indent(statement)
        return Splice(begin, text[begin:start], inserted, shared=True, rank=(-1, 0, 0), lines=(len(newline),))

    def _next_on_line(self, statement: Statement) -> Statement | None:
        siblings = self._siblings(statement)
        return siblings[statement.column + 1] if statement.column + 1 < len(siblings) else None

    def alone(self, first: Statement, last: Statement) -> list[Splice]:
        """Line breaks that give the run from ``first`` to ``last`` lines of its own."""
        following = self._next_on_line(last)
        breaks = [*self._gap_before(first), *(self._gap_before(following) if following else [])]
        return list(dict.fromkeys(breaks))

    def extent(self) -> tuple[int, int]:
        """The matched statements, from the first's first decorator to the last's end."""
        return self._start(self.first), self.parsed.span(self.last.node)[1]

    def _start(self, statement: Statement) -> int:
        node = statement.node
        decorators = node.decorators if isinstance(node, (cst.FunctionDef, cst.ClassDef)) else ()
        return self.parsed.span(decorators[0] if decorators else node)[0]

    def around_expression(self) -> tuple[bytes, int]:
        """Text that parses by itself and holds the matched expression (its small statement, or its scope); and its offset."""
        if isinstance(self.first.node, cst.BaseSmallStatement):
            start, end = self.parsed.span(self.first.node)
            return self.source.text[start:end], start
        shift = self.parsed.shift
        return self.parsed.module.code.encode("utf-8"), shift

    def statement_start(self, statement: Statement) -> int:
        """The head of the statement's first line, that of its first decorator when it has one."""
        return self.source.line_start(self._start(statement))

    # --- insertions ----------------------------------------------------------------------------------------------------

    def before(
        self, statement: Statement, text: Text, rank: Rank | None = None, above_comments: bool = True
    ) -> list[Splice]:
        """Whole lines before a statement; above the comment that belongs to it."""
        start = self.parsed.span(statement.node)[0]
        rank = rank or leading()
        if statement.suite_on_line or statement.column:
            return [*self._gap_before(statement), self._inline(start, text, self.indent(statement), rank)]
        offset = self.statement_start(statement)
        if above_comments:
            offset = self.comment_above(offset)
        return [Splice(offset, b"", text.data, rank=rank, lines=text.lines)]

    def after(self, statement: Statement, text: Text, rank: Rank | None = None) -> list[Splice]:
        """Whole lines behind a statement, its trailing comment included."""
        rank = rank or trailing(statement.depth)
        opening = self._gap_before(statement)[:1] if statement.suite_on_line else []
        following = self._next_on_line(statement)
        if following is not None:
            start = self.parsed.span(following.node)[0]
            return [*self._gap_before(following), self._inline(start, text, self.indent(statement), rank)]
        return [*opening, self.at_line_end(self.parsed.span(statement.node)[1], text, rank)]

    def at_line_end(self, offset: int, text: Text, rank: Rank) -> Splice:
        """Whole lines after the line of ``offset``; a file without a final newline stays so."""
        end = self.source.line_end(offset)
        if end == len(self.source.text) and not self.source.text.endswith(b"\n") and self.source.text:
            newline = self.source.newline_near(offset)
            data = newline + text.data.removesuffix(newline)
            return Splice(end, b"", data, rank=rank, lines=tuple(line + len(newline) for line in text.lines))
        return Splice(end, b"", text.data, rank=rank, lines=text.lines)

    def _inline(self, start: int, text: Text, indent: bytes, rank: Rank) -> Splice:
        """Lines in front of a statement whose indent is already written: the first line goes without, the statement gets one."""
        body = text.data.removeprefix(indent)
        shift = len(text.data) - len(body)
        lines = (*(line - shift for line in text.lines if line >= shift), len(body))
        return Splice(start, b"", body + indent, rank=rank, lines=lines)

    def comment_above(self, offset: int) -> int:
        """The head of the comment block right above, at the same indentation; a file's opening comment stays on top."""
        text, here = self.source.text, self.source.indent_at(offset)
        top = offset
        while top > 0:
            above = self.source.line_start(top - 1)
            line = text[above:top]
            if not line.startswith(here + b"#") or _DIRECTIVE.match(line.lstrip()):
                break
            top = above
        return offset if top == 0 else top

    def first_line(self) -> int:
        """The offset after the header's last line of the scope's body."""
        start = self.statement_start(flat(self.parsed.body)[0])
        while start > 0:
            above = self.source.line_start(start - 1)
            line = self.source.text[above:start].strip()
            if line and not line.startswith(b"#"):
                break
            start = above
        return start

    # --- around --------------------------------------------------------------------------------------------------------

    def around(self, statements: Sequence[Statement], enter: str, final: str) -> Change:
        """``enter``, then the statements in a ``try`` with ``final`` as its ``finally``: insert-only, an indent for each line."""
        first, last = statements[0], statements[-1]
        start, end = self.parsed.span(first.node)[0], self.parsed.span(last.node)[1]
        indent, unit = self.indent(first), self.unit(first)
        head = self.lines("try:", indent, unit, start)
        if enter:
            head = self.lines(enter, indent, unit, start) + self.lines("try:", indent, unit, start, marker=False)
        tail = self.lines("finally:", indent, unit, end) + self.lines(final, indent + unit, unit, end, marker=False)
        opening = self.before(first, head, leading(1), above_comments=False)
        if first.suite_on_line or first.column:  # the statement's own indent is the end of the opening
            opened = opening[-1]
            opening[-1] = Splice(opened.start, b"", opened.inserted + unit, rank=opened.rank, lines=opened.lines)
        closing = self.after(last, tail, trailing(last.depth, 0))
        end_break = closing[-2] if self._next_on_line(last) else closing[-1]
        splices = tuple(dict.fromkeys([*opening, *closing]))
        whole = not (first.suite_on_line or first.column)
        lines = self._indentable(self.statement_start(first) if whole else start, end, whole)
        return Change(splices, (Indent(unit, lines, splices.index(opening[-1]), splices.index(end_break)),))

    def _indentable(self, start: int, end: int, whole: bool) -> tuple[int, ...]:
        """The heads of the non-blank lines of [start, end) that do not begin inside a string."""
        text = self.source.text[start:end]
        inside = inside_strings(_dedented(text, self.source.indent_at(start) if whole else b""))
        found, offset = [], start
        for number, line in enumerate(text.split(b"\n"), 1):
            if line.strip() and number not in inside and not (number == 1 and not whole):
                found.append(offset)
            offset += len(line) + 1
        return tuple(found)


def _dedented(text: bytes, indent: bytes) -> str:
    """For the tokenizer only: a header above makes indented code legal without moving a line number."""
    lines = text.decode("utf-8").replace("\r\n", "\n")
    return lines if not indent else lines.removeprefix(indent.decode()).replace("\n" + indent.decode(), "\n")
