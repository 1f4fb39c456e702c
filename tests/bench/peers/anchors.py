"""Anchors of recipes as LibCST matchers, written out as the Python that a codemod's author would write."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

import libcst as cst

from tests.bench.peers.edits import PeerEdit

_HOLE, _DOTS = "HOLE_", "DOTS"
_UNSAID = ("lpar", "rpar", "lbracket", "rbracket", "comma", "semicolon", "equal", "dot", "body", "leading_lines")


def anchors_module(edits: Sequence[PeerEdit]) -> str:
    """The source of a module whose ANCHORS maps an edit's id to the matcher of its place."""
    lines = [f"    {edit.id!r}: {matcher_of(edit)},\n" for edit in edits if edit.verb in _PARSED]
    return f"import libcst.matchers as m\n\nANCHORS = {{\n{''.join(lines)}}}\n"


def matcher_of(edit: PeerEdit) -> str:
    """An expression that makes the matcher: of a small statement, of a ``with`` statement, of a call."""
    text = re.sub(r"\$(\w+)", rf"{_HOLE}\1", edit.fields[edit.verb])
    return _matcher(_PARSED[edit.verb](text))


def _small_statement(text: str) -> cst.CSTNode:
    line = cst.parse_statement(text.replace("...", f"*{_DOTS}"))
    assert isinstance(line, cst.SimpleStatementLine)
    return line.body[0]


def _header(text: str) -> cst.CSTNode:
    return cst.parse_statement(text.replace("...", _DOTS) + " pass")


def _expression(text: str) -> cst.CSTNode:
    return cst.parse_expression(text.replace("...", f"*{_DOTS}"))


_PARSED = {"before": _small_statement, "after": _small_statement, "with_item": _header, "set_argument": _expression}


def _matcher(node: cst.CSTNode) -> str:
    if isinstance(node, cst.Name) and node.value.startswith(_HOLE):
        return "m.DoNotCare()"
    inner = getattr(node, "item" if isinstance(node, cst.WithItem) else "value", None)
    if isinstance(inner, cst.Name) and inner.value == _DOTS:
        return "m.ZeroOrMore()"
    parts = []
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        if field.name in _UNSAID or field.name.startswith("whitespace"):
            continue
        if isinstance(value, cst.CSTNode):
            parts.append(f"{field.name}={_matcher(value)}")
        elif isinstance(value, (list, tuple)):
            parts.append(f"{field.name}=[{', '.join(map(_matcher, value))}]")
        elif isinstance(value, str):
            parts.append(f"{field.name}={value!r}")
    return f"m.{type(node).__name__}({', '.join(parts)})"
