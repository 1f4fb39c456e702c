"""From hunks to drafts: what was inserted, what was changed, what was wrapped; and what no verb can make, by its line."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from authoring.record.anchors import texts
from authoring.record.around import unwrap
from authoring.record.bench import Bench, Draft
from authoring.record.change import EDIT, Statements, change, pairs_of, runs, statements
from authoring.record.code import Stmt
from authoring.record.hunks import Hunk, between, joined
from authoring.record.insert import insertion
from authoring.record.layout import as_code
from codemods.errors import FindingError
from codemods.source import Source
from locales import _

_MOST_HUNKS = 400
_MOST_PAIRED = 24  # statements on a side, compared each with each


class RewrittenError(FindingError):
    """So much of a file was changed that edits would not tell it."""


@dataclass(frozen=True)
class Solved:
    """``drafts`` in the order of the text; ``unsolved`` the hunks that no verb makes."""

    drafts: tuple[Draft, ...]
    unsolved: tuple[Hunk, ...]


def solve(bench: Bench, edited: Source) -> Solved:
    """Drafts for one file. They give the edited text together; where they do not, the coarser ones that do are taken.

    Raises RewrittenError.
    """
    count = len(between(bench.text, edited.text))
    if count > _MOST_HUNKS:
        raise RewrittenError(
            _("{count} places of {path} were changed").format(count=count, path=edited.path),
            where=edited.path,
            why=_("more than {most} are a rewrite, which no recipe is made for").format(most=_MOST_HUNKS),
        )
    text, around = unwrap(bench, edited.text)
    found = _solve(bench, text, around)
    if not found.unsolved and bench.made(found.drafts) == edited.text:
        return found
    plain = _solve(bench, edited.text, [])
    if not plain.unsolved and bench.made(plain.drafts) == edited.text:
        return plain
    coarse = _coarse(bench, edited.text)
    return coarse if coarse is not None else plain if len(plain.unsolved) <= len(found.unsolved) else found


def _solve(bench: Bench, text: bytes, found: Sequence[Draft]) -> Solved:
    hunks = between(bench.text, text)
    drafts = list(found)
    for draft in (*_before_returns(bench, hunks), *_at_each_match(bench, hunks)):
        made = between(bench.text, bench.made([draft]) or b"")
        if made and all(hunk in hunks for hunk in made):
            drafts.append(draft)
            hunks = [hunk for hunk in hunks if hunk not in made]
    groups = _apart(bench, _groups(bench, hunks))
    unsolved = [hunk for group, solved in groups if solved is None for hunk in group]
    drafts += [draft for _hunks, solved in groups for draft in solved or ()]
    return Solved(_merged(sorted(drafts, key=bench.offset)), tuple(unsolved))


Group = tuple[list[Hunk], "list[Draft] | None"]


def _apart(bench: Bench, groups: list[list[Hunk]]) -> list[Group]:
    """Every group with its drafts; a group that stands in what another one replaces is solved with that one."""
    found: list[Group] = []
    for group in groups:
        solved = _group(bench, group)
        reach = _removed(bench, solved or [])
        while found and solved is not None and found[-1][0][-1].end > reach[0]:
            group = [*found.pop()[0], *group]
            solved = _group(bench, group)
            reach = _removed(bench, solved or [])
        while found and found[-1][1] and _removed(bench, found[-1][1])[1] > group[0].start:
            group = [*found.pop()[0], *group]
            solved = _group(bench, group)
        found.append((group, solved))
    return found


def _removed(bench: Bench, drafts: Sequence[Draft]) -> tuple[int, int]:
    """From the first byte that is replaced to the last; an empty stretch at the end where none is."""
    edits = (bench.planned(draft) for draft in drafts)
    splices = [splice for edit in edits if edit is not None for splice in edit.splices if splice.removed]
    ends = [splice.end for splice in splices]
    return min((splice.start for splice in splices), default=len(bench.text)), max(ends, default=0)


def _coarse(bench: Bench, text: bytes) -> Solved | None:
    """All hunks of a top-level stretch as one replacement; None when that does not give the text either."""
    drafts: list[Draft] = []
    hunks = between(bench.text, text)
    while hunks:
        solved = None
        for count in range(1, len(hunks) + 1):
            solved = change(bench, joined(bench.text, hunks[:count]))
            if solved is not None:
                hunks = hunks[count:]
                break
        if solved is None:
            return None
        drafts += solved
    return Solved(tuple(drafts), ()) if drafts and bench.made(drafts) == text else None


# --- one group of hunks -----------------------------------------------------------------------------------------------


def _groups(bench: Bench, hunks: Sequence[Hunk]) -> list[list[Hunk]]:
    """Hunks that change one simple statement, or one header, belong together."""
    groups: list[list[Hunk]] = []
    reach = -1
    for hunk in hunks:
        run = [] if hunk.inserts and insertable(bench, hunk) else next(iter(runs(bench, hunk)), [])
        start = run[0].start if run else hunk.start
        if groups and start < reach:
            groups[-1].append(hunk)
        else:
            groups.append([hunk])
        reach = max(reach, hunk.end, _tokens_end(run) if run else hunk.end)
    return groups


def insertable(bench: Bench, hunk: Hunk) -> bool:
    """Whether the place is between two statements, or in front of one: a line of its own could stand there."""
    start = hunk.start
    return not any(stmt.start < start <= stmt.end and not _below_header(stmt, start) for stmt in bench.code.statements)


def _below_header(stmt: Stmt, offset: int) -> bool:
    return bool(stmt.inner) and offset > _header_end(stmt)


def _header_end(stmt: Stmt) -> int:
    return min(block[0].start for block in stmt.inner) - 1


def _tokens_end(run: Sequence[Stmt]) -> int:
    last = run[-1]
    return _header_end(last) if last.inner and len(run) == 1 else last.end


def _group(bench: Bench, group: Sequence[Hunk], depth: int = 0) -> list[Draft] | None:
    hunk = joined(bench.text, list(group))
    if hunk.inserts:
        found = insertion(bench, hunk)
        if found is not None:
            return found
    whole = change(bench, hunk)
    finer = _by_statements(bench, hunk, depth) if depth < 3 else None
    if finer is None or whole is None:
        return finer if whole is None else whole
    price = bench.cost(finer) + EDIT * (len(finer) - 1)
    return finer if price < bench.cost(whole) + EDIT * (len(whole) - 1) else whole


def _by_statements(bench: Bench, hunk: Hunk, depth: int) -> list[Draft] | None:
    """The hunk cut where statements of before and after belong to each other."""
    run = next(iter(runs(bench, hunk)), [])
    now = statements(bench, run, hunk) if run else None
    if now is None or max(len(now.nodes), len(run)) > _MOST_PAIRED or len(now.nodes) + len(run) < 3:
        return None
    pieces = _cut(bench, now, hunk)
    drafts: list[Draft] = []
    for piece in pieces:
        found = _group(bench, [piece], depth + 1)
        if found is None:
            return None
        drafts += found
    wanted = hunk.applied(bench.text)
    return drafts if len(pieces) > 1 and bench.made(drafts) == wanted else None


def _cut(bench: Bench, now: Statements, hunk: Hunk) -> list[Hunk]:
    """The hunk as smaller ones: cut at the lines of each pair of statements; nothing where that cannot be done by lines."""
    wanted, source = hunk.applied(bench.text), bench.target.source
    longer = len(wanted) - len(bench.text)
    start, end = source.line_start(now.run[0].start), source.line_end(now.run[-1].end)
    edges = [(start, start)]
    for stmt, node in pairs_of(bench, now):
        first, last = bench.code.lines_of(stmt)
        edges += [(first, _now_at(now, node, first=True)), (last, _now_at(now, node, first=False))]
    edges.append((end, end + longer))
    pieces: list[Hunk] = []
    for (old, new), (old_end, new_end) in pairwise(edges):
        if old_end < old or new_end < new:
            return []
        if bench.text[old:old_end] != wanted[new:new_end]:
            pieces += between(bench.text[old:old_end], wanted[new:new_end], old)
    return pieces


def _now_at(now: Statements, node: ast.stmt, first: bool) -> int:
    """The offset in the edited text at which the lines of a statement begin, or end."""
    shift = now.run[0].start - now.shift
    lines = [int(one.lineno) for one in (node, *getattr(node, "decorator_list", []))]
    if first:
        number = min(lines)
        top = now.source.line_starts[number - 1]
        return top + shift if top >= now.shift else now.run[0].start - now.head
    end = now.source.line_end(now.source.line_starts[(node.end_lineno or 1) - 1])
    return end + shift + (now.tail if end == len(now.source.text) else 0)


# --- several at once --------------------------------------------------------------------------------------------------


def _before_returns(bench: Bench, hunks: Sequence[Hunk]) -> list[Draft]:
    """``before_each_return`` for each function and each text that was inserted before one of several returns of it."""
    found: dict[tuple[int, str], Draft] = {}
    for hunk in hunks:
        stmt = next((s for s in bench.code.starting_at.get(hunk.start, []) if isinstance(s.node, ast.Return)), None)
        if stmt is None or not hunk.inserts:
            continue
        home = bench.home(stmt)
        if home.definition is None or len(_returns(bench, home.definition.start, home.definition.end, stmt)) < 2:
            continue
        code = as_code(hunk.text, bench.target.source.indent_at(stmt.start))
        if code:
            draft = Draft("before_each_return", home, {"before_each_return": code})
            found.setdefault((home.definition.start, code), draft)
    return list(found.values())


def _at_each_match(bench: Bench, hunks: Sequence[Hunk]) -> list[Draft]:
    """``before`` or ``after`` with ``expect`` where the same lines were inserted several times, beside equal statements."""
    times = Counter(hunk.text for hunk in hunks if hunk.inserts)
    found = []
    for hunk in {hunk.text: hunk for hunk in hunks if times[hunk.text] > 1}.values():
        for verb, places in (("after", bench.code.ending_at), ("before", bench.code.starting_at)):
            for stmt in places.get(hunk.start, []):
                code = as_code(hunk.text, bench.target.source.indent_at(stmt.start))
                pattern, count = next(texts(bench, stmt)), times[hunk.text]
                if code and len(bench.occurrences(bench.home(stmt), pattern)) == count:
                    found.append(Draft(verb, bench.home(stmt), {verb: pattern, "insert": code}, None, count))
    return found


def _returns(bench: Bench, start: int, end: int, like: Stmt) -> list[Stmt]:
    home = bench.home(like)
    inside = (stmt for stmt in bench.code.statements if start <= stmt.start < end and isinstance(stmt.node, ast.Return))
    return [stmt for stmt in inside if bench.home(stmt).definition is home.definition]


def _merged(drafts: list[Draft]) -> tuple[Draft, ...]:
    """One edit for all matches of an anchor at which the same is done."""
    found: list[Draft] = []
    for draft in drafts:
        alike = [other for other in drafts if replace(other, nth=None) == replace(draft, nth=None)]
        if draft.nth is not None and {other.nth for other in alike} == set(range(1, draft.expect + 1)):
            if draft is alike[0]:
                found.append(replace(draft, nth=None))
            continue
        found.append(draft)
    return tuple(found)
