"""``try`` … ``finally`` around statements that stood there before: it is taken away, and less is changed then."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from authoring.record import anchors as anchors
from authoring.record.bench import Bench, Draft
from authoring.record.code import Code, Stmt, read_code
from authoring.record.hunks import Hunk, between, slides
from authoring.record.layout import as_code
from codemods.errors import ProbePatchError
from codemods.layout import SnippetError, inside_strings
from codemods.source import read_source

_MOST = 20  # of them in one file


@dataclass(frozen=True)
class Unwrapped:
    """``text`` is the edited file without the ``try``; ``start:end`` what it held, there. ``opening`` and ``closing`` are the lines
    that were taken away, ``unit`` is the indent."""

    text: bytes
    start: int
    end: int
    opening: bytes
    closing: bytes
    final: bytes
    indent: bytes
    unit: bytes


def unwrap(bench: Bench, edited: bytes) -> tuple[bytes, list[Draft]]:
    """The edited text without each ``try`` that an ``around`` makes, and those drafts."""
    found: list[Draft] = []
    for _time in range(_MOST):
        step = _first(bench, edited)
        if step is None:
            break
        edited, draft = step
        found.append(draft)
    return edited, found


def _first(bench: Bench, edited: bytes) -> tuple[bytes, Draft] | None:
    changed = between(bench.text, edited)
    if not any(b"finally" in hunk.text for hunk in changed):
        return None
    try:
        code = read_code(read_source(bench.file, edited))
    except ProbePatchError:
        return None
    before = _size(changed)
    added = _added_lines(bench.text, changed)
    for stmt in code.statements:
        if not _is_wrapper(stmt.node) or code.lines_of(stmt)[0] not in added:
            continue
        one = _without(code, stmt)
        if one is None:
            continue
        after = between(bench.text, one.text)
        if _size(after) + len((one.opening + one.closing).splitlines()) >= before:
            continue
        for text, draft in _drafts(bench, one, after):
            return text, draft
    return None


def _size(hunks: list[Hunk]) -> int:
    return sum(len(hunk.text.splitlines()) for hunk in hunks)


def _added_lines(base: bytes, hunks: list[Hunk]) -> set[int]:
    """The offsets in the edited text of the lines that hunks add."""
    found, shift = set(), 0
    for hunk in hunks:
        at = hunk.start + shift
        for line in hunk.text.splitlines(keepends=True):
            found.add(at)
            at += len(line)
        shift += len(hunk.text) - (hunk.end - hunk.start)
    return found


def _is_wrapper(node: ast.stmt) -> bool:
    return isinstance(node, ast.Try) and bool(node.finalbody) and not node.handlers and not node.orelse


def _without(code: Code, stmt: Stmt) -> Unwrapped | None:
    text, source = code.source.text, code.source
    start, end = code.lines_of(stmt)
    body, final = stmt.inner[0], stmt.inner[1]
    inside = (source.line_end(start), code.lines_of(body[-1])[1])
    final_start = source.line_start(final[0].start)
    header = text[inside[1] : final_start]
    indent, inner = source.indent_at(stmt.start), source.indent_at(body[0].start)
    if inside[0] > body[0].start or not inner.startswith(indent) or not header.strip().startswith(b"finally"):
        return None
    unit = inner[len(indent) :]
    dedented = shifted(text[inside[0] : inside[1]], b"", unit, indent)
    if dedented is None:
        return None
    whole = text[:start] + dedented + text[end:]
    opening, closing = text[start : inside[0]], text[inside[1] : end]
    return Unwrapped(whole, start, start + len(dedented), opening, closing, text[final_start:end], indent, unit)


def shifted(text: bytes, add: bytes, remove: bytes, indent: bytes) -> bytes | None:
    """The lines with ``add`` in place of ``remove`` in front, but those that are blank or begin inside a string."""
    code = text.decode("utf-8").replace("\r\n", "\n")
    try:
        inside = {number - 1 for number in inside_strings(f"if 1:\n{code}" if indent or remove else code)}
        inside = inside if indent or remove else {number + 1 for number in inside}
    except SnippetError:
        return None
    out = []
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if number in inside or not line.strip():
            out.append(line)
        elif line.startswith(remove):
            out.append(add + line[len(remove) :])
        else:
            return None
    return b"".join(out)


def _drafts(bench: Bench, one: Unwrapped, hunks: list[Hunk]) -> Iterator[tuple[bytes, Draft]]:
    """The first draft that makes the ``try`` on the base, with what the edited text is without all that it makes."""
    base_start, base_end = _on_base(hunks, one.start, one.end, len(bench.text))
    run = _run(bench, base_start, base_end)
    wrapped = shifted(bench.text[base_start:base_end], one.unit, b"", one.indent)
    final = as_code(one.final, one.indent + one.unit)
    if not run or wrapped is None or final is None:
        return
    for entering, text in _entering(bench, one, hunks):
        wanted = bench.text[:base_start] + entering + one.opening + wrapped + one.closing + bench.text[base_end:]
        enter = as_code(entering, one.indent) if entering else ""
        if enter is None:
            continue
        fields = ({"enter": enter} if enter else {}) | {"finally": final}
        for draft in _around(bench, run, fields):
            if bench.made([draft]) == wanted:
                yield text, draft


def _on_base(hunks: list[Hunk], start: int, end: int, size: int) -> tuple[int, int]:
    """Where a stretch of the edited text stands in the base; text that was inserted at its ends belongs to it."""

    def low(offset: int) -> int:
        shift = 0
        for hunk in hunks:
            at = hunk.start + shift
            if at + len(hunk.text) > offset:
                return min(offset - shift, hunk.start) if offset >= at else offset - shift
            shift += len(hunk.text) - (hunk.end - hunk.start)
        return min(offset - shift, size)

    def high(offset: int) -> int:
        shift = 0
        for hunk in hunks:
            at = hunk.start + shift
            if at >= offset:
                return offset - shift
            shift += len(hunk.text) - (hunk.end - hunk.start)
            if at + len(hunk.text) >= offset:
                return hunk.end
        return min(offset - shift, size)

    return low(start), high(end)


def _run(bench: Bench, start: int, end: int) -> list[Stmt]:
    """The statements of one block that fill these lines."""
    inside = bench.code.inside(start, end)
    return [stmt for stmt in inside if stmt.block is inside[0].block]


def _entering(bench: Bench, one: Unwrapped, hunks: list[Hunk]) -> Iterator[tuple[bytes, bytes]]:
    """What was inserted right above the ``try``, with the edited text without it; and nothing, with the text as it is."""
    shift = 0
    for hunk in hunks:
        if hunk.inserts:
            for way in slides(bench.text, hunk):
                at = way.start + shift
                if at + len(way.text) == one.start and way.text.strip():
                    yield way.text, one.text[:at] + one.text[one.start :]
        shift += len(hunk.text) - (hunk.end - hunk.start)
    yield b"", one.text


def _around(bench: Bench, run: list[Stmt], fields: dict[str, str]) -> Iterator[Draft]:
    first, parent = run[0], run[0].parent
    whole = len(run) + bench.code.is_docstring(first.block[0]) == len(first.block)
    if whole and parent is not None and isinstance(parent.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield Draft("around_body", bench.home_of(parent), {"around_body": " ", **fields})
    anchor = anchors.of_run(bench, run)
    if anchor is not None:
        place = bench.home(first)
        yield Draft("around", place, {"around": anchor.text, **fields}, anchor.nth, anchor.expect, weight=anchor.weight)
