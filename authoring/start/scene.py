"""Searches a tree for the scene's three things by their shape: where input is trimmed, where the forward runs, where the
request id passes. What it gives are ranked candidates, proved to be plannable; which one is meant is for a person to say."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from authoring.start.signs import ASIDE, SHAPES, WORTH_READING, Shape
from authoring.trees import SourceTree, TreeError
from codemods.errors import ProbePatchError
from codemods.locate import find_sites
from codemods.nesting import syntax
from codemods.recipe import Edit, Place
from codemods.target import Bases, Target
from codemods.verbs import VERBS

SHOWN = 5  # candidates of one role
_OF_ONE_FILE = 2
_TRIED = 40  # candidates whose pattern is tried, best first
_SHORT = 88  # characters of a pattern that is taken as it is written
_PLACEHOLDERS = {
    "before": {"insert": "pass"},
    "after": {"insert": "pass"},
    "around": {"enter": "pass", "finally": "pass"},
}
_TWINS = ((None, 1), *((nth, count) for count in range(2, 5) for nth in range(1, count + 1)))  # `nth` of `expect`
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_PARTS = ("body", "orelse", "finalbody", "handlers", "cases")


@dataclass(frozen=True)
class Candidate:
    """A statement that may be the place. ``edit`` is ready and matches exactly once, None where there is nothing to edit (a
    condition to know of); ``says`` are the signs that spoke for it."""

    role: str
    score: int
    file: str
    line: int
    symbol: str
    code: str
    says: tuple[str, ...]
    edit: Edit | None


@dataclass(frozen=True)
class Role:
    """A shape with its candidates, best first; ``more`` were found and are not shown."""

    shape: Shape
    candidates: tuple[Candidate, ...]
    more: int


@dataclass(frozen=True)
class Scene:
    """``read`` of ``files`` files were worth parsing; ``unread`` could not be."""

    roles: tuple[Role, ...]
    files: int
    read: int
    unread: tuple[str, ...]


@dataclass(frozen=True)
class _Statement:
    """A statement with what stands around it, as text."""

    node: ast.stmt
    file: str
    symbol: str
    parameters: tuple[str, ...]
    around: tuple[str, ...]
    module: str


def search(tree: SourceTree, package: str, side: str) -> Scene:
    """Look through the package's files."""
    files = [file for file in tree.files() if file.startswith(f"{package}/") and not ASIDE.search(file)]
    bases = Bases(tree.read)
    found: dict[str, list[Candidate]] = {shape.role: [] for shape in SHAPES[side]}
    read, unread = 0, []
    for file in files:
        try:
            data = tree.read(file) or b""
        except TreeError:
            unread.append(file)
            continue
        if not WORTH_READING[side].search(data):
            continue
        read += 1
        try:
            here = list(_candidates(syntax(data.decode("utf-8-sig")), file, side))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            unread.append(file)
            continue
        for candidate in here:
            found[candidate.role].append(candidate)
    roles = tuple(_role(shape, found[shape.role], bases) for shape in SHAPES[side])
    return Scene(roles, len(files), read, tuple(unread))


def _candidates(tree: ast.Module, file: str, side: str) -> Iterator[Candidate]:
    for statement in _statements(tree, file):
        for shape in SHAPES[side]:
            candidate = _judged(shape, statement)
            if candidate is not None:
                yield candidate


# --- statements with their surroundings ----------------------------------------------------------------------------------


def _statements(tree: ast.Module, file: str) -> Iterator[_Statement]:
    names = {_last(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
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
            yield _Statement(node, file, symbol, parameters, (*around, *holders), module)


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


# --- judging -----------------------------------------------------------------------------------------------------------------


def _judged(shape: Shape, statement: _Statement) -> Candidate | None:
    best: tuple[int, tuple[str, ...]] | None = None
    for wanted in _wanted(shape, statement.node):
        facts = _known(statement) | wanted
        clues = [clue for clue in shape.clues if any(clue.words.search(text) for text in facts.get(clue.about, ()))]
        score = sum(clue.worth for clue in clues)
        if score >= shape.least and (best is None or score > best[0]):
            best = score, tuple(dict.fromkeys(clue.says for clue in clues))
    if best is None:
        return None
    node = statement.node
    return Candidate(
        shape.role, best[0], statement.file, node.lineno, statement.symbol, _header(node), best[1], edit=None
    )


Facts = dict[str, tuple[str, ...]]


def _known(statement: _Statement) -> Facts:
    return {
        "name": (statement.symbol, statement.symbol.rpartition(".")[2]),
        "parameters": statement.parameters,
        "around": statement.around,
        "module": (statement.module,),
        "path": (statement.file,),
        "target": _targets(statement.node),
    }


def _wanted(shape: Shape, node: ast.stmt) -> Iterator[Facts]:
    """What makes the statement a candidate: once for each call that does, once for its condition or its target."""
    if shape.about == "test" and isinstance(node, ast.If):
        test = ast.unparse(node.test)
        if shape.wanted.search(test):
            inner = (one for child in node.body for one in ast.walk(child))
            yield {"test": (test,), "body": tuple(_last(one.func) for one in inner if isinstance(one, ast.Call))}
    elif shape.about == "target" and any(shape.wanted.search(target) for target in _targets(node)):
        yield {}
    elif shape.about == "callee":
        for call in _calls(node):
            if shape.wanted.search(_last(call.func)):
                yield {"callee": (_last(call.func),), "arguments": tuple(_arguments(call))}


def _arguments(call: ast.Call) -> Iterator[str]:
    """The names in a call: of its keywords, and of what is handed on."""
    for word in call.keywords:
        yield word.arg or ""
    for value in (*call.args, *(word.value for word in call.keywords)):
        yield _last(value)


def _calls(node: ast.stmt) -> Iterator[ast.Call]:
    """The calls of a small statement; those of a compound one belong to the statements in it, or are its own business."""
    if hasattr(node, "body"):
        return
    yield from (one for one in ast.walk(node) if isinstance(one, ast.Call))


def _targets(node: ast.stmt) -> tuple[str, ...]:
    if isinstance(node, ast.Assign):
        return tuple(ast.unparse(target) for target in node.targets)
    return (ast.unparse(node.target),) if isinstance(node, ast.AnnAssign) else ()


def _last(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _header(node: ast.stmt) -> str:
    return ast.unparse(node).split("\n", 1)[0]


# --- from a statement to an edit that can be planned ---------------------------------------------------------------------------


def _role(shape: Shape, found: list[Candidate], bases: Bases) -> Role:
    ranked = sorted(found, key=lambda one: (-one.score, one.file, one.line))
    best = {(one.file, one.symbol): one for one in reversed(ranked)}  # the best of each function
    ranked = [one for one in ranked if best[one.file, one.symbol] is one]
    shown: list[Candidate] = []
    for one in ranked[:_TRIED]:
        if len(shown) == SHOWN:
            break
        if sum(other.file == one.file for other in shown) == _OF_ONE_FILE:
            continue
        ready = _with_edit(shape, one, bases) if shape.verbs else one
        if ready is not None:
            shown.append(ready)
    return Role(shape, tuple(shown), len(ranked) - len(shown))


def _with_edit(shape: Shape, one: Candidate, bases: Bases) -> Candidate | None:
    """The candidate with the first edit that matches its statement and no other."""
    try:
        target = bases.target(one.file)
        named = target.outline.named(one.symbol)
    except ProbePatchError:
        return None
    select = [n for n, definition in enumerate(named, 1) if definition.line <= one.line]
    for verb in shape.verbs:
        for pattern in _patterns(one.code):
            for nth, expect in _TWINS:
                place = Place(
                    one.file,
                    one.symbol,
                    {"nth": select[-1]} if len(named) > 1 and select else {},
                    nth,
                    expect,
                    {verb: pattern, **_PLACEHOLDERS[verb]},
                    "",
                )
                edit = Edit(one.role, "", VERBS[verb], (place,), None, True, "")
                if _lines(target, edit, place) == [one.line]:
                    return replace(one, edit=edit)
    return None


def _patterns(code: str) -> Iterator[str]:
    """The statement as it stands when it is short, else with its arguments elided; then as it stands whatever its length."""
    if len(code) > _SHORT:
        short = _elided(code)
        if short is not None:
            yield short
    yield code


def _elided(code: str) -> str | None:
    try:
        (node,) = syntax(f"async def f():\n    {code}").body[0].body  # type: ignore[attr-defined]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    value = getattr(node, "value", None)
    call = value.value if isinstance(value, ast.Await) else value
    if not isinstance(call, ast.Call):
        return None
    call.args, call.keywords = [ast.Constant(...)], []
    return ast.unparse(node)


def _lines(target: Target, edit: Edit, place: Place) -> list[int]:
    """The lines at which the edit would be made; none when it cannot be planned."""
    try:
        sites = find_sites(target, edit, place, "")
        for site in sites:
            edit.verb.change(site)
        return [target.source.line_of(site.parsed.span(site.first.node)[0]) for site in sites]
    except ProbePatchError:
        return []
