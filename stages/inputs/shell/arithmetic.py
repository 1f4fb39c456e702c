"""``$((…))`` with whole numbers, as far as the variables are known."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

_LARGEST = 1 << 63
_LONGEST = 500  # characters


def _quotient(a: int, b: int) -> int:
    return int(a / b) if abs(a) < 1 << 52 and abs(b) < 1 << 52 else abs(a) // abs(b) * (1 if a * b > 0 else -1)


def _power(a: int, b: int) -> int:
    if not 0 <= b < 64:
        raise ValueError
    return int(a**b)


_BINARY: dict[type, Callable[[int, int], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: _quotient,
    ast.Mod: lambda a, b: a - b * _quotient(a, b),
    ast.Pow: _power,
}
_COMPARE: dict[type, Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def calculate(text: str, variable: Callable[[str], str | None]) -> int | None:
    """The value; None where it cannot be told. ``text`` has no ``$`` left but before names."""
    text = re.sub(r"\$\{?(\w+)\}?", r"\1", text).strip()
    if len(text) > _LONGEST:
        return None
    text = re.sub(r"(?<!/)/(?!/)", "//", text).replace("&&", " and ").replace("||", " or ")
    text = re.sub(r"\b0+(?=\d)", "", text)
    try:
        return _value(ast.parse(text, mode="eval").body, variable, 0)
    except (SyntaxError, ValueError, ZeroDivisionError, OverflowError, RecursionError, MemoryError, TypeError):
        return None


def _value(node: ast.expr, variable: Callable[[str], str | None], depth: int) -> int:
    """Raises ValueError."""
    if depth > 40:
        raise ValueError
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        text = variable(node.id)
        if text is None:
            raise ValueError
        return int(text) if text.strip() else 0
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        found = _BINARY[type(node.op)](_value(node.left, variable, depth + 1), _value(node.right, variable, depth + 1))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        found = _value(node.operand, variable, depth + 1) * (-1 if isinstance(node.op, ast.USub) else 1)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
        left, right = _value(node.left, variable, depth + 1), _value(node.comparators[0], variable, depth + 1)
        found = _COMPARE[type(node.ops[0])](left, right)
    elif isinstance(node, ast.BoolOp):
        values = [bool(_value(one, variable, depth + 1)) for one in node.values]
        found = all(values) if isinstance(node.op, ast.And) else any(values)
    else:
        raise ValueError
    if abs(found) >= _LARGEST:
        raise ValueError
    return int(found)
