"""The outline of a module: its definitions, and where its own statements stand. Standard library only.

One ``ast`` pass over the file finds the symbol; only the bytes of that symbol are then parsed with LibCST. A file that this
interpreter's ``ast`` cannot read (newer syntax) gets its outline from LibCST in a child process instead.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from codemods.errors import FindingError
from codemods.nesting import syntax
from locales import _

_CHILD = Path(__file__).with_name("newer_syntax.py")
_CHILD_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or class. Offsets are bytes of the UTF-8 text; ``start`` is the head of the first decorator's line, ``end`` the
    offset after the line on which the last statement ends. ``branch`` is the compound statement's part it stands in."""

    qualname: str
    kind: str  # function | async function | class
    start: int
    end: int
    line: int
    decorators: tuple[str, ...] = ()
    branch: str = ""


@dataclass(frozen=True, slots=True)
class Import:
    """A top-level import in whole lines: ``import module`` when it is ``plain``, else ``from module import …`` (``module`` with the
    dots of a relative one). Several that share a line are one, which is what the first is."""

    start: int
    end: int
    module: str
    plain: bool


@dataclass(frozen=True, slots=True)
class Outline:
    """``prologue`` is the offset after the docstring and the ``__future__`` imports; ``docstring`` the one after the docstring (0
    without one); ``leading`` are the imports behind the prologue that sorters may move, up to the first statement which is neither
    import nor ``if`` nor ``try``, or a comment that keeps sorters away; ``stretches`` are runs of top-level statements between
    definitions, in whole lines; ``imports`` the texts of the top-level imports, one alias each."""

    definitions: tuple[Definition, ...]
    docstring: int
    prologue: int
    stretches: tuple[tuple[int, int], ...]
    imports: tuple[str, ...] = ()
    leading: tuple[Import, ...] = ()

    @property
    def first_import(self) -> int:
        """The offset of the first of the leading imports; -1 when there is none."""
        return self.leading[0].start if self.leading else -1

    def named(self, qualname: str) -> tuple[Definition, ...]:
        return tuple(definition for definition in self.definitions if definition.qualname == qualname)

    def around(self, offset: int) -> Definition | None:
        """The innermost definition whose lines hold ``offset``."""
        holding = [d for d in self.definitions if d.start <= offset < d.end]
        return max(holding, key=lambda d: d.start, default=None)


class SyntaxUnknownError(FindingError):
    """Neither this Python nor the installed LibCST can read the file."""


_PARTS = ("body", "orelse", "finalbody", "handlers", "cases")
_Compound = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.With,
    ast.AsyncWith,
    ast.Try,
    ast.ExceptHandler,
    ast.Match,
    ast.match_case,
)
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
AMONG_IMPORTS = ("If", "Try", "TryStar")
"""Statements that may stand between a module's leading imports."""
_KEEP_AWAY = re.compile(rb"^[ \t]*#[ \t]*(ruff:[ \t]*)?isort:[ \t]*(off|split)\b", re.MULTILINE)
_SKIPPED = re.compile(rb"#[ \t]*(ruff:[ \t]*)?isort:[ \t]*skip\b")


def _branch(parent: ast.AST, part: str) -> str:
    if part == "orelse":
        return "else"
    if part == "finalbody":
        return "finally"
    name = type(parent).__name__.lower().removeprefix("async")
    return {"excepthandler": "except", "match_case": "case", "trystar": "try"}.get(name, name)


def _parts(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for part in _PARTS:
        for child in getattr(node, part, ()):
            yield part, child


def _lines(text: bytes) -> list[int]:
    return [0, *(match.end() for match in re.finditer(rb"\r\n|\n|\r", text)), len(text) + 1]


def _first_line(node: ast.AST, lines: list[int], text: bytes) -> int:
    """The 1-based line on which a definition starts: that of its first ``@``, which may stand above the decorator's expression."""
    decorators = getattr(node, "decorator_list", [])
    if not decorators:
        return int(getattr(node, "lineno"))  # noqa: B009
    line = min(int(decorator.lineno) for decorator in decorators)
    while line > 1 and not text[lines[line - 1] : lines[line]].lstrip().startswith(b"@"):
        line -= 1
    return line


def _definitions(tree: ast.Module, lines: list[int], text: bytes) -> Iterator[Definition]:
    stack: list[tuple[ast.AST, str, str]] = [(child, "", "") for child in reversed(tree.body)]
    while stack:
        node, outer, branch = stack.pop()
        if isinstance(node, (*_Function, ast.ClassDef)):
            qualname = f"{outer}.{node.name}" if outer else node.name
            kind = "class" if isinstance(node, ast.ClassDef) else "function"
            yield Definition(
                qualname,
                f"async {kind}" if isinstance(node, ast.AsyncFunctionDef) else kind,
                lines[_first_line(node, lines, text) - 1],
                min(lines[node.end_lineno or node.lineno], len(text)),
                node.lineno,
                tuple(ast.unparse(decorator) for decorator in node.decorator_list),
                branch,
            )
            stack += [(child, qualname, "") for child in reversed(node.body)]
        elif isinstance(node, _Compound) or type(node).__name__ == "TryStar":
            stack += [(child, outer, _branch(node, part)) for part, child in reversed(list(_parts(node)))]


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _stretches(tree: ast.Module, lines: list[int], text: bytes) -> Iterator[tuple[int, int]]:
    start: int | None = None
    end = 0
    for node in tree.body:
        if isinstance(node, (*_Function, ast.ClassDef)):
            if start is not None:
                yield start, end
            start = None
            continue
        start = lines[node.lineno - 1] if start is None else start
        end = min(lines[node.end_lineno or node.lineno], len(text))
    if start is not None:
        yield start, end


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from one_by_one(node)


def one_by_one(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """The import's aliases, each as an import statement of its own."""
    for alias in node.names:
        single = (
            ast.Import([alias]) if isinstance(node, ast.Import) else ast.ImportFrom(node.module, [alias], node.level)
        )
        yield ast.unparse(single)


def _prologue(tree: ast.Module, lines: list[int], text: bytes) -> tuple[int, int]:
    """The outline's ``docstring`` and ``prologue``."""
    docstring = prologue = 0
    for place, node in enumerate(tree.body):
        if place == 0 and _is_docstring(node):
            docstring = prologue = min(lines[node.end_lineno or 1], len(text))
        elif isinstance(node, ast.ImportFrom) and node.module == "__future__":
            prologue = min(lines[node.end_lineno or 1], len(text))
        else:
            break
    return docstring, prologue


Row = tuple[int, int, tuple[str, bool] | None]
"""The lines of statements that share them, from offset to offset, with ``module`` and ``plain`` where they are imports alone."""


def leading_imports(rows: Iterable[Row], prologue: int, text: bytes) -> Iterator[Import]:
    """The outline's ``leading``; ``rows`` are the module's, without those of AMONG_IMPORTS."""
    above = prologue
    for start, end, head in rows:
        if start < prologue:
            continue
        if head is None or _KEEP_AWAY.search(text, above, start):
            return
        if not _SKIPPED.search(text, start, end):
            yield Import(start, end, *head)
        above = end


def _rows(tree: ast.Module, lines: list[int], text: bytes) -> Iterator[Row]:
    row: list[ast.stmt] = []
    for node in tree.body:
        above = text[lines[max(node.lineno - 2, 0)] : lines[node.lineno - 1]]
        if row and node.lineno != row[-1].end_lineno and not above.rstrip(b"\r\n").endswith(b"\\"):
            yield _row(row, lines, text)
            row = []
        if type(node).__name__ not in AMONG_IMPORTS:
            row.append(node)
    if row:
        yield _row(row, lines, text)


def _row(row: list[ast.stmt], lines: list[int], text: bytes) -> Row:
    first, head = row[0], None
    if all(isinstance(node, (ast.Import, ast.ImportFrom)) for node in row):
        if isinstance(first, ast.Import):
            head = first.names[0].name, True
        elif isinstance(first, ast.ImportFrom):
            head = "." * first.level + (first.module or ""), False
    return lines[first.lineno - 1], min(lines[row[-1].end_lineno or 1], len(text)), head


def outline(text: bytes, path: str = "<source>") -> Outline:
    """Outline ``text`` (UTF-8, no byte-order mark). Raises SyntaxUnknownError."""
    try:
        tree = syntax(text.decode("utf-8"))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return _outline_by_child(text, path, error)
    lines = _lines(text)
    docstring, prologue = _prologue(tree, lines, text)
    return Outline(
        tuple(_definitions(tree, lines, text)),
        docstring,
        prologue,
        tuple(_stretches(tree, lines, text)),
        tuple(_imports(tree)),
        tuple(leading_imports(_rows(tree, lines, text), prologue, text)),
    )


def _outline_by_child(text: bytes, path: str, error: Exception) -> Outline:
    command = [sys.executable, "-I", str(_CHILD)]
    try:
        child = subprocess.run(command, input=text, capture_output=True, timeout=_CHILD_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        child = subprocess.CompletedProcess(command, -9, b"", b"")
    if child.returncode != 0:
        reason = child.stderr.decode("utf-8", "replace").strip().splitlines()
        line = getattr(error, "lineno", None)
        raise SyntaxUnknownError(
            _("the file cannot be parsed"),
            where=f"{path}:{line}" if line else path,
            why="; ".join(
                (
                    f"Python {sys.version_info.major}.{sys.version_info.minor}: {error}",
                    f"{reason[-1]}" if reason else _("LibCST stopped with status {code}").format(code=child.returncode),
                )
            ),
            todo=_("a newer LibCST may know the syntax; nothing was written"),
        )
    return from_json(json.loads(child.stdout))


def to_json(found: Outline) -> dict[str, object]:
    return asdict(found)


def from_json(data: dict[str, object]) -> Outline:
    definitions = data["definitions"]
    assert isinstance(definitions, list)
    return Outline(
        tuple(Definition(**{**item, "decorators": tuple(item["decorators"])}) for item in definitions),
        int(str(data["docstring"])),
        int(str(data["prologue"])),
        tuple((int(start), int(end)) for start, end in data["stretches"]),  # type: ignore[attr-defined]
        tuple(str(item) for item in data["imports"]),  # type: ignore[attr-defined]
        tuple(Import(**item) for item in data["leading"]),  # type: ignore[attr-defined]
    )
