"""How deep code nests, counted without recursion: parsers die of what nests too deep. Standard library only."""

from __future__ import annotations

import ast
import re
import warnings

MAX_DEPTH = 150  # nodes above a node; LibCST recurses about five frames for each
_TOO_DEEP = 10**6
_BRACKET = re.compile(r"[(\[{]|[)\]}]")


def syntax(text: str) -> ast.Module:
    """``ast.parse`` without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def nesting(text: str) -> int:
    """How deep the syntax of ``text`` nests, counted without recursion; by its brackets alone when ``ast`` cannot read it."""
    try:
        tree = syntax(text)
    except (RecursionError, MemoryError):
        return _TOO_DEEP
    except (SyntaxError, ValueError):
        return _brackets(text)
    deepest = 0
    stack: list[tuple[ast.AST, int]] = [(tree, 1)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        if isinstance(node, ast.BoolOp):  # a chain here, a nest in LibCST
            depth += len(node.values)
        stack += [(child, depth + 1) for child in ast.iter_child_nodes(node)]
    return deepest


def _brackets(text: str) -> int:
    depth = deepest = 0
    for found in _BRACKET.finditer(text):
        depth += 1 if found.group() in "([{" else -1
        deepest = max(deepest, depth)
    return deepest
