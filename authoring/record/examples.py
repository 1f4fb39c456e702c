"""A small file for an example: the statements that edits touch, with the headers above them, and little else."""

from __future__ import annotations

from collections.abc import Sequence

from authoring.record.bench import Bench, Draft
from authoring.record.code import Stmt
from codemods.splice import PlannedEdit

LONGEST = 70  # lines


def small_file(bench: Bench, drafts: Sequence[Draft]) -> str | None:
    """As much of the base as the drafts need; None where that is too long or not to be had."""
    edits = [edit for draft in drafts if (edit := bench.planned(draft)) is not None]
    keep = {id(stmt) for edit in edits for stmt in _touched(bench, edit)}
    keep |= {id(stmt) for draft in drafts for stmt in _anchored(bench, draft)}
    if not any(stmt.inner and id(stmt) in keep for stmt in bench.code.statements) or any(
        not draft.home.symbol for draft in drafts
    ):
        keep |= _first_import(bench)
    text = "".join(_block(bench, bench.code.top, keep)).replace("\r\n", "\n")
    return text if text and text.count("\n") <= LONGEST else None


def _first_import(bench: Bench) -> set[int]:
    first = bench.target.outline.first_import
    return {id(stmt) for stmt in bench.code.starting_at.get(first, [])[:1]} if first >= 0 else set()


def _touched(bench: Bench, edit: PlannedEdit) -> list[Stmt]:
    """The statements that the edit's splices cut, and the ones they stand beside; of those that hold others their first line."""
    found = []
    starts = [(splice.start, splice.end) for splice in edit.splices]
    for stmt in bench.code.statements:
        first, last = bench.code.lines_of(stmt)
        if any(first <= end and start <= last for start, end in starts):
            found.append(stmt)
    return found


def _anchored(bench: Bench, draft: Draft) -> list[Stmt]:
    """The statements at which the draft's anchor matches."""
    text = draft.fields[draft.verb]
    expression = draft.verb in ("replace_expression", "set_argument")
    if draft.verb not in ("before", "after", "around", "replace", "delete", "with_item") and not expression:
        return []
    offsets = bench.occurrences(draft.home, text, expression)
    count = 1 if expression else text.count("\n") + 1
    found = []
    for stmt in bench.code.statements:
        for offset in offsets:
            if stmt.own == offset and not expression:
                found += stmt.block[stmt.place : stmt.place + count]
            elif expression and stmt.start <= offset < stmt.end:
                found.append(stmt)
    return found


def _block(bench: Bench, block: Sequence[Stmt], keep: set[int]) -> list[str]:
    kept = [stmt for stmt in block if any(id(one) in keep for one in stmt.walk())]
    if not kept and block:
        return [_filler(bench, block[0])]
    out: list[str] = []
    source, text = bench.target.source, bench.text
    for stmt in kept:
        start, end = bench.code.lines_of(stmt)
        if out and stmt.is_definition:
            out.append("\n\n" if stmt.parent is None else "\n")
        at = start
        inner = [one for one in stmt.inner if one and source.line_start(one[0].start) > start]
        for suite in inner:
            first = source.line_start(suite[0].start)
            header_end = _below_comments(bench, at, first)
            out.append(text[at:header_end].decode("utf-8"))
            out += _block(bench, suite, keep)
            at = bench.code.lines_of(suite[-1])[1]
        out.append(text[at:end].decode("utf-8") if not inner or at < end else "")
    if out and not out[-1].endswith("\n"):
        out[-1] += "\n" if out[-1] else ""
    return out


def _below_comments(bench: Bench, start: int, end: int) -> int:
    """The end of a header: comments and blank lines between it and the body are left out."""
    source = bench.target.source
    while end > start:
        above = source.line_start(end - 1)
        line = bench.text[above:end].strip()
        if above < start or (line and not line.startswith(b"#")):
            break
        end = above
    return end


def _filler(bench: Bench, stmt: Stmt) -> str:
    return bench.target.source.indent_at(stmt.start).decode() + "pass\n"
