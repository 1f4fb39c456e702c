"""A field that a bridge sets under the wrong name: the places where it is set get the right one, and no other byte changes.

Set is: a keyword of a call, an attribute that is assigned, a field of a class, a key or an entry of a table as a text. What is
only read of something else (the Hugging Face config, say) keeps its name and is told.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from dataclasses import dataclass
from pathlib import Path

from codemods.errors import FindingError
from locales import _

_LARGEST = 4 << 20  # bytes
_READERS = ("getattr", "hasattr")
_WRITERS = ("setattr", "delattr")


class RenameError(FindingError):
    """The name cannot be told from others of its kind in this file; nothing was written."""


@dataclass(frozen=True)
class Place:
    """Bytes ``start`` to ``end`` hold the old name; ``line`` from 1."""

    start: int
    end: int
    line: int


@dataclass(frozen=True)
class Found:
    """``places`` to be renamed; ``kept``: lines where the name is only read of something else."""

    places: tuple[Place, ...]
    kept: tuple[int, ...]


def find_places(path: Path, data: bytes, old: str, new: str) -> Found:
    """Raises RenameError."""
    if len(data) > _LARGEST:
        raise RenameError(
            _("{path} is larger than {size} bytes").format(path=path.name, size=_LARGEST), where=str(path)
        )
    tree = _parsed(path, data)
    reader = _Reader(path, data, old)
    try:
        reader.visit(tree)
    except RecursionError as error:
        raise RenameError(_("{path} is nested too deeply").format(path=path.name), where=str(path)) from error
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.arg == old:
            raise RenameError(
                _("{name} is the parameter of a function, too").format(name=old),
                where=f"{path}:{node.lineno}",
                todo=_("change it with a recipe: `recipe` of the instruction names its file"),
            )
        if isinstance(node, ast.Call) and {old, new} <= {keyword.arg for keyword in node.keywords}:
            raise RenameError(
                _("one call sets both {old} and {new}").format(old=old, new=new), where=f"{path}:{node.lineno}"
            )
    reads = [place for place, base in reader.reads if base not in reader.set_on]
    places = {*reader.sets, *(place for place, base in reader.reads if base in reader.set_on)}
    if not places:
        raise RenameError(
            _("{path} sets nothing of the name {name}").format(path=path.name, name=old),
            where=str(path),
            todo=_("`--file POINT=PATH` names the file of the bridge that does"),
        )
    return Found(tuple(sorted(places, key=lambda one: one.start)), tuple(sorted({one.line for one in reads})))


def prove(path: Path, before: bytes, after: bytes, old: str, new: str) -> None:
    """The two files are one program but for the name. Raises RenameError."""
    try:
        first, second = (ast.dump(_parsed(path, data)).replace(f"'{old}'", f"'{new}'") for data in (before, after))
    except RecursionError as error:
        raise RenameError(_("{path} is nested too deeply").format(path=path.name), where=str(path)) from error
    if first != second:
        raise RenameError(_("more than the name would change; nothing was written"), where=str(path))


def _parsed(path: Path, data: bytes) -> ast.Module:
    try:
        encoding, _lines = tokenize.detect_encoding(io.BytesIO(data).readline)
        if encoding not in ("utf-8", "utf-8-sig"):
            raise RenameError(_("{path} is not in UTF-8").format(path=path.name), where=str(path))
        return ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise RenameError(
            _("{path} cannot be read as Python").format(path=path.name),
            where=f"{path}:{getattr(error, 'lineno', None) or 1}",
            why=str(getattr(error, "msg", None) or error)[:200],
        ) from error


class _Reader(ast.NodeVisitor):
    """``sets``: places that set the name; ``set_on``: on what; ``reads``: places that read it, and of what."""

    def __init__(self, path: Path, data: bytes, old: str) -> None:
        self.path, self.data, self.old = path, data, old
        self.lines = [0, *(found.end() for found in re.finditer(rb"\r\n|\r|\n", data))]
        self.bom = 3 if data.startswith(b"\xef\xbb\xbf") else 0
        self.sets: set[Place] = set()
        self.set_on: set[str] = set()
        self.reads: list[tuple[Place, str]] = []

    def _set(self, place: Place, owner: ast.expr) -> None:
        self.sets.add(place)
        self.set_on.add(ast.unparse(owner))

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg == self.old:
            self.sets.add(self._at(node.lineno, node.col_offset))
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr == self.old:
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            place = self._at(node.end_lineno, node.end_col_offset - len(self.old.encode()))
            if isinstance(node.ctx, ast.Load):
                self.reads.append((place, ast.unparse(node.value)))
            else:
                self._set(place, node.value)
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Its fields: names that are assigned right in it."""
        for one in node.body:
            targets = (
                one.targets if isinstance(one, ast.Assign) else [one.target] if isinstance(one, ast.AnnAssign) else []
            )
            for target in targets:
                if isinstance(target, ast.Name) and target.id == self.old:
                    self.sets.add(self._at(target.lineno, target.col_offset))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """``getattr(x, "name")`` and ``x.get("name")`` read; ``setattr(x, "name", …)`` sets."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        words: list[ast.expr] = []
        if name in (*_READERS, *_WRITERS):
            words, owner = node.args[1:2], node.args[0] if node.args else node.func
        elif method in ("get", "pop") and isinstance(node.func, ast.Attribute):
            words, owner = node.args[:1], node.func.value
        found = [word for word in words if self._is_name(word)]
        for word in found:
            if name in _WRITERS:
                self._set(self._text(word), owner)
            else:
                self.reads.append((self._text(word), ast.unparse(owner)))
        for child in ast.iter_child_nodes(node):
            if child not in found:
                self.visit(child)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not self._is_name(node.slice):
            self.generic_visit(node)
            return
        if isinstance(node.ctx, ast.Load):
            self.reads.append((self._text(node.slice), ast.unparse(node.value)))
        else:
            self._set(self._text(node.slice), node.value)
        self.visit(node.value)

    def visit_Compare(self, node: ast.Compare) -> None:
        """``"name" in config`` reads."""
        if not (self._is_name(node.left) and isinstance(node.ops[0], (ast.In, ast.NotIn))):
            self.generic_visit(node)
            return
        self.reads.append((self._text(node.left), ast.unparse(node.comparators[0])))
        for one in node.comparators:
            self.visit(one)

    def visit_Constant(self, node: ast.Constant) -> None:
        if self._is_name(node):
            self.sets.add(self._text(node))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Its places are not told rightly before Python 3.12; what it builds is for people to read."""

    def visit_Expr(self, node: ast.Expr) -> None:
        """But for docstrings."""
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def _is_name(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Constant) and node.value == self.old

    def _text(self, node: ast.expr) -> Place:
        start = self._offset(node.lineno, node.col_offset)
        found = re.compile(rb"[rRuU]?('''|\"\"\"|'|\")" + re.escape(self.old.encode()) + rb"\1").match(self.data, start)
        if found is None:
            raise self._unusual(node.lineno)
        return Place(found.end(1), found.end(1) + len(self.old.encode()), node.lineno)

    def _at(self, line: int, column: int) -> Place:
        start = self._offset(line, column)
        end = start + len(self.old.encode())
        if self.data[start:end] != self.old.encode():
            raise self._unusual(line)
        return Place(start, end, line)

    def _offset(self, line: int, column: int) -> int:
        return self.lines[line - 1] + column + (self.bom if line == 1 else 0)

    def _unusual(self, line: int) -> RenameError:
        return RenameError(
            _("{name} is not written there in its usual form").format(name=self.old), where=f"{self.path}:{line}"
        )
