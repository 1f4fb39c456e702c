"""Which names inserted code reads that nothing binds at its place: a place can be right by its looks and wrong by its names."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Mapping

from codemods.nesting import syntax
from codemods.recipe import Edit, Place, Recipe
from codemods.target import Target

_HOLE = re.compile(r"\$\w+")
_FRAMES = {"item": "with {}: pass", "argument": "print({})"}
_ANCHORS = ("before", "after", "around", "replace", "delete", "replace_expression", "set_argument", "with_item")
_Comprehension = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_Function = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def inserted(place: Place) -> Mapping[str, str]:
    """The texts of a place that enter the file, by key; patterns and payload names left out."""
    return {
        key: text for key, text in place.fields.items() if key not in _ANCHORS and key != "add_file" and text.strip()
    }


def added_names(recipe: Recipe, place: Place) -> frozenset[str]:
    """Names that the recipe's own edits bring into the place: into its module, and into its function."""
    names: set[str] = set()
    for other in (other for edit in recipe.edits for other in edit.places if other.file == place.file):
        if other.symbol in ("", place.symbol):
            names |= {name for tree in _trees(other) for name in _bound(tree)}
    return frozenset(names)


def unbound(edit: Edit, place: Place, target: Target, added: Iterable[str], line: int = 1 << 30) -> tuple[str, ...]:
    """Names that the edit's code reads and that neither the code, the place (above ``line``), its module nor Python binds."""
    trees = _trees(place)
    read = {name for tree in trees for name in _free(tree)}
    if not read or edit.verb.name == "add_import":
        return ()
    module = _parsed(target.source.text.decode("utf-8", "replace"))
    if module is None or any(isinstance(n, ast.ImportFrom) and n.names[0].name == "*" for n in ast.walk(module)):
        return ()
    own = {name for tree in trees for name in _bound(tree)}
    known = own | set(added) | set(dir(builtins)) | set(_bound(module)) | set(_bound_around(module, place.symbol, line))
    return tuple(sorted(read - known - {"__file__", "__name__", "__class__", "self", "cls"}))


def _trees(place: Place) -> list[ast.AST | None]:
    texts = inserted(place).items()
    return [_parsed(_FRAMES.get(key, "{}").format(_HOLE.sub("None", text))) for key, text in texts]


def _parsed(text: str) -> ast.AST | None:
    try:
        return syntax(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _free(tree: ast.AST | None) -> Iterator[str]:
    """Names read anywhere in the code; what inner functions bind themselves is taken out."""
    if tree is None:
        return
    inner = {name for node in ast.walk(tree) if isinstance(node, _Function) for name in _parameters(node)}
    inner |= {name for node in ast.walk(tree) if isinstance(node, _Function) for name in _stored(node)}
    inner |= {name for node in ast.walk(tree) if isinstance(node, ast.comprehension) for name in _stored(node.target)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in inner:
            yield node.id


def _bound(tree: ast.AST | None, above: int = 1 << 30) -> Iterator[str]:
    """Names that the code itself binds down to the line ``above``, not those of its inner functions, classes, comprehensions."""
    stack = list(ast.iter_child_nodes(tree)) if tree is not None else []
    while stack:
        node = stack.pop()
        if getattr(node, "lineno", 0) <= above:
            yield from _binding(node)
        if not isinstance(node, (*_Function, *_Comprehension, ast.ClassDef)):
            stack += ast.iter_child_nodes(node)


def _binding(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).partition(".")[0]
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name


def _stored(node: ast.AST) -> Iterator[str]:
    for child in ast.walk(node):
        yield from _binding(child)


def _parameters(node: ast.AST) -> Iterator[str]:
    arguments = getattr(node, "args", None)
    if isinstance(arguments, ast.arguments):
        parts = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
        yield from (part.arg for part in parts if part is not None)


def _bound_around(module: ast.AST, symbol: str, line: int) -> Iterator[str]:
    """What the symbol and the functions around it bind."""
    scopes = [module]
    for part in symbol.split(".") if symbol else ():
        scopes = [node for scope in scopes for node in _definitions(scope) if getattr(node, "name", "") == part]
        for node in scopes:
            if not isinstance(node, ast.ClassDef):
                yield from _parameters(node)
                yield from _bound(node, line)


def _definitions(scope: ast.AST) -> Iterator[ast.AST]:
    stack = list(ast.iter_child_nodes(scope))
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node
        elif isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            stack += ast.iter_child_nodes(node)
