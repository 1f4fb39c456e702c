"""Captured code in inserted code: put in parentheses where the text alone would mean something else."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from codemods.nesting import syntax
from codemods.pattern import substitute

STATEMENTS, ITEM, ARGUMENT, EXPRESSION = "{}", "with {}:\n pass", "f({})", "({})"
_ATOM = re.compile(r"[\w.]+")
FRAMES = {"item": ITEM, "argument": ARGUMENT}  # by the verb's key; statements else


def same_syntax(one: str, other: str) -> bool:
    """Whether both texts are the same Python; False when this Python cannot tell."""
    try:
        return ast.dump(syntax(one)) == ast.dump(syntax(other))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def fill(code: str, captured: Mapping[str, str], frame: str = STATEMENTS) -> str:
    """``code`` with its holes filled. ``a + b`` becomes ``(a + b)`` in ``$X * 2``, and stays as it is in ``tap($X)``."""
    plain = substitute(code, captured)
    safe = substitute(code, {name: text if _ATOM.fullmatch(text) else f"({text})" for name, text in captured.items()})
    if plain == safe:
        return plain
    return plain if same_syntax(frame.format(plain), frame.format(safe)) else safe
