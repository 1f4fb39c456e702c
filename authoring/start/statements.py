"""The statements of a file's functions, each with what stands around it: loops, contexts, decorators, parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_PARTS = ("body", "orelse", "finalbody", "handlers", "cases")


@dataclass(frozen=True)
class Statement:
    """A statement with what stands around it, as text."""

    node: ast.stmt
    file: str
    symbol: str
    parameters: tuple[str, ...]
    around: tuple[str, ...]
    module: str


def statements(tree: ast.Module, file: str) -> Iterator[Statement]:
    """Every statement of the file's functions; classes and functions themselves are none."""
    names = {last_name(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names |= {
        node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value in ("meta_info", "rid")
    }
    module = " ".join(sorted(name for name in names if name))
    for symbol, function, outer in _functions(tree, "", ()):
        around = [*outer, *(["async"] if isinstance(function, ast.AsyncFunctionDef) else [])]
        arguments = function.args
        parts = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        parameters = tuple(part.arg for part in parts)
        contexts = _contexts(function)
        for node, holders in _inside(function.body, (), contexts):
            yield Statement(node, file, symbol, parameters, (*around, *holders), module)


def _functions(
    node: ast.AST, outer: str, decorators: tuple[str, ...]
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef, tuple[str, ...]]]:
    """Every function with its qualified name and the decorators that hold for it, those of the functions around it included."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (*_Function, ast.ClassDef)):
            name = f"{outer}.{child.name}" if outer else child.name
            own = decorators
            if isinstance(child, _Function):
                own = (*decorators, *(ast.unparse(decorator) for decorator in child.decorator_list))
                yield name, child, own
            yield from _functions(child, name, own)
        elif isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            yield from _functions(child, outer, decorators)


def _contexts(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
    """Names that hold a context manager which is entered elsewhere: ``ctx = torch.no_grad() if …``."""
    found = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            text = ast.unparse(node.value)
            if "no_grad" in text or "inference_mode" in text:
                found[node.targets[0].id] = text
    return found


def _inside(
    body: Sequence[ast.AST], holders: tuple[str, ...], contexts: dict[str, str]
) -> Iterator[tuple[ast.stmt, tuple[str, ...]]]:
    for node in body:
        if isinstance(node, (*_Function, ast.ClassDef)):
            continue
        if isinstance(node, ast.stmt):
            yield node, holders
        inner = (*holders, *_holder(node, contexts))
        for part in _PARTS:
            yield from _inside(getattr(node, part, ()), inner, contexts)


def _holder(node: ast.AST, contexts: dict[str, str]) -> list[str]:
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return [f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}"]
    if isinstance(node, (ast.With, ast.AsyncWith)):
        texts = [ast.unparse(item.context_expr) for item in node.items]
        return [f"with {contexts.get(text, text)}" for text in texts]
    return []


def last_name(node: ast.AST) -> str:
    """The last name of a dotted one, or a text; empty for other expressions."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
