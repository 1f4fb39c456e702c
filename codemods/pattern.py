"""Patterns: code with holes, matched against syntax.

``$X`` is one expression or name (the same hole twice must match the same code), ``...`` zero or more statements, arguments,
parameters, elements, ``with`` items or imported names, and ``$...`` a literal ``...``. A compound statement's header alone matches
whatever its body and further branches are. White space, comments, quotes and redundant parentheses play no part.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import libcst as cst

from codemods.errors import InvalidError
from codemods.parsing import UnparsableError, parse_snippet
from codemods.scope import Statement, flat
from locales import _

_DOTS = "__probepatch_dots__"
_HOLE = "__probepatch_hole_"

_TOKEN = re.compile(
    r"""(?P<text>[rRbBuUfFtT]{0,3}(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|\#[^\n]*)"""
    r"""|(?P<literal>\$\.\.\.)|(?P<hole>\$[A-Za-z_]\w*)|(?P<dots>\.\.\.)|(?P<open>[(\[{])|(?P<close>[)\]}])""",
    re.DOTALL,
)


_HEADER = re.compile(
    r"(?:async\s+)?(?:if|elif|else|for|while|with|try|except|finally|def|class|match|case)\b[^\n]*(?<!:)"
)


class PatternError(InvalidError):
    """The pattern is no Python code with holes."""


Captures = dict[str, cst.CSTNode]


@dataclass(frozen=True, eq=False)
class Pattern:
    """A compiled pattern: a run of statements, or one expression."""

    text: str
    statements: tuple[cst.CSTNode, ...]
    header_only: bool
    expression: cst.BaseExpression | None

    @property
    def holes(self) -> frozenset[str]:
        return frozenset(hole[1:] for hole in holes_in(self.text))


@dataclass(frozen=True, eq=False)
class Match:
    """Where a pattern stands: a run of statements of one block, or an expression inside ``statement``."""

    statements: tuple[Statement, ...]
    captures: Mapping[str, cst.CSTNode]
    expression: cst.BaseExpression | None = None


def holes_in(text: str) -> Iterator[str]:
    return (found.group() for found in _TOKEN.finditer(text) if found.lastgroup == "hole")


def substitute(text: str, values: Mapping[str, str]) -> str:
    """``text`` with each ``$X`` outside of strings and comments replaced. Raises KeyError for an unknown hole."""
    return _TOKEN.sub(lambda found: values[found.group()[1:]] if found.lastgroup == "hole" else found.group(), text)


def _is_subscript(text: str, bracket: int) -> bool:
    before = text[:bracket].rstrip()
    return before[-1:].isalnum() or before[-1:] in ("_", ")", "]")


def _to_python(text: str) -> str:
    """Holes become names and ``...`` becomes a starred name where a list of things stands, a plain name elsewhere."""
    out: list[str] = []
    brackets: list[str] = []
    last = 0
    for found in _TOKEN.finditer(text):
        out.append(text[last : found.start()])
        last = found.end()
        kind, token = found.lastgroup, found.group()
        before = text[: found.start()].rstrip()[-1:]
        if kind == "hole":
            token = _HOLE + token[1:]
        elif kind == "literal":
            token = "..."
        elif kind == "dots":
            starred = bool(brackets) and brackets[-1] != "subscript" and before in ("(", "[", "{", ",")
            token = f"*{_DOTS}" if starred else _DOTS
        elif kind == "open":
            brackets.append("subscript" if token == "[" and _is_subscript(text, found.start()) else token)
        elif kind == "close" and brackets:
            brackets.pop()
        out.append(token)
    return "".join(out) + text[last:]


@lru_cache(maxsize=512)
def compile_statements(text: str) -> Pattern:
    """Raises PatternError."""
    code = _to_python(text.strip("\n"))
    header_only = code.rstrip().endswith(":") and "\n" not in code.strip()
    if header_only:
        code = f"{code.rstrip()} {_DOTS}"
        if code.startswith("try"):
            code += f"\nfinally: {_DOTS}"
    module = _parsed(text, code + "\n")
    statements = tuple(statement.node for statement in flat(module))
    if not statements or all(_is_dots(node) for node in statements):
        raise PatternError(_("the pattern {pattern!r} matches everything or nothing").format(pattern=text))
    return Pattern(text, statements, header_only, None)


@lru_cache(maxsize=512)
def compile_expression(text: str) -> Pattern:
    """Raises PatternError."""
    module = _parsed(text, f"({_to_python(text.strip())})\n")
    statement = flat(module)[0].node
    if len(module.body) != 1 or not isinstance(statement, cst.Expr) or isinstance(statement.value, cst.Tuple):
        raise PatternError(_("the pattern {pattern!r} is no single expression").format(pattern=text))
    if isinstance(statement.value, cst.Name) and statement.value.value.startswith((_HOLE, _DOTS)):
        raise PatternError(_("the pattern {pattern!r} matches everything or nothing").format(pattern=text))
    return Pattern(text, (), False, statement.value)


def _parsed(text: str, code: str) -> cst.Module:
    try:
        return parse_snippet(code)
    except UnparsableError as error:
        shown = text if len(text) < 200 else text[:200] + "…"
        raise PatternError(
            _("the pattern {pattern!r} is no Python code with holes").format(pattern=shown),
            why=str(error),
            todo=_("a header ends with `:`") if _HEADER.fullmatch(text.strip()) else None,
        ) from error


class _Steps:
    """A budget for one search: many ``...`` in one pattern can take longer than anybody waits."""

    most = 300_000
    left = most

    @classmethod
    def spend(cls) -> None:
        cls.left -= 1
        if cls.left < 0:
            raise PatternError(
                _("the pattern takes too long to match"),
                todo=_("use fewer `...`, or name more between them"),
            )


def find_statements(pattern: Pattern, blocks: Sequence[Sequence[Statement]]) -> list[Match]:
    """Every run of statements that the pattern matches, in source order, without overlaps within a block."""
    matches = []
    _Steps.left = _Steps.most
    for block in blocks:
        place = 0
        while place < len(block):
            captures: Captures = {}
            end = _run(pattern.statements, 0, block, place, captures, pattern.header_only)
            if end is None or end == place:
                place += 1
                continue
            matches.append(Match(tuple(block[place:end]), captures))
            place = end
    return matches


def find_expressions(pattern: Pattern, blocks: Sequence[Sequence[Statement]]) -> list[Match]:
    """Every expression that the pattern matches in the headers and small statements of the blocks."""
    assert pattern.expression is not None
    matches: list[Match] = []
    _Steps.left = _Steps.most
    for block in blocks:
        for statement in block:
            for node in expressions_in(statement.node):
                captures: Captures = {}
                if same(pattern.expression, node, captures):
                    matches.append(Match((statement,), captures, node))
    return matches


def expressions_in(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    for child in node.children:
        if isinstance(child, (cst.BaseSuite, cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            continue
        if isinstance(child, cst.BaseExpression):
            yield child
        yield from expressions_in(child)


def _run(
    pattern: Sequence[cst.CSTNode],
    at: int,
    block: Sequence[Statement],
    place: int,
    captures: Captures,
    header_only: bool,
) -> int | None:
    """The end of the shortest run from ``place`` that the pattern matches from ``at`` on, or None."""
    if at == len(pattern):
        return place
    if _is_dots(pattern[at]):
        for end in range(place, len(block) + 1):
            _Steps.spend()
            trial = dict(captures)
            found = _run(pattern, at + 1, block, end, trial, header_only)
            if found is not None:
                captures.update(trial)
                return found
        return None
    if place < len(block) and same(pattern[at], block[place].node, captures, header_only):
        return _run(pattern, at + 1, block, place + 1, captures, header_only)
    return None


def _is_dots(node: object) -> bool:
    """Is this the wildcard, in whichever dress it stands in a list?"""
    if isinstance(node, cst.Name):
        return node.value == _DOTS
    for field in ("value", "item", "name", "slice"):
        if isinstance(
            node,
            (
                cst.Expr,
                cst.Arg,
                cst.WithItem,
                cst.Element,
                cst.StarredElement,
                cst.ImportAlias,
                cst.Param,
                cst.Index,
                cst.SubscriptElement,
            ),
        ) and hasattr(node, field):
            return _is_dots(getattr(node, field))
    return False


_SKIPPED = {
    "lpar", "rpar", "lbracket", "rbracket", "lbrace", "rbrace", "comma", "semicolon", "equal", "dot", "header", "footer", "indent",
    "leading_lines", "lines_after_decorators", "trailing_whitespace", "lines_after_colon", "end", "quote", "posonly_ind", "colon",
}  # fmt: skip


@lru_cache(maxsize=256)
def _fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    names = [field.name for field in dataclasses.fields(kind)]
    return tuple(name for name in names if name not in _SKIPPED and not name.startswith("whitespace"))


def same(pattern: object, node: object, captures: Captures, header_only: bool = False) -> bool:
    """Does ``node`` have the syntax of ``pattern``? Fills ``captures``."""
    if isinstance(pattern, cst.Name) and pattern.value.startswith(_HOLE):
        return isinstance(node, cst.BaseExpression) and _capture(pattern.value.removeprefix(_HOLE), node, captures)
    if isinstance(pattern, cst.Name) and pattern.value == _DOTS:
        return isinstance(node, cst.BaseExpression)
    if isinstance(pattern, (cst.SimpleString, cst.ConcatenatedString)):
        return _same_text(pattern, node, captures)
    if type(pattern) is not type(node):
        return (
            isinstance(pattern, cst.BaseSuite)
            and isinstance(node, cst.BaseSuite)
            and _same_suite(pattern, node, captures)
        )
    if isinstance(pattern, cst.BaseSuite) and isinstance(node, cst.BaseSuite):
        return _same_suite(pattern, node, captures)
    if isinstance(pattern, (cst.Integer, cst.Float, cst.Imaginary)):
        return bool(ast.literal_eval(pattern.value) == ast.literal_eval(getattr(node, "value", "")))
    if isinstance(pattern, cst.FormattedString) and isinstance(node, cst.FormattedString):
        return _prefix(pattern) == _prefix(node) and _same_list(pattern.parts, node.parts, captures)
    if isinstance(pattern, cst.Parameters) and isinstance(node, cst.Parameters):
        return _same_list(_parameters(pattern), _parameters(node), captures)
    if isinstance(pattern, cst.CSTNode) and isinstance(node, cst.CSTNode):
        return all(
            same(getattr(pattern, name), getattr(node, name), captures)
            for name in _fields(type(pattern))
            if not _unsaid(pattern, name, header_only)
        )
    if isinstance(pattern, (list, tuple)) and isinstance(node, (list, tuple)):
        return _same_list(pattern, node, captures)
    return pattern == node


def _prefix(node: cst.FormattedString) -> str:
    return node.start.rstrip("'\"").lower()


def _unsaid(pattern: cst.CSTNode, field: str, header_only: bool) -> bool:
    """What a pattern of a definition leaves out (decorators, annotations) matches anything; so do the branches after a header."""
    if header_only and field in ("orelse", "finalbody", "handlers"):
        return True
    if isinstance(pattern, (cst.FunctionDef, cst.ClassDef, cst.Param)):
        return field in ("decorators", "returns", "annotation", "type_parameters") and not getattr(pattern, field)
    return False


def _capture(name: str, node: cst.CSTNode, captures: Captures) -> bool:
    if name == "_":
        return True
    if name in captures:
        return same(captures[name], node, {})
    captures[name] = node
    return True


def _same_text(pattern: cst.SimpleString | cst.ConcatenatedString, node: object, captures: Captures) -> bool:
    if not isinstance(node, (cst.SimpleString, cst.ConcatenatedString)):
        return False
    left, right = pattern.evaluated_value, node.evaluated_value
    if left is None or right is None:  # a part is an f-string
        return type(pattern) is type(node) and all(
            same(getattr(pattern, n), getattr(node, n), captures) for n in ("left", "right")
        )
    return type(left) is type(right) and left == right


def _same_suite(pattern: cst.BaseSuite, node: cst.BaseSuite, captures: Captures) -> bool:
    expected = [statement.node for statement in flat(pattern)]
    return _same_list(expected, [statement.node for statement in flat(node)], captures)


def _same_list(pattern: Sequence[object], nodes: Sequence[object], captures: Captures) -> bool:
    if not pattern:
        return not nodes
    if _is_dots(pattern[0]):
        for skip in range(len(nodes) + 1):
            _Steps.spend()
            trial = dict(captures)
            if _same_list(pattern[1:], nodes[skip:], trial):
                captures.update(trial)
                return True
        return False
    return bool(nodes) and same(pattern[0], nodes[0], captures) and _same_list(pattern[1:], nodes[1:], captures)


def _parameters(node: cst.Parameters) -> list[object]:
    star = [node.star_arg] if isinstance(node.star_arg, (cst.Param, cst.ParamStar)) else []
    kwargs = [node.star_kwarg] if node.star_kwarg else []
    return [*node.posonly_params, *node.params, *star, *node.kwonly_params, *kwargs]
