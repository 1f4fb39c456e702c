"""An anchor in a definition: where it matches, or which statements come nearest to it, and a pattern that would match those."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst

from authoring.drift.shape import alike, resemblance
from codemods.errors import ProbePatchError
from codemods.locate import find_sites
from codemods.outline import Definition
from codemods.pattern import (
    Match,
    Pattern,
    compile_expression,
    compile_statements,
    expressions_in,
    find_expressions,
    find_statements,
    holes_in,
)
from codemods.recipe import Edit, Place
from codemods.scope import Scope, Statement
from codemods.target import Target
from codemods.verbs.verb import EXPRESSION
from locales import _

_LEAST = 0.5
_LONGEST = 2_000  # characters of a statement that are compared
_NEIGHBOURS = 2
_UNSAID = re.compile(r"\$\w+|\.\.\.")


@dataclass(frozen=True)
class Was:
    """How the anchor stood in the tree that the recipe was written for: its code, what its holes held, and the statements
    around it."""

    code: str
    captured: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Near:
    """Code that the anchor could mean: ``likeness`` 0 … 1, its ``line`` in the file, its text, and whether the statements around
    it are those that were around the anchor (0 … 1, None when that is not known)."""

    likeness: float
    line: int
    code: str
    context: float = 0.5


def pattern_of(edit: Edit, place: Place) -> Pattern | None:
    """The compiled anchor; None for a verb that has none."""
    if not edit.verb.anchor:
        return None
    text = place.fields[edit.verb.name]
    return compile_expression(text) if edit.verb.anchor == EXPRESSION else compile_statements(text)


def fits(target: Target, edit: Edit, place: Place) -> tuple[int, ...] | None:
    """The lines of the sites when the place holds as many as it expects; None when not."""
    try:
        sites = find_sites(target, edit, place, "")
    except ProbePatchError:
        return None
    if sites and sites[0].match is not None:
        return tuple(target.source.line_of(site.parsed.span(_node(site.match))[0]) for site in sites if site.match)
    definition = sites[0].definition if sites else None
    return (definition.line if definition is not None else 1,)


def was(target: Target, edit: Edit, place: Place) -> Was | None:
    """The anchor as it stands in this tree, where the place fits; None otherwise, and for a verb without anchor."""
    try:
        site = find_sites(target, edit, place, "")[0]
    except ProbePatchError:
        return None
    if site.match is None:
        return None
    code = _code(site.parsed, site.match)
    before, after = _around(site.parsed, site.first, site.last)
    return Was(code, site.captured, before, after)


def differences(old: Target, new: Target, edit: Edit, place: Place) -> tuple[str, ...]:
    """How the place differs between two trees in both of which it fits: conditions around it, what its holes hold, and, where
    it is one of several, the statements beside it."""
    try:
        before, after = (find_sites(target, edit, place, "") for target in (old, new))
    except ProbePatchError:
        return ()
    if not before or not after or before[0].match is None or after[0].match is None:
        return ()
    found = []
    one, other = before[0], after[0]
    if _conditions(one.parsed, one.first) != _conditions(other.parsed, other.first):
        found.append(_("it stands under other conditions than in the older tree"))
    if _unreachable(other.parsed, other.first) and not _unreachable(one.parsed, one.first):
        found.append(_("the statement above it leaves the block"))
    used = {hole[1:] for key, text in place.fields.items() if key != edit.verb.name for hole in holes_in(text)}
    changed = sorted(name for name in used if one.captured.get(name) != other.captured.get(name))
    if changed:
        found.append(_("what {holes} holds has changed").format(holes=", ".join(f"${name}" for name in changed)))
    if place.nth is not None and _around(one.parsed, one.first, one.last) != _around(
        other.parsed, other.first, other.last
    ):
        found.append(_("it is one of several, and what stands around it has changed"))
    return tuple(found)


def _conditions(scope: Scope, statement: Statement) -> list[str]:
    """The conditions under which the statement runs: the headers of the `if`, `while`, `else` and handlers around it."""
    found = []
    owner = statement.owner
    while owner is not None and owner is not scope.node:
        if isinstance(owner, (cst.If, cst.While, cst.Else, cst.ExceptHandler, cst.Match, cst.MatchCase)):
            test = getattr(owner, "test", None) or getattr(owner, "pattern", None) or getattr(owner, "type", None)
            found.append(type(owner).__name__ + (" ".join(scope.code(test).split()) if test is not None else ""))
        owner = next(
            (one.owner for block in scope.blocks for one in block if one.node is owner or _holds(one.node, owner)), None
        )
    return found


def _holds(node: cst.CSTNode, part: cst.CSTNode) -> bool:
    """Whether ``part`` is a branch of the compound statement ``node``: its `else`, a handler, a case."""
    branches: list[cst.CSTNode | None] = [
        getattr(node, "orelse", None),
        getattr(node, "finalbody", None),
        *getattr(node, "handlers", ()),
        *getattr(node, "cases", ()),
    ]
    return any(one is part or (one is not None and _holds(one, part)) for one in branches)


def _unreachable(scope: Scope, statement: Statement) -> bool:
    block = next(block for block in scope.blocks if any(one.node is statement.node for one in block))
    place = next(n for n, one in enumerate(block) if one.node is statement.node)
    return any(isinstance(one.node, (cst.Return, cst.Raise, cst.Continue, cst.Break)) for one in block[:place])


def nearest(target: Target, edit: Edit, place: Place, definition: Definition | None, known: Was | None) -> list[Near]:
    """The statements (or expressions) of the definition most like the anchor, best first."""
    pattern = pattern_of(edit, place)
    if pattern is None:
        return []
    wanted = known.code if known is not None else _UNSAID.sub("", pattern.text)
    found = []
    for scope in scopes_of(target, definition):
        for block in scope.blocks:
            runs = _expressions(scope, block, pattern) if pattern.expression is not None else _runs(block, pattern)
            for match in runs:
                code = _code(scope, match, pattern.header_only and known is None)
                likeness = resemblance(wanted[:_LONGEST], code[:_LONGEST])
                if likeness >= _LEAST:
                    line = target.source.line_of(scope.span(_node(match))[0])
                    found.append(Near(likeness, line, code, _context(scope, match, known)))
    return sorted(found, key=lambda near: -(near.likeness + 0.2 * near.context))


def scopes_of(target: Target, definition: Definition | None) -> list[Scope]:
    """The definition, or the module's stretches between its definitions; what LibCST cannot parse is left out."""
    places = (
        [(definition.start, definition.end, definition)]
        if definition is not None
        else [(start, end, None) for start, end in target.outline.stretches]
    )
    found = []
    for start, end, one in places:
        try:
            found.append(target.scope(start, end, one))
        except ProbePatchError:
            continue
    return found


def mended(
    edit: Edit, place: Place, near: Near, known: Was | None, target: Target, definition: Definition | None
) -> tuple[Place, tuple[str, ...]]:
    """The place with a pattern that matches the code found, and what is to be done by hand about it."""
    pattern = pattern_of(edit, place)
    assert pattern is not None
    for looser in _loosened(pattern.text.strip()):
        trial = replace(place, fields={**place.fields, edit.verb.name: looser})
        if [one.line for one in _tried(target, edit, trial, definition)] == [near.line]:
            return trial, ()
    text = _as_pattern(near.code, pattern.header_only)
    wanted = {
        hole
        for key, value in place.fields.items()
        if key != edit.verb.name
        for hole in (found[1:] for found in holes_in(value))
    }
    for name, code in sorted((known.captured if known else {}).items(), key=lambda item: -len(item[1])):
        text = re.sub(rf"(?<![\w.]){re.escape(code)}(?!\w)", f"${name}", text)
    doubts = []
    lost = sorted(wanted - {found[1:] for found in holes_in(text)})
    if lost:
        doubts.append(_("the inserted code uses {holes}").format(holes=", ".join(f"${name}" for name in lost)))
    return replace(place, fields={**place.fields, edit.verb.name: text}), tuple(doubts)


def _loosened(text: str) -> list[str]:
    """The pattern with room for one more item, argument or annotation at its end."""
    if text.startswith(("with ", "async with ")) and text.endswith(":") and "\n" not in text:
        return [f"{text[:-1]}, ...:"]
    return [f"{text[:-1]}, ...)"] if text.endswith(")") and not text.endswith(("()", "...)")) else []


def _tried(target: Target, edit: Edit, place: Place, definition: Definition | None) -> list[Near]:
    try:
        return matches(target, edit, place, definition)
    except ProbePatchError:
        return []


def _as_pattern(code: str, header_only: bool) -> str:
    text = textwrap.dedent(code).strip()
    return text.split("\n")[0].rstrip() if header_only and ":" in text else text


def _node(match: Match) -> cst.CSTNode:
    return match.expression if match.expression is not None else match.statements[0].node


def _code(scope: Scope, match: Match, header_only: bool = False) -> str:
    if match.expression is not None:
        return scope.code(match.expression)
    texts = [_text(scope, statement) for statement in match.statements]
    return texts[0].split("\n")[0] if header_only else "\n".join(texts)


def _text(scope: Scope, statement: Statement) -> str:
    """The statement as written, without the comments above it."""
    start, end = scope.span(statement.node)
    line = scope.source.line_start(start)
    return textwrap.dedent(" " * (start - line) + scope.source.text[start:end].decode("utf-8"))


def _runs(block: Sequence[Statement], pattern: Pattern) -> list[Match]:
    width = max(1, len(pattern.statements))
    kinds = {type(node) for node in pattern.statements[:1]}
    starts = range(len(block) - width + 1)
    return [Match(tuple(block[n : n + width]), {}) for n in starts if type(block[n].node) in kinds]


def _expressions(scope: Scope, block: Sequence[Statement], pattern: Pattern) -> list[Match]:
    kind = type(pattern.expression)
    return [
        Match((statement,), {}, node)
        for statement in block
        for node in expressions_in(statement.node)
        if type(node) is kind
    ]


def _around(scope: Scope, first: Statement, last: Statement) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The headers of up to two statements before and after, in the same block."""
    block = next(block for block in scope.blocks if any(one.node is first.node for one in block))
    place = next(n for n, one in enumerate(block) if one.node is first.node)
    end = next(n for n, one in enumerate(block) if one.node is last.node)
    before = block[max(0, place - _NEIGHBOURS) : place]
    after = block[end + 1 : end + 1 + _NEIGHBOURS]
    return tuple(_head(scope, one) for one in before), tuple(_head(scope, one) for one in after)


def _head(scope: Scope, statement: Statement) -> str:
    return scope.code(statement.node).strip().split("\n")[0]


def _context(scope: Scope, match: Match, known: Was | None) -> float:
    if known is None:
        return 0.5
    before, after = _around(scope, match.statements[0], match.statements[-1])
    pairs = [*zip(reversed(known.before), reversed(before), strict=False), *zip(known.after, after, strict=False)]
    asked = len(known.before) + len(known.after)
    if not asked:
        return 1.0 if not before and not after else 0.5
    return sum(alike(one, other) > 0.8 for one, other in pairs) / asked


def matches(
    target: Target, edit: Edit, place: Place, definition: Definition | None, known: Was | None = None
) -> list[Near]:
    """Every match of the anchor as it is, in source order."""
    pattern = pattern_of(edit, place)
    if pattern is None:
        return []
    find = find_expressions if pattern.expression is not None else find_statements
    found = []
    for scope in scopes_of(target, definition):
        for match in find(pattern, scope.blocks):
            line = target.source.line_of(scope.span(_node(match))[0])
            found.append(Near(1.0, line, _code(scope, match), _context(scope, match, known)))
    return sorted(found, key=lambda near: near.line)
