"""Searches a tree for the scene's three things by their shape: where input is trimmed, where the forward runs, where the
request id passes. What it gives are ranked candidates, proved to be plannable; which one is meant is for a person to say."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from authoring.start.signs import ASIDE, OURS, REMOTE, REQUEST_ID, SHAPES, TRAINS, WORTH_READING, Shape
from authoring.start.statements import Statement, last_name, statements
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
_BY_NAME = re.compile(
    r"(^|_)(run|call|execute|invoke|rpc)(_|$)"
)  # functions that run the method whose name they are given
_METHOD = ("method", "method_name")
_TWINS = ((None, 1), *((nth, count) for count in range(2, 5) for nth in range(1, count + 1)))  # `nth` of `expect`


@dataclass(frozen=True)
class Candidate:
    """A statement that may be the place. ``edit`` is ready and matches exactly once, None where there is nothing to edit (a
    condition to know of); ``says`` are the signs that spoke for it. Of equal scores the one with more ``lean`` comes first: how
    many of its names speak of the policy, and of training. ``line`` … ``last`` are its lines."""

    role: str
    score: int
    lean: tuple[int, int]
    file: str
    line: int
    last: int
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
    for statement in statements(tree, file):
        for shape in SHAPES[side]:
            candidate = _judged(shape, statement)
            if candidate is not None:
                yield candidate


# --- judging -----------------------------------------------------------------------------------------------------------------


def _judged(shape: Shape, statement: Statement) -> Candidate | None:
    best: tuple[int, tuple[int, int], tuple[str, ...]] | None = None
    known = _known(statement)
    for wanted in _wanted(shape, statement.node):
        facts = known | wanted
        facts["who"] = who = tuple(text for about in _WHO for text in facts.get(about, ()))
        clues = [clue for clue in shape.clues if any(clue.words.search(text) for text in facts.get(clue.about, ()))]
        score = sum(clue.worth for clue in clues)
        if score >= shape.least and (best is None or score > best[0]):
            lean = (sum(bool(OURS.search(text)) for text in who), sum(bool(TRAINS.search(text)) for text in who))
            best = score, lean, tuple(dict.fromkeys(clue.says for clue in clues))
    if best is None:
        return None
    score, lean, says = best
    node = statement.node
    lines = node.lineno, node.end_lineno or node.lineno
    return Candidate(shape.role, score, lean, statement.file, *lines, statement.symbol, _header(node), says, edit=None)


Facts = dict[str, tuple[str, ...]]
_WHO = ("path", "name", "target", "owner", "arguments")


def _known(statement: Statement) -> Facts:
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
            yield {"test": (test,), "body": tuple(last_name(one.func) for one in inner if isinstance(one, ast.Call))}
    elif shape.about == "target" and any(shape.wanted.search(target) for target in _targets(node)):
        yield {}
    elif shape.about == "callee":
        for call in _calls(node):
            names = (last_name(call.func), *_by_name(call))
            if any(shape.wanted.search(name) for name in names):
                yield {"callee": names, "owner": (ast.unparse(call.func),), "arguments": tuple(_arguments(call))}


def _by_name(call: ast.Call) -> Iterator[str]:
    """The method that a call names for others to run, with ``remote_`` in front: ``group.run_method(method_name="forward")``."""
    named = [word.value for word in call.keywords if word.arg in _METHOD] or call.args[:1]
    if _BY_NAME.search(last_name(call.func)):
        yield from (
            f"{REMOTE}_{one.value}" for one in named if isinstance(one, ast.Constant) and isinstance(one.value, str)
        )


def _arguments(call: ast.Call) -> Iterator[str]:
    """The names in a call: of its keywords, and of what is handed on."""
    for word in call.keywords:
        yield word.arg or ""
    for value in (*call.args, *(word.value for word in call.keywords)):
        yield last_name(value)


def _calls(node: ast.stmt) -> Iterator[ast.Call]:
    """The calls of a small statement; those of a compound one belong to the statements in it, or are its own business."""
    if hasattr(node, "body"):
        return
    yield from (one for one in ast.walk(node) if isinstance(one, ast.Call))


def _targets(node: ast.stmt) -> tuple[str, ...]:
    if isinstance(node, ast.Assign):
        return tuple(ast.unparse(target) for target in node.targets)
    return (ast.unparse(node.target),) if isinstance(node, ast.AnnAssign) else ()


def _header(node: ast.stmt) -> str:
    return ast.unparse(node).split("\n", 1)[0]


# --- from a statement to an edit that can be planned ---------------------------------------------------------------------------


def _role(shape: Shape, found: list[Candidate], bases: Bases) -> Role:
    ranked = sorted(found, key=lambda one: (-one.score, [-n for n in one.lean], one.file, one.line))
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
        for pattern, fields in _patterns(verb, one.code):
            for nth, expect in _TWINS:
                place = Place(
                    one.file,
                    one.symbol,
                    {"nth": select[-1]} if len(named) > 1 and select else {},
                    nth,
                    expect,
                    {verb: pattern, **fields},
                    "",
                )
                edit = Edit(one.role, "", VERBS[verb], (place,), None, True, "")
                lines = _lines(target, edit, place)
                if len(lines) == 1 and one.line <= lines[0] <= one.last:
                    return replace(one, edit=edit)
    return None


def _patterns(verb: str, code: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The statement as it stands when it is short, else with its arguments elided; then as it stands whatever its length.
    Of an id that is made within the call: the expression that makes it."""
    if verb == "replace_expression":
        yield from ((made, {"with": f"str({made})"}) for made in _made(code))
        return
    if len(code) > _SHORT:
        short = _elided(code)
        if short is not None:
            yield short, _PLACEHOLDERS[verb]
    yield code, _PLACEHOLDERS[verb]


def _made(code: str) -> Iterator[str]:
    """The expressions by which a call of the statement makes a request's id on the spot: ``request_id=uuid4().hex``."""
    for call in _calls(_statement(code)):
        for word in call.keywords:
            if REQUEST_ID.search(word.arg or "") and any(isinstance(one, ast.Call) for one in ast.walk(word.value)):
                yield ast.unparse(word.value)


def _statement(code: str) -> ast.stmt:
    (node,) = syntax(f"async def f():\n    {code}").body[0].body  # type: ignore[attr-defined]
    assert isinstance(node, ast.stmt)
    return node


def _elided(code: str) -> str | None:
    try:
        node = _statement(code)
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
