"""A miss is a diagnosis: what is there instead, nearest first, and the YAML that would match it. Only hints, never a choice."""

from __future__ import annotations

import difflib
import re

import libcst as cst

from codemods import misses
from codemods.errors import FindingError, ProbePatchError
from codemods.outline import Definition
from codemods.pattern import (
    Match,
    Pattern,
    PatternError,
    compile_expression,
    compile_statements,
    find_expressions,
    find_statements,
)
from codemods.recipe import Edit, Place
from codemods.scope import Scope
from codemods.target import Target
from codemods.verbs.verb import EXPRESSION, STATEMENT
from locales import _

SHOWN = 3
_LEAST = 0.55  # below this likeness a candidate is no help
_SEARCHED = 60  # definitions parsed in search of the anchor


def symbol_missing(target: Target, place: Place) -> FindingError:
    names = [d.qualname for d in target.outline.definitions]
    last = place.symbol.rpartition(".")[2]
    scored = [
        (1.0 if name.rpartition(".")[2] == last else _likeness(place.symbol, name), name)
        for name in dict.fromkeys(names)
    ]
    near = sorted((item for item in scored if item[0] >= _LEAST), key=lambda item: -item[0])[:SHOWN]
    details = [
        f"{target.source.path}:{target.outline.named(name)[0].line}: in: {name}  ({score:.2f})" for score, name in near
    ]
    verb_text = next(
        (place.fields[key] for key in ("before", "after", "around", "replace", "delete") if key in place.fields), ""
    )
    if verb_text:
        details += [line for line in _elsewhere(target, compile_statements(verb_text)) if line not in details]
    return misses.SymbolMissingError(
        _("`{symbol}` is not in the file").format(symbol=place.symbol),
        where=target.source.path,
        why=_("looked for by {where}").format(where=place.where),
        todo=_("the nearest, as hints only:") if details else _("no candidate is near"),
        details=tuple(details),
    )


def no_match(target: Target, edit: Edit, place: Place, pattern: Pattern, scopes: list[Scope]) -> FindingError:
    already = _already_there(edit, place, scopes)
    parts = _within_statements(target, pattern, scopes, edit.verb.name)
    details = parts or _near_statements(target, pattern, scopes, edit.verb.name)
    details += _elsewhere(target, pattern, place.symbol)
    hint = _("a statement is matched whole; the pattern stands within:") if parts else _("the nearest, as hints only:")
    return misses.NoMatchError(
        _("the anchor is not there"),
        where=f"{target.source.path}: {place.symbol or _('module')}",
        why=_("what the edit would insert stands there already (upstream?)")
        if already
        else f"{edit.verb.name}: {pattern.text.strip()}",
        todo=hint if details else _("no candidate is near"),
        details=tuple(details),
    )


def _likeness(left: str, right: str) -> float:
    return difflib.SequenceMatcher(None, left, right, autojunk=False).ratio()


def _one_line(code: str) -> str:
    return " ".join(code.split())


def _near_statements(target: Target, pattern: Pattern, scopes: list[Scope], verb: str) -> list[str]:
    """Statements of the place that look like the pattern's first."""
    wanted = _one_line(pattern.text.strip().split("\n")[0].replace("$", ""))
    scored: list[tuple[float, int, str]] = []
    for scope in scopes:
        for block in scope.blocks:
            for statement in block:
                start = scope.span(statement.node)[0]
                code = _one_line(scope.code(statement.node).strip().split("\n")[0])
                scored.append((_likeness(wanted, code), start, code))
    best = sorted((item for item in scored if item[0] >= _LEAST), key=lambda item: -item[0])[:SHOWN]
    return [f"{target.source.where(start)}: {verb}: {code[:160]}  ({score:.2f})" for score, start, code in best]


def _within_statements(target: Target, pattern: Pattern, scopes: list[Scope], verb: str) -> list[str]:
    """Patterns for the statements of which the pattern, an expression, is only a part."""
    if len(pattern.statements) != 1 or not isinstance(pattern.statements[0], cst.Expr):
        return []
    try:
        part = compile_expression(pattern.text)
    except PatternError:
        return []
    found = []
    for scope in scopes:
        for match in find_expressions(part, scope.blocks):
            node = match.statements[0].node
            found.append(f"{target.source.where(scope.span(node)[0])}: {verb}: {_whole(scope, match, pattern)}")
    return found[:SHOWN]


def _whole(scope: Scope, match: Match, pattern: Pattern) -> str:
    """A pattern for the whole statement: with the same expression where that is all of its value."""
    node, text = match.statements[0].node, _one_line(pattern.text)
    if getattr(node, "value", None) is match.expression:
        if isinstance(node, cst.Assign) and len(node.targets) == 1:
            return f"$_ = {text}"
        if isinstance(node, cst.Return):
            return f"return {text}"
    if isinstance(node, cst.BaseCompoundStatement):
        return _one_line(scope.code(node).strip().split("\n")[0])[:160]
    return _one_line(scope.code(node))[:160]


def _elsewhere(target: Target, pattern: Pattern, without: str = "") -> list[str]:
    """Functions of the file in which the anchor does match."""
    found: list[str] = []
    words = {word.encode() for word in re.findall(r"(?<![$\w])[A-Za-z_]\w+", pattern.text)}
    for definition in _functions(target, words)[:_SEARCHED]:
        if definition.qualname == without:
            continue
        try:
            scope = target.scope(definition.start, definition.end, definition)
        except ProbePatchError:
            continue
        matches = (find_expressions if pattern.expression is not None else find_statements)(pattern, scope.blocks)
        for match in matches:
            where = target.source.where(scope.span(match.statements[0].node)[0])
            found.append(f"{where}: in: {definition.qualname}  ({_('the anchor matches here')})")
    return found[:SHOWN]


def _functions(target: Target, words: set[bytes]) -> list[Definition]:
    text = target.source.text
    functions = [d for d in target.outline.definitions if d.kind != "class"]
    return [d for d in functions if all(word in text[d.start : d.end] for word in words)]


def stands_already(edit: Edit, place: Place, target: Target) -> bool:
    """Whether the place's definition (or the module) holds what the edit would insert."""
    if edit.verb.name == "add_method":
        name = re.search(r"def\s+(\w+)", place.fields["add_method"])
        return name is not None and bool(target.outline.named(f"{place.symbol}.{name.group(1)}"))
    scopes: list[Scope] = []
    places: list[tuple[int, int, Definition | None]] = [(d.start, d.end, d) for d in target.outline.named(place.symbol)]
    if not place.symbol:
        places = [(start, end, None) for start, end in target.outline.stretches]
    for start, end, definition in places:
        try:
            scopes.append(target.scope(start, end, definition))
        except ProbePatchError:
            continue
    return _already_there(edit, place, scopes)


def _already_there(edit: Edit, place: Place, scopes: list[Scope]) -> bool:
    if edit.verb.anchor not in (STATEMENT, EXPRESSION):
        return False
    code = place.fields.get("insert") or place.fields.get("with") or ""
    try:
        pattern = compile_statements(code)
    except PatternError:
        return False
    return any(find_statements(pattern, scope.blocks) for scope in scopes)
