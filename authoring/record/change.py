"""Verbs for statements that were changed: the smallest part that tells the change, the whole statement when no part does."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any

from authoring.record import anchors as anchors
from authoring.record.bench import Bench, Draft
from authoring.record.code import Stmt, innermost, span
from authoring.record.hunks import Hunk
from authoring.record.layout import as_code
from codemods.errors import ProbePatchError
from codemods.nesting import syntax
from codemods.source import Source, read_source

PART, WHOLE = range(2)
LARGEST = 20_000  # bytes of code that one edit may replace
EDIT = 24  # bytes that one more edit has to save
_LIKE = 0.55  # two statements at least so alike are one that was changed


@dataclass(frozen=True)
class Statements:
    """The base's ``run`` and the text that stands in its place, with the statements that it holds.

    ``source`` has ``shift`` bytes in front of the text. On the text's first line ``head`` bytes of white space stand before it, on
    its last one ``tail`` bytes behind it, the line's end included.
    """

    run: Sequence[Stmt]
    source: Source
    nodes: Sequence[ast.stmt]
    text: bytes
    shift: int
    head: int
    tail: int

    def code_of(self, node: ast.AST) -> str:
        start, end = span(self.source, node)
        return self.source.text[start:end].decode("utf-8").replace("\r\n", "\n")


def runs(bench: Bench, hunk: Hunk) -> list[Sequence[Stmt]]:
    """Runs of statements that hold all of the change, the smallest first."""
    start, end = hunk.bounds(bench.text)
    blocks: list[Sequence[Stmt]] = [bench.code.top]
    for offset in {start, end}:
        holder = innermost(bench.code, offset)
        while holder is not None:
            blocks += [*holder.inner, holder.block]
            holder = holder.parent
    found = {(run[0].start, run[-1].end): run for block in blocks for run in _covering(block, start, end)}
    return [run for _span, run in sorted(found.items(), key=_size) if _size((_span, run)) <= LARGEST]


def _size(item: tuple[tuple[int, int], Sequence[Stmt]]) -> int:
    (start, end), _run = item
    return end - start


def _covering(block: Sequence[Stmt], start: int, end: int) -> Iterator[Sequence[Stmt]]:
    """The smallest runs of a block that begin at ``start`` or before and end at ``end`` or behind, then with one neighbour more."""
    first = bisect_right(block, start, key=lambda stmt: stmt.start) - 1
    last = bisect_left(block, end, key=lambda stmt: stmt.end)
    if first < 0 or last == len(block):
        return
    if first >= last:
        yield from ([block[n]] for n in range(last, first + 1))
        first, last = last, first
    else:
        yield block[first : last + 1]
    yield from (block[max(first - 1, 0) : last + 1], block[first : last + 2])


def statements(bench: Bench, run: Sequence[Stmt], hunk: Hunk) -> Statements | None:
    """What stands in the place of the run when the hunk is applied."""
    wanted = hunk.applied(bench.text)
    start, end = run[0].start, run[-1].end + len(wanted) - len(bench.text)
    if end <= start:
        return None
    text = wanted[start:end]
    indent = bench.target.source.indent_at(start)
    opening = b"if 1:\n" + indent if indent else b""
    line_end = wanted.find(b"\n", end) + 1 or len(wanted)
    try:
        source = read_source(bench.file, opening + text)
        body = syntax(source.text.decode("utf-8")).body
    except (SyntaxError, ValueError, RecursionError, MemoryError, ProbePatchError):
        return Statements(run, bench.target.source, [], text, 0, 0, 0)
    nodes = body[0].body if opening and isinstance(body[0], ast.If) else body
    return Statements(run, source, nodes, text, len(opening), len(indent), line_end - end)


def change(bench: Bench, hunk: Hunk) -> list[Draft] | None:
    """Drafts that make exactly this change, with the fewest bytes; None when no verb makes it."""
    wanted = hunk.applied(bench.text)
    deleted = bench.first(list(_deletions(bench, hunk)), wanted)
    if deleted is not None:
        return [deleted]
    for run in runs(bench, hunk):
        now = statements(bench, run, hunk)
        ways = [*_parts(bench, now), _whole(bench, now)] if now is not None else []
        exact = [drafts for drafts in ways if drafts and bench.made(drafts) == wanted]
        if exact:
            return min(exact, key=lambda drafts: _price(bench, drafts))
    return None


def _price(bench: Bench, drafts: Sequence[Draft]) -> int:
    """Bytes, with something for each edit, for a verb that suits less, and much for an anchor that is not unique."""
    return bench.cost(drafts) + sum(EDIT + draft.rank + 100 * (draft.expect > 1) for draft in drafts)


def _deletions(bench: Bench, hunk: Hunk) -> Iterator[Draft]:
    """The statements whose lines went away, when they are of one block."""
    if hunk.text.strip() not in (b"", b"pass"):
        return
    gone = bench.code.inside(hunk.start, hunk.end)
    gone = [stmt for stmt in gone if stmt.parent is None or stmt.parent.start < hunk.start]
    anchor = anchors.of_run(bench, gone) if gone and all(stmt.block is gone[0].block for stmt in gone) else None
    if anchor is not None:
        yield Draft("delete", bench.home(gone[0]), {"delete": anchor.text}, anchor.nth, anchor.expect)


def _whole(bench: Bench, now: Statements) -> list[Draft]:
    """The run as a whole gives way to the new text."""
    anchor = anchors.of_run(bench, now.run)
    code = as_code(now.text, bench.target.source.indent_at(now.run[0].start))
    if anchor is None or not code or code != code.strip("\n"):
        return []
    docstring = bench.text[now.run[0].own : now.run[0].end].decode("utf-8").replace("\r\n", "\n")
    if anchor.text.startswith(f"{anchors.DOCSTRING}\n") and code.startswith(f"{docstring}\n"):
        code = code.replace(docstring, anchors.DOCSTRING, 1)
    fields = {"replace": anchor.text, "with": code}
    if anchor.text.endswith(":") and "\n" not in anchor.text and len(now.run) > 1:
        return []
    return [Draft("replace", bench.home(now.run[0]), fields, anchor.nth, anchor.expect, WHOLE, anchor.weight)]


def _parts(bench: Bench, now: Statements) -> Iterator[list[Draft]]:
    """Ways to change one statement by its parts."""
    if len(now.run) != 1 or len(now.nodes) != 1 or type(now.nodes[0]) is not type(now.run[0].node):
        return
    stmt, node = now.run[0], now.nodes[0]
    if isinstance(stmt.node, ast.With) and isinstance(node, ast.With):
        yield from _with_item(bench, now, stmt, node)
    pairs = list(differing(stmt.node, node))
    if not pairs or len(pairs) > 3:
        return
    one_by_one = []
    for path in pairs:
        drafts = [draft for draft in (_argument(bench, now, path), _expression(bench, now, path)) if draft is not None]
        if not drafts:
            return
        one_by_one.append(drafts)
    for number in range(max(map(len, one_by_one))):
        chosen = [drafts[min(number, len(drafts) - 1)] for drafts in one_by_one]
        yield [draft for place, draft in enumerate(chosen) if draft not in chosen[:place]]


def _with_item(bench: Bench, now: Statements, stmt: Stmt, node: ast.With) -> Iterator[list[Draft]]:
    """One more item: as it is written, or on one line, for the engine may break a long one."""
    old = stmt.node
    assert isinstance(old, ast.With)
    if len(node.items) != len(old.items) + 1:
        return
    anchor = anchors.header(bench, stmt)
    if anchor is None or (anchor.expect > 1 and anchor.nth is None):
        return
    item = now.code_of(node.items[-1].context_expr)
    name = node.items[-1].optional_vars
    written = f"{item} as {now.code_of(name)}" if name is not None else item
    for text in dict.fromkeys((written, ast.unparse(node.items[-1]))):
        fields = {"with_item": anchor.text, "item": text}
        yield [Draft("with_item", bench.home(stmt), fields, anchor.nth, anchor.expect, PART, anchor.weight)]


Way = list[tuple[ast.AST, ast.AST]]
"""From a statement down to the part that differs: (old, new) at each step."""


def differing(old: ast.AST, new: ast.AST) -> Iterator[Way]:
    """The smallest expressions in which two statements of one kind differ, each with the way down to it."""
    yield from _differing([(old, new)])


def _differing(path: Way) -> Iterator[Way]:
    old, new = path[-1]
    if ast.dump(old) == ast.dump(new):
        return
    if isinstance(new, ast.keyword) and not isinstance(old, ast.keyword):
        yield path
        return
    inner = _inside(old, new)
    if inner is None:
        yield path
        return
    for pair in inner:
        yield from _differing([*path, pair])


def _inside(old: ast.AST, new: ast.AST) -> list[tuple[ast.AST, ast.AST]] | None:
    """The children in pairs; None where the two differ in more than their children.

    A keyword argument that a call got as its last one stands for itself: (the old call, the new argument).
    """
    if type(old) is not type(new) or isinstance(old, (ast.JoinedStr, ast.Constant, ast.Name)):
        return None
    pairs: list[tuple[ast.AST, ast.AST]] = []
    for name in old._fields:
        ones, others = (_as_list(getattr(node, name, None)) for node in (old, new))
        if isinstance(old, ast.Call) and name == "keywords" and len(others) == len(ones) + 1 and others[-1].arg:
            pairs.append((old, others.pop()))
        if len(ones) != len(others):
            return None
        for left, right in zip(ones, others, strict=True):
            if isinstance(left, ast.AST) and isinstance(right, ast.AST):
                pairs.append((left, right))
            elif left != right:
                return None
    return pairs


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]


def _argument_in(path: Way) -> tuple[ast.Call, ast.keyword] | None:
    """The innermost call on the way down whose keyword argument holds the difference, with the new argument."""
    old, new = path[-1]
    if isinstance(old, ast.Call) and isinstance(new, ast.keyword):
        return old, new
    for (call, _new), (_old, keyword) in reversed(list(pairwise(path))):
        if isinstance(call, ast.Call) and isinstance(keyword, ast.keyword) and keyword.arg is not None:
            return call, keyword
    return None


def _argument(bench: Bench, now: Statements, path: Way) -> Draft | None:
    found = _argument_in(path)
    if found is None:
        return None
    old, keyword = found
    home = bench.home(now.run[0])
    texts = [text for text in (anchors.shortened(old), anchors.exact(bench, old)) if text is not None]
    anchor = anchors.of_expression(bench, home, texts, bench.code.span(old)[0])
    if anchor is None:
        return None
    fields = {"set_argument": anchor.text, "argument": now.code_of(keyword)}
    return Draft("set_argument", home, fields, anchor.nth, anchor.expect, PART, anchor.weight)


def _expression(bench: Bench, now: Statements, path: Way) -> Draft | None:
    """The smallest expression around the difference whose pattern is unique; else the smallest as one of several."""
    home = bench.home(now.run[0])
    several = None
    for old, new in reversed(path[1:]):
        if not isinstance(old, ast.expr) or isinstance(new, ast.keyword) or isinstance(old, (ast.Tuple, ast.Starred)):
            continue
        anchor = anchors.of_expression(bench, home, [anchors.exact(bench, old)], bench.code.span(old)[0])
        if anchor is None:
            continue
        fields = {"replace_expression": anchor.text, "with": now.code_of(new)}
        draft = Draft("replace_expression", home, fields, anchor.nth, anchor.expect, PART + 1, anchor.weight)
        if anchor.nth is None:
            return draft
        several = several or draft
    return several


def pairs_of(bench: Bench, now: Statements) -> list[tuple[Stmt, ast.stmt]]:
    """Statements of the run with those that they became, in order: the same ones, or at least alike."""
    olds, news = list(now.run), list(now.nodes)
    scores = [[_alike(bench, now, old, new) for new in news] for old in olds]
    best = [[0.0] * (len(news) + 1) for _old in range(len(olds) + 1)]
    for i in range(len(olds) - 1, -1, -1):
        for j in range(len(news) - 1, -1, -1):
            best[i][j] = max(best[i + 1][j], best[i][j + 1], scores[i][j] + best[i + 1][j + 1])
    found, i, j = [], 0, 0
    while i < len(olds) and j < len(news):
        if scores[i][j] and best[i][j] == scores[i][j] + best[i + 1][j + 1]:
            found.append((olds[i], news[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return found


def _alike(bench: Bench, now: Statements, old: Stmt, new: ast.stmt) -> float:
    if type(old.node) is not type(new):
        return 0.0
    if getattr(old.node, "name", None) != getattr(new, "name", None):
        return 0.0
    one, other = bench.text[old.own : old.end].decode("utf-8"), now.code_of(new)
    if one == other:
        return 1.0
    matcher = SequenceMatcher(None, one[:2000], other[:2000], autojunk=False)
    score = matcher.ratio() if matcher.quick_ratio() >= _LIKE else 0.0
    return score if score >= _LIKE else 0.0
