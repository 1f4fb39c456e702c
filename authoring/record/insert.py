"""Verbs for lines that were inserted: by what stands before and behind them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from authoring.record import anchors as anchors
from authoring.record.bench import Bench, Draft
from authoring.record.code import Definition, Stmt
from authoring.record.hunks import Hunk, at_dedent, by_statement, indent_of, slides
from authoring.record.layout import as_code, blank_head, with_blank_first

ADDED, AT_BODY, AT_ANCHOR, BLANK_FIRST = range(4)
"""The ranks of insertions: what needs no anchor, the ends of a body, a place beside a statement, code with blank lines above."""


def insertion(bench: Bench, hunk: Hunk) -> list[Draft] | None:
    """Drafts that insert the hunk's lines and nothing else; None when no verb inserts them."""
    wanted = hunk.applied(bench.text)
    ways = slides(bench.text, hunk)
    drafts = [draft for way in ways for draft in _drafts(bench, way)]
    added = bench.first([draft for draft in drafts if draft.rank == ADDED], wanted)
    if added is not None:
        return [added]
    for way in ways:
        pieces = _additions(way)
        if (found := _one_by_one(bench, pieces, wanted, _only_added)) is not None:
            return found
    single = bench.first(drafts, wanted)
    if single is not None:
        return [single]
    for way in ways:
        for head, tail in at_dedent(way.text):
            found = _one_by_one(bench, [Hunk(way.start, way.end, part) for part in (head, tail)], wanted, insertion)
            if found is not None:
                return found
    return None


def _only_added(bench: Bench, hunk: Hunk) -> list[Draft] | None:
    drafts = [draft for draft in _drafts(bench, hunk) if draft.rank == ADDED]
    found = bench.first(drafts, hunk.applied(bench.text))
    return None if found is None else [found]


def _one_by_one(
    bench: Bench, pieces: Sequence[Hunk], wanted: bytes, solve: Callable[[Bench, Hunk], list[Draft] | None]
) -> list[Draft] | None:
    found: list[Draft] = []
    for piece in pieces:
        drafts = solve(bench, piece)
        if drafts is None:
            return None
        found += drafts
    return found if found and bench.made(found) == wanted else None


def _additions(hunk: Hunk) -> list[Hunk]:
    """One hunk for each import or definition, when the lines hold nothing else."""
    parts = by_statement(hunk.text)
    if len(parts) < 2 or not all(isinstance(node, (ast.Import, ast.ImportFrom, *Definition)) for node, _text in parts):
        return []
    return [Hunk(hunk.start, hunk.end, text) for _node, text in parts]


def _drafts(bench: Bench, hunk: Hunk) -> Iterator[Draft]:
    blank = blank_head(hunk.text)
    lines = b"".join(hunk.text.splitlines(keepends=True)[blank:])
    indent = indent_of(lines)
    code = as_code(lines, indent)
    if not lines.strip() or code is None:
        return
    above, below = _above(bench, hunk.start, indent), _below(bench, hunk.start, indent)
    statements = [node for node, _text in by_statement(lines)]
    if len(statements) == 1:
        yield from _added(bench, hunk, above, below, statements[0], code)
    if code.startswith("@"):
        yield from _decorator(bench, hunk.start, code)
    yield from _beside(bench, hunk.start, above, below, code, 0)
    spaced = with_blank_first(code, blank) if blank else None
    if spaced is not None:
        yield from _beside(bench, hunk.start, above, below, spaced, BLANK_FIRST)


def _above(bench: Bench, offset: int, indent: bytes) -> Stmt | None:
    """The statement of that indentation whose lines end here."""
    found = bench.code.ending_at.get(offset, [])
    return next((stmt for stmt in found if bench.target.source.indent_at(stmt.start) == indent), None)


def _below(bench: Bench, offset: int, indent: bytes) -> Stmt | None:
    """The statement of that indentation that begins here, or below its comment."""
    text = bench.text
    while text[offset : offset + len(indent)] == indent and text[offset + len(indent) :].startswith(b"#"):
        offset = bench.target.source.line_end(offset)
    found = bench.code.starting_at.get(offset, [])
    return next((stmt for stmt in found if bench.target.source.indent_at(stmt.start) == indent), None)


def _added(
    bench: Bench, hunk: Hunk, above: Stmt | None, below: Stmt | None, node: ast.stmt, code: str
) -> Iterator[Draft]:
    owner = _body_started(bench, above, below)
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        if not indent_of(hunk.text):
            yield Draft("add_import", bench.home_of(None), {"add_import": code})
        elif owner is not None and not isinstance(owner.node, ast.ClassDef):
            yield Draft("add_import", bench.home_of(owner), {"add_import": code})
    if isinstance(node, (ast.Assign, ast.AnnAssign)) and owner is not None and isinstance(owner.node, ast.ClassDef):
        yield Draft("add_attribute", bench.home_of(owner), {"add_attribute": code})
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if hunk.start == len(bench.text):
            yield Draft("add_function", bench.home_of(None), {"add_function": code})
        for last in bench.code.ending_at.get(hunk.start, []):
            if isinstance(last.node, ast.ClassDef):
                yield Draft("add_method", bench.home_of(last), {"add_method": code})


def _body_started(bench: Bench, above: Stmt | None, below: Stmt | None) -> Stmt | None:
    """The function or class at whose body's start this place is."""
    beside = below if below is not None and below.place == 0 else above
    if beside is None or (beside is above and not bench.code.is_docstring(above)):
        return None
    parent = beside.parent
    return parent if parent is not None and parent.is_definition and beside.block is parent.inner[0] else None


def _decorator(bench: Bench, offset: int, code: str) -> Iterator[Draft]:
    for stmt in bench.code.statements:
        if stmt.is_definition and bench.target.source.line_start(stmt.own) == offset:
            yield Draft("decorator", bench.home_of(stmt), {"decorator": code})


def _beside(bench: Bench, offset: int, above: Stmt | None, below: Stmt | None, code: str, rank: int) -> Iterator[Draft]:
    owner = _body_started(bench, above, below)
    if owner is not None:
        yield Draft("body_start", bench.home_of(owner), {"body_start": code}, rank=rank + AT_BODY)
    elif not offset or offset == bench.target.outline.prologue:
        yield Draft("body_start", bench.home_of(None), {"body_start": code}, rank=rank + AT_BODY)
    if offset == len(bench.text):
        yield Draft("body_end", bench.home_of(None), {"body_end": code}, rank=rank + AT_BODY)
    if above is not None:
        parent = above.parent
        last = above.place == len(above.block) - 1
        if parent is not None and parent.is_definition and last:
            yield Draft("body_end", bench.home_of(parent), {"body_end": code}, rank=rank + AT_BODY)
        anchor = anchors.after(bench, above)
        if anchor is not None:
            yield _at("after", bench, above, anchor, code, rank)
    if below is not None:
        anchor = anchors.before(bench, below)
        if anchor is not None:
            yield _at("before", bench, below, anchor, code, rank)


def _at(verb: str, bench: Bench, stmt: Stmt, anchor: anchors.Anchor, code: str, rank: int) -> Draft:
    fields = {verb: anchor.text, "insert": code}
    return Draft(verb, bench.home(stmt), fields, anchor.nth, anchor.expect, rank + AT_ANCHOR, anchor.weight)
