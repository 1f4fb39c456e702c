"""A module's statements with their bytes: what a hand-made change is compared by. Syntax is read with ``ast`` alone."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from codemods.errors import FindingError
from codemods.nesting import MAX_DEPTH, nesting, syntax
from codemods.source import Source
from locales import _

Definition = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_CONFLICT = re.compile(rb"^(?:<{7}|>{7}) ", re.MULTILINE)


class UnreadableCodeError(FindingError):
    """The file is no Python that this interpreter can read, so what was changed in it has no name."""


@dataclass(eq=False)
class Stmt:
    """A statement. Offsets are in the UTF-8 text: ``start`` with its decorators, ``own`` without, ``end`` behind its last token.

    ``block`` holds its siblings and itself at ``place``; ``inner`` are the blocks below it, an ``elif``'s among them.
    """

    node: ast.stmt
    start: int
    own: int
    end: int
    block: list[Stmt]
    place: int
    parent: Stmt | None
    inner: list[list[Stmt]] = field(default_factory=list)

    @property
    def is_definition(self) -> bool:
        return isinstance(self.node, Definition)

    def walk(self) -> Iterator[Stmt]:
        yield self
        for block in self.inner:
            for child in block:
                yield from child.walk()


@dataclass(frozen=True, eq=False)
class Code:
    """``source`` with its statements."""

    source: Source
    top: list[Stmt]

    @cached_property
    def statements(self) -> tuple[Stmt, ...]:
        """Every statement, in the order of the text."""
        return tuple(inner for stmt in self.top for inner in stmt.walk())

    def span(self, node: ast.AST) -> tuple[int, int]:
        """The bytes of a node that has a position."""
        return span(self.source, node)

    def lines_of(self, stmt: Stmt) -> tuple[int, int]:
        """The whole lines of a statement."""
        return self.source.line_start(stmt.start), self.source.line_end(stmt.end)

    def is_docstring(self, stmt: Stmt) -> bool:
        value = stmt.node.value if isinstance(stmt.node, ast.Expr) else None
        first = stmt.place == 0 and (stmt.parent is None or stmt.parent.is_definition)
        return first and isinstance(value, ast.Constant) and isinstance(value.value, str)

    @cached_property
    def ending_at(self) -> dict[int, list[Stmt]]:
        """By the offset behind its last line: the statements that end there, outer ones first."""
        return self._by_line(lambda stmt: self.lines_of(stmt)[1])

    @cached_property
    def starting_at(self) -> dict[int, list[Stmt]]:
        """By the offset of its first line: the statements that begin there, outer ones first."""
        return self._by_line(lambda stmt: self.lines_of(stmt)[0])

    def inside(self, start: int, end: int) -> list[Stmt]:
        """The statements whose lines all stand in ``start:end``."""
        return [stmt for stmt in self.statements if start <= self.lines_of(stmt)[0] and self.lines_of(stmt)[1] <= end]

    def _by_line(self, place_of: Callable[[Stmt], int]) -> dict[int, list[Stmt]]:
        found: dict[int, list[Stmt]] = {}
        for stmt in self.statements:
            found.setdefault(place_of(stmt), []).append(stmt)
        return found


def span(source: Source, node: ast.AST) -> tuple[int, int]:
    """The bytes of a node that has a position."""
    starts = source.line_starts
    first, last = int(node.lineno), int(node.end_lineno)  # type: ignore[attr-defined]
    return starts[first - 1] + int(node.col_offset), starts[last - 1] + int(node.end_col_offset)  # type: ignore[attr-defined]


def read_code(source: Source) -> Code:
    """Raises UnreadableCodeError."""
    try:
        text = source.text.decode("utf-8")
        if nesting(text) > MAX_DEPTH:
            raise RecursionError(_("it nests too deep"))
        tree = syntax(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _unreadable(source, error) from error
    top: list[Stmt] = []
    _fill(source, top, tree.body, None)
    return Code(source, top)


def _unreadable(source: Source, error: Exception) -> UnreadableCodeError:
    conflict = _CONFLICT.search(source.text)
    if conflict is not None:
        return UnreadableCodeError(
            _("the file holds a conflict of a merge"),
            where=source.where(conflict.start()),
            todo=_("finish the merge first"),
        )
    line = getattr(error, "lineno", None)
    return UnreadableCodeError(
        _("the file cannot be read as Python"),
        where=f"{source.path}:{line}" if line else source.path,
        why=str(getattr(error, "msg", None) or error),
    )


def _fill(source: Source, block: list[Stmt], nodes: list[ast.stmt], parent: Stmt | None) -> None:
    for node in nodes:
        own, end = span(source, node)
        start = own
        for decorator in getattr(node, "decorator_list", [])[:1]:
            start = source.text.rindex(b"@", 0, span(source, decorator)[0])
        stmt = Stmt(node, start, own, end, block, len(block), parent)
        block.append(stmt)
        for suite in _suites(source, node):
            inner: list[Stmt] = []
            _fill(source, inner, suite, stmt)
            stmt.inner.append(inner)


def _suites(source: Source, node: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(getattr(node, "body", None), list):
        yield node.body  # type: ignore[attr-defined]
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body
    orelse: list[ast.stmt] = getattr(node, "orelse", [])
    if len(orelse) == 1 and isinstance(orelse[0], ast.If) and isinstance(node, ast.If) and _is_elif(source, orelse[0]):
        yield from _suites(source, orelse[0])
    elif orelse:
        yield orelse
    if getattr(node, "finalbody", []):
        yield node.finalbody  # type: ignore[attr-defined]


def _is_elif(source: Source, node: ast.stmt) -> bool:
    return source.text.startswith(b"elif", span(source, node)[0])


def innermost(code: Code, offset: int) -> Stmt | None:
    """The innermost statement that holds ``offset``, its ends included."""
    found: Stmt | None = None
    block = code.top
    while block:
        at = bisect_right(block, offset, key=lambda stmt: stmt.start) - 1
        if at < 0 or not block[at].start <= offset <= block[at].end:
            return found
        found = block[at]
        block = next((inner for inner in reversed(found.inner) if inner and inner[0].start <= offset), [])
    return found
