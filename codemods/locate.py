"""From an edit to its sites: the file, the symbol, the anchor. Exactly as many as expected, or a finding with candidates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import libcst as cst

from codemods import diagnose, misses
from codemods.errors import FindingError
from codemods.outline import Definition
from codemods.pattern import Match, Pattern, compile_expression, compile_statements, find_expressions, find_statements
from codemods.recipe import Edit, Place
from codemods.scope import Definitions, NotEditableError, Scope
from codemods.site import Site
from codemods.target import Target
from codemods.verbs.verb import CLASS, EXPRESSION, FUNCTION, MODULE
from locales import _


def stands(target: Target, place: Place) -> bool:
    """Whether the place's definition is there at all: cheaper than the explanation of why not."""
    return not place.symbol or bool(target.outline.named(place.symbol))


def find_sites(target: Target, edit: Edit, place: Place, marker: str) -> list[Site]:
    """The sites of one place. Raises a finding when there are not exactly as many as expected."""
    verb = edit.verb
    if not verb.anchor:
        definition = _definition(target, edit, place) if place.symbol else None
        _check_kind(edit, "" if definition else MODULE, place)
        return [Site(target, definition, None, None, place.fields, marker)]
    pattern = _pattern(edit, place)
    scopes = [_definition_scope(target, edit, place)] if place.symbol else _module_scopes(target, pattern)
    found = [(scope, match) for scope in scopes for match in _matches(pattern, scope)]
    if len(found) != place.expect:
        raise _wrong_count(target, edit, place, pattern, found, scopes)
    if place.nth is not None:
        found = [found[place.nth - 1]]
    return [Site(target, scope.definition, scope, match, place.fields, marker) for scope, match in found]


def _pattern(edit: Edit, place: Place) -> Pattern:
    text = place.fields[edit.verb.name]
    return compile_expression(text) if edit.verb.anchor == EXPRESSION else compile_statements(text)


def _matches(pattern: Pattern, scope: Scope) -> list[Match]:
    try:
        return _all_matches(pattern, scope)
    except RecursionError as error:
        offset = scope.definition.start if scope.definition else 0
        raise NotEditableError(_("the code nests too deep to be matched"), where=scope.source.where(offset)) from error


def _all_matches(pattern: Pattern, scope: Scope) -> list[Match]:
    if pattern.expression is not None:
        found = find_expressions(pattern, scope.blocks)
        return sorted(found, key=lambda match: scope.span(match.expression)[0] if match.expression else 0)
    return sorted(find_statements(pattern, scope.blocks), key=lambda match: scope.span(match.statements[0].node)[0])


def _module_scopes(target: Target, pattern: Pattern) -> list[Scope]:
    places = [(start, end) for start, end in target.outline.stretches]
    if any(isinstance(node, Definitions) for node in pattern.statements):
        top = [d for d in target.outline.definitions if "." not in d.qualname and not d.branch]
        places += [(d.start, d.end) for d in top]
    return [target.scope(start, end, None) for start, end in sorted(places)]


def _definition(target: Target, edit: Edit, place: Place) -> Definition:
    definition = find_definition(target, place)
    _check_kind(edit, CLASS if definition.kind == "class" else FUNCTION, place)
    return definition


def _definition_scope(target: Target, edit: Edit, place: Place) -> Scope:
    definition = _definition(target, edit, place)
    return target.scope(definition.start, definition.end, definition)


def _check_kind(edit: Edit, kind: str, place: Place) -> None:
    if kind and kind not in edit.verb.scopes:
        raise misses.WrongScopeError(
            _("`{verb}` does not work on a {kind}").format(verb=edit.verb.name, kind=kind),
            where=place.where,
            todo=_("`in` may name: {kinds}").format(kinds=", ".join(edit.verb.scopes)),
        )


def find_definition(target: Target, place: Place) -> Definition:
    """The one definition that the place names. Raises SymbolMissingError or AmbiguousSymbolError."""
    named = target.outline.named(place.symbol)
    if not named:
        raise diagnose.symbol_missing(target, place)
    chosen = _selected(named, place.select)
    if len(chosen) == 1:
        return chosen[0]
    raise misses.AmbiguousSymbolError(
        _("`{symbol}` is defined {count} times").format(symbol=place.symbol, count=len(named))
        if not place.select
        else _("`select` leaves {count} definitions of `{symbol}`").format(symbol=place.symbol, count=len(chosen)),
        where=target.source.path,
        todo=_("say which with `select:` (nth, decorator or branch)"),
        details=tuple(_candidate(target, number, definition) for number, definition in enumerate(named, 1)),
    )


def _candidate(target: Target, number: int, definition: Definition) -> str:
    marks = [f"@{decorator}" for decorator in definition.decorators] or [_("no decorator")]
    branch = [_("in a branch of `{branch}`").format(branch=definition.branch)] if definition.branch else []
    return f"{target.source.path}:{definition.line}: select: {{nth: {number}}}  ({', '.join(marks + branch)})"


def _selected(named: tuple[Definition, ...], select: Mapping[str, Any]) -> tuple[Definition, ...]:
    chosen = named
    if "decorator" in select:
        wanted = select["decorator"].removeprefix("@")
        chosen = tuple(d for d in chosen if (not d.decorators if wanted == "none" else wanted in d.decorators))
    if "branch" in select:
        chosen = tuple(d for d in chosen if d.branch == select["branch"])
    if "nth" in select:
        chosen = chosen[select["nth"] - 1 : select["nth"]] if select["nth"] > 0 else ()
    return chosen


def _wrong_count(
    target: Target, edit: Edit, place: Place, pattern: Pattern, found: list[tuple[Scope, Match]], scopes: list[Scope]
) -> FindingError:
    if not found:
        return diagnose.no_match(target, edit, place, pattern, scopes)
    lines = tuple(target.source.where(scope.span(_node_of(match))[0]) for scope, match in found)
    return misses.MatchCountError(
        _("the anchor matches {found} times, {expected} expected").format(found=len(found), expected=place.expect),
        where=f"{target.source.path}: {place.symbol or _('module')}",
        why=f"{edit.verb.name}: {place.fields[edit.verb.name].strip()}",
        todo=_("make the pattern longer, or state `expect:` (and `nth:`)"),
        details=lines,
    )


def _node_of(match: Match) -> cst.CSTNode:
    return match.expression if match.expression is not None else match.statements[0].node


def matches_in(pattern: Pattern, scope: Scope) -> list[int]:
    """The offsets at which the pattern matches in the scope."""
    return [scope.span(_node_of(match))[0] for match in _matches(pattern, scope)]
