"""What a definition looks like: its parameters and its statements as plain lines. Enough to tell how alike two are."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from codemods.nesting import MAX_DEPTH, nesting, syntax

_WORD = re.compile(r"\w+|[^\w\s]")
_IDENTIFIER = re.compile(r"[^\W\d]\w+")
_TARGET = re.compile(r"([\w.]+)\s*(?::[^=]+)?=(?!=)")
_LONG_NAME = 8  # characters of a name that is not just any variable's
_MOST_LINES = 600  # of a definition, compared one by one
_Definition = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Line:
    """One statement: its text on one line (of a compound one the header), and where it begins in the file, from 1."""

    text: str
    number: int


@dataclass(frozen=True)
class Shape:
    """A definition's ``parameters`` (of a class: its bases) and ``lines``; nested definitions only by their headers."""

    parameters: tuple[str, ...]
    lines: tuple[Line, ...]

    @property
    def words(self) -> Counter[str]:
        return Counter(word for line in self.lines for word in _IDENTIFIER.findall(line.text))


def shapes(text: bytes) -> Mapping[tuple[str, int], Shape]:
    """The shapes of a module's definitions by qualified name and line; none where this Python cannot read the module."""
    try:
        code = text.decode("utf-8")
        if nesting(code) > MAX_DEPTH:
            return {}
        tree = syntax(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return {(name, node.lineno): _shape(node) for name, node in _named(tree, "")}


def _named(node: ast.AST, outer: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Definition):
            name = f"{outer}.{child.name}" if outer else child.name
            yield name, child
            yield from _named(child, name)
        elif isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            yield from _named(child, outer)


def _shape(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Shape:
    if isinstance(node, ast.ClassDef):
        return Shape(tuple(ast.unparse(base) for base in node.bases), tuple(_lines(node.body)))
    arguments = node.args
    parts = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    return Shape(tuple(part.arg for part in parts if part is not None), tuple(_lines(node.body)))


def _lines(body: Sequence[ast.stmt]) -> Iterator[Line]:
    for node in body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring, or ...
        yield Line(header(node), node.lineno)
        if isinstance(node, _Definition):
            continue
        for part in ("body", "handlers", "orelse", "finalbody", "cases"):
            for child in getattr(node, part, ()):
                yield from _lines([child] if isinstance(child, ast.stmt) else child.body)


def header(node: ast.stmt) -> str:
    """The statement on one line; of a compound one what stands before its body."""
    if isinstance(node, _Definition):
        kind = "class" if isinstance(node, ast.ClassDef) else "def"
        return f"{kind} {node.name}"
    inner = [getattr(node, part, None) for part in ("body", "cases")]
    if not any(inner):
        return " ".join(ast.unparse(node).split())
    return ast.unparse(node).split("\n", 1)[0].strip()


def alike(left: str, right: str) -> float:
    """How alike two pieces of code are, 0 … 1: half by tokens in their order, half by the names and words in them."""
    in_order = SequenceMatcher(None, _WORD.findall(left), _WORD.findall(right), autojunk=False).ratio()
    one, other = set(_IDENTIFIER.findall(left)), set(_IDENTIFIER.findall(right))
    return (in_order + (len(one & other) / len(one | other) if one | other else in_order)) / 2


def resemblance(old: str, new: str) -> float:
    """How much of ``old`` is in ``new``, 0 … 1: a statement that got more parts is still the same one."""
    (head, *body), (new_head, *new_body) = _parts(old), _parts(new)
    words, new_words = _WORD.findall(head), _WORD.findall(new_head)
    blocks = SequenceMatcher(None, words, new_words, autojunk=False).get_matching_blocks()
    kept = sum(block.size for block in blocks) / len(words) if words else 1.0
    likeness = (2 * alike(head, new_head) + kept) / 3
    target, new_target = _TARGET.match(head), _TARGET.match(new_head)
    if target and new_target and target.group(1) == new_target.group(1) and len(target.group(1)) >= _LONG_NAME:
        likeness = max(likeness, 0.65)  # what is computed is the same; how, has changed
    if not body:
        return likeness
    common = sum((Counter(body) & Counter(new_body)).values()) / len(body)
    return 0.4 * likeness + 0.6 * common


def _parts(code: str) -> list[str]:
    """A compound statement's header and the lines of its body; of a small statement all of it in one."""
    lines = [line.strip() for line in code.split("\n")]
    lines = [line for line in lines if line and not line.startswith("#")]
    if len(lines) > 1 and lines[0].endswith(":"):
        return lines
    return [" ".join(lines)]


def body_likeness(left: Shape, right: Shape) -> float:
    """0 … 1: half by statements in their order, half by words."""
    one, two = ([line.text for line in shape.lines[:_MOST_LINES]] for shape in (left, right))
    in_order = SequenceMatcher(None, one, two, autojunk=False).ratio() if one or two else 1.0
    words, others = left.words, right.words
    total = sum(words.values()) + sum(others.values())
    common = 2 * sum((words & others).values()) / total if total else 1.0
    return (in_order + common) / 2


def signature_likeness(left: Shape, right: Shape) -> float:
    if not left.parameters and not right.parameters:
        return 1.0
    return SequenceMatcher(None, left.parameters, right.parameters, autojunk=False).ratio()


def name_likeness(left: str, right: str) -> float:
    """Of qualified names: the last part counts most, then what it stands in."""
    outer_left, _dot, last_left = left.rpartition(".")
    outer_right, _dot, last_right = right.rpartition(".")
    last = SequenceMatcher(None, last_left, last_right, autojunk=False).ratio()
    outer = SequenceMatcher(None, outer_left, outer_right, autojunk=False).ratio() if outer_left or outer_right else 1.0
    return 0.6 * last + 0.4 * outer


def path_likeness(left: str, right: str) -> float:
    if left == right:
        return 1.0
    one, two = left.split("/"), right.split("/")
    folders = SequenceMatcher(None, one[:-1], two[:-1], autojunk=False).ratio()
    return 0.5 * SequenceMatcher(None, one[-1], two[-1], autojunk=False).ratio() + 0.4 * folders
