"""The shortest anchor of a statement that is unique in its definition, as the engine matches.

A hole (``...`` for the arguments of a call, ``$_`` for a value) is used only where it makes the anchor much shorter; a name that
tells what the statement does always stays.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from authoring.record.bench import Bench, Home
from authoring.record.code import Definition, Stmt

_SHORT = 48  # characters; an exact anchor up to here is taken as it is
_SHORTER = 0.75  # a hole has to make the anchor at least so much shorter
_MOST = 3  # statements in an anchor
DOCSTRING = "$DOC"
_ELLIPSIS = "__probepatch_record_ellipsis__"


@dataclass(frozen=True)
class Anchor:
    """``run`` is how many statements it has."""

    text: str
    nth: int | None = None
    expect: int = 1
    run: int = 1

    @property
    def weight(self) -> int:
        return len(self.text) + 40 * (self.run - 1) + (200 if self.expect > 1 else 0)


def before(bench: Bench, stmt: Stmt) -> Anchor | None:
    """An anchor whose first statement this is."""
    runs = [stmt.block[stmt.place : stmt.place + count] for count in range(1, _MOST + 1)]
    return _of_runs(bench, stmt, [run for run in runs if len(run) == runs.index(run) + 1])


def after(bench: Bench, stmt: Stmt) -> Anchor | None:
    """An anchor whose last statement this is."""
    runs = [stmt.block[stmt.place - count + 1 : stmt.place + 1] for count in range(1, min(_MOST, stmt.place + 1) + 1)]
    return _of_runs(bench, stmt, runs)


def of_run(bench: Bench, run: Sequence[Stmt]) -> Anchor | None:
    """An anchor of exactly these statements."""
    return _of_runs(bench, run[0], [run])


def header(bench: Bench, stmt: Stmt) -> Anchor | None:
    """An anchor of one compound statement, by its header."""
    return _of_runs(bench, stmt, [[stmt]])


def of_expression(bench: Bench, home: Home, texts: Sequence[str], offset: int) -> Anchor | None:
    """The first of these patterns that is unique; else the first that matches there at all, as one of several."""
    several = None
    for text in texts:
        found = bench.occurrences(home, text, expression=True)
        if found == [offset]:
            return Anchor(text)
        if several is None and found.count(offset) == 1:
            several = Anchor(text, found.index(offset) + 1, len(found))
    return several


def _of_runs(bench: Bench, stmt: Stmt, runs: Sequence[Sequence[Stmt]]) -> Anchor | None:
    home = bench.home(stmt)
    several = None
    for run in runs:
        for text in _run_texts(bench, run):
            found = bench.occurrences(home, text)
            if found == [run[0].own]:
                return Anchor(text, run=len(run))
            if several is None and found.count(run[0].own) == 1:
                several = Anchor(text, found.index(run[0].own) + 1, len(found), len(run))
    return several


def _run_texts(bench: Bench, run: Sequence[Stmt]) -> Iterator[str]:
    if len(run) == 1:
        yield from texts(bench, run[0])
        return
    if len(run) > _MOST - 1:
        yield f"{_whole(bench, run[0])}\n...\n{_whole(bench, run[-1])}"
    if len(run) <= _MOST:
        yield "\n".join(_whole(bench, stmt) for stmt in run)
    if len(run) > 1:
        yield "\n".join(exact(bench, stmt.node) for stmt in run)


def _whole(bench: Bench, stmt: Stmt) -> str:
    """One statement of several: there a compound one needs its body, and a long docstring is a hole."""
    text = next(texts(bench, stmt))
    if bench.code.is_docstring(stmt) and len(text) > _SHORT:
        return DOCSTRING
    return f"{text}\n    ..." if stmt.inner and text.endswith(":") else text


def texts(bench: Bench, stmt: Stmt) -> Iterator[str]:
    """Patterns of one statement, the best first."""
    if stmt.inner and not isinstance(stmt.node, ast.Match):
        yield from _headers(stmt.node)
        yield exact(bench, stmt.node)
        return
    whole = exact(bench, stmt.node)
    holed = [text for text in _with_holes(stmt.node) if len(text) <= _SHORTER * len(whole)]
    if len(whole) > _SHORT:
        yield from holed
    yield whole


def exact(bench: Bench, node: ast.AST) -> str:
    """The code itself on one line: as written when it is on one, else as ``ast`` writes it."""
    start, end = bench.code.span(node)
    text = bench.text[start:end].decode("utf-8")
    return unparsed(node) if "\n" in text or "..." in text else text


def unparsed(node: ast.AST) -> str:
    """``ast.unparse`` in the language of patterns: a literal ``...`` is ``$...`` there."""
    found = _Literals().visit(copy.deepcopy(node))
    return ast.unparse(ast.fix_missing_locations(found)).replace(_ELLIPSIS, "$...").strip()


class _Literals(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.copy_location(ast.Name(_ELLIPSIS), node) if node.value is ... else node


def _with_holes(node: ast.stmt) -> Iterator[str]:
    value = getattr(node, "value", None)
    if not isinstance(value, ast.expr):
        return
    short = shortened(value)
    if short is not None:
        yield _with_value(node, short)
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        yield _with_value(node, "$_")


def _with_value(node: ast.stmt, text: str) -> str:
    changed = copy.copy(node)
    changed.value = ast.Name("__probepatch_record_value__")  # type: ignore[attr-defined]
    return unparsed(changed).replace("__probepatch_record_value__", text)


def shortened(node: ast.expr) -> str | None:
    """A call (awaited, yielded) with ``...`` for its arguments; None for what is no call, or has none."""
    if isinstance(node, ast.Await):
        inner = shortened(node.value)
        return None if inner is None else f"await {inner}"
    if isinstance(node, ast.Attribute):
        inner = shortened(node.value)
        return None if inner is None else f"{inner}.{node.attr}"
    if not isinstance(node, ast.Call):
        return None
    name = shortened(node.func) or unparsed(node.func)
    return f"{name}(...)" if node.args or node.keywords else f"{name}()"


def _headers(node: ast.stmt) -> Iterator[str]:
    bare = copy.copy(node)
    if isinstance(node, Definition):
        kind = {"ClassDef": "class", "FunctionDef": "def", "AsyncFunctionDef": "async def"}[type(node).__name__]
        yield f"{kind} {node.name}(...):"
    if isinstance(node, (ast.With, ast.AsyncWith)):
        word = "with" if isinstance(node, ast.With) else "async with"
        items = [_item(item) for item in node.items]
        whole = f"{word} {', '.join(unparsed(item) for item in node.items)}:"
        if len(whole) > _SHORT and len(items) > 1:
            yield f"{word} {items[0]}, ...:"
        if len(whole) > _SHORT and len(f"{word} {', '.join(items)}:") <= _SHORTER * len(whole):
            yield f"{word} {', '.join(items)}:"
        yield whole
        return
    for name, empty in (("body", [ast.Pass()]), ("orelse", []), ("finalbody", []), ("decorator_list", [])):
        if hasattr(bare, name):
            setattr(bare, name, empty)
    if isinstance(bare, ast.Try):
        yield "try:"
        return
    lines = unparsed(bare).split("\n")
    if len(lines) == 2:
        yield lines[0]


def _item(item: ast.withitem) -> str:
    name = f" as {unparsed(item.optional_vars)}" if item.optional_vars is not None else ""
    return (shortened(item.context_expr) or unparsed(item.context_expr)) + name
