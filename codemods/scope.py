"""One definition, or one run of top-level statements, parsed with LibCST: its statements, each with its byte span."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

from codemods.errors import FindingError
from codemods.outline import Definition
from codemods.parsing import UnparsableError, parse_module
from codemods.source import Source
from locales import _

_HEADER = b"if 1:"
Definitions = (cst.FunctionDef, cst.ClassDef)


class NotEditableError(FindingError):
    """LibCST cannot parse this definition, or would not give back its bytes."""


@dataclass(frozen=True, eq=False)
class Statement:
    """A small statement or a compound one. ``block`` is the suite that holds it, ``owner`` the compound statement of that suite
    (None at the top), ``row`` the place of its line in the block, ``column`` its place among the small statements of that line."""

    node: cst.BaseSmallStatement | cst.BaseCompoundStatement
    block: cst.BaseSuite | cst.Module
    owner: cst.CSTNode | None
    row: int
    column: int
    depth: int
    siblings: int  # small statements on the line

    @property
    def suite_on_line(self) -> bool:
        """Stands behind the colon of a one-line suite."""
        return isinstance(self.block, cst.SimpleStatementSuite)


@dataclass(frozen=True, eq=False)
class Scope:
    """``node`` is the definition, None for a stretch of the module. Spans are offsets in ``source.text``."""

    source: Source
    definition: Definition | None
    module: cst.Module
    node: cst.FunctionDef | cst.ClassDef | None
    shift: int
    spans: Mapping[cst.CSTNode, object]

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """(start, end) of the node's own tokens: no comment, no surrounding white space, no decorator, no parentheses around it."""
        found = self.spans[node]
        start: int = found.start + self.shift  # type: ignore[attr-defined]
        return start, start + found.length  # type: ignore[attr-defined]

    def full_span(self, node: cst.BaseExpression) -> tuple[int, int]:
        """The span with the parentheses around the expression."""
        start, end = self.span(node)
        before = sum(len(self.module.code_for_node(paren).encode()) for paren in node.lpar)
        after = sum(len(self.module.code_for_node(paren).encode()) for paren in node.rpar)
        return start - before, end + after

    def code(self, node: cst.CSTNode) -> str:
        return self.module.code_for_node(node)

    @property
    def name(self) -> str:
        return self.definition.qualname if self.definition else ""

    @cached_property
    def body(self) -> cst.BaseSuite | cst.Module:
        return self.node.body if self.node else self.module

    @cached_property
    def blocks(self) -> tuple[tuple[Statement, ...], ...]:
        """Every block of the body at any depth, as its flattened statements; nested definitions are not entered."""
        return tuple(blocks(self.body, self.node))

    @cached_property
    def is_generator(self) -> bool:
        return isinstance(self.node, cst.FunctionDef) and holds_yield(self.node.body)


class _YieldFinder(cst.CSTVisitor):
    found = False

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        return False

    def visit_Yield(self, node: cst.Yield) -> None:
        self.found = True


def holds_yield(node: cst.CSTNode) -> bool:
    finder = _YieldFinder()
    node.visit(finder)
    return finder.found


def flat(block: cst.BaseSuite | cst.Module, owner: cst.CSTNode | None = None, depth: int = 0) -> tuple[Statement, ...]:
    """The statements of one block in order, the small ones of a line one by one."""
    if isinstance(block, cst.SimpleStatementSuite):
        small = block.body
        return tuple(Statement(node, block, owner, 0, place, depth, len(small)) for place, node in enumerate(small))
    found: list[Statement] = []
    for row, item in enumerate(block.body):
        if isinstance(item, cst.SimpleStatementLine):
            found += [
                Statement(node, block, owner, row, place, depth, len(item.body)) for place, node in enumerate(item.body)
            ]
        elif isinstance(item, cst.BaseCompoundStatement):
            found.append(Statement(item, block, owner, row, 0, depth, 1))
    return tuple(found)


def suites(node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.BaseSuite]]:
    """The suites of a compound statement with the node that owns each: itself, an ``else``, a handler, a case …"""
    if isinstance(node, cst.Match):
        for case in node.cases:
            yield case, case.body
        return
    body = getattr(node, "body", None)
    if isinstance(body, cst.BaseSuite):
        yield node, body
    parts: list[cst.CSTNode | None] = [
        *getattr(node, "handlers", ()),
        getattr(node, "orelse", None),
        getattr(node, "finalbody", None),
    ]
    for part in parts:
        if part is not None:
            yield from suites(part)


def blocks(block: cst.BaseSuite | cst.Module, owner: cst.CSTNode | None = None) -> Iterator[tuple[Statement, ...]]:
    """The block and every block below it, outer ones first; nested definitions are not entered."""
    stack: list[tuple[cst.BaseSuite | cst.Module, cst.CSTNode | None, int]] = [(block, owner, 0)]
    while stack:
        suite, holder, depth = stack.pop()
        statements = flat(suite, holder, depth)
        yield statements
        for statement in reversed(statements):
            if not isinstance(statement.node, Definitions):
                stack += [(inner, part, depth + 1) for part, inner in reversed(list(suites(statement.node)))]


def _parse(source: Source, text: bytes, offset: int) -> cst.Module:
    try:
        module = parse_module(text.decode("utf-8"))
    except UnparsableError as error:
        from importlib.metadata import version

        raise NotEditableError(
            _("LibCST {version} cannot parse this code").format(version=version("libcst")),
            where=source.where(offset),
            why=str(error),
        ) from error
    if module.code.encode("utf-8") != text:
        raise NotEditableError(
            _("LibCST does not give back the bytes of this code, so it is not edited"), where=source.where(offset)
        )
    return module


def parse_scope(source: Source, start: int, end: int, definition: Definition | None) -> Scope:
    """Parse ``source.text[start:end]`` (whole lines). Raises NotEditableError."""
    try:
        return _parsed_scope(source, start, end, definition)
    except RecursionError as error:
        raise NotEditableError(_("the code nests too deep to be parsed safely"), where=source.where(start)) from error


def _parsed_scope(source: Source, start: int, end: int, definition: Definition | None) -> Scope:
    text = source.text[start:end]
    header = b""
    if definition and text[:1] in (b" ", b"\t"):
        header = _HEADER + source.newline_near(start)
    module = _parse(source, header + text, start)
    node = _definition_in(module, bool(header)) if definition else None
    spans = MetadataWrapper(module, unsafe_skip_copy=True).resolve(ByteSpanPositionProvider)
    return Scope(source, definition, module, node, start - len(header), spans)


def _definition_in(module: cst.Module, indented: bool) -> cst.FunctionDef | cst.ClassDef:
    body: Sequence[cst.CSTNode] = module.body
    if indented:
        holder = body[0]
        assert isinstance(holder, cst.If)
        body = holder.body.body
    node = body[0]
    assert isinstance(node, Definitions)
    return node
