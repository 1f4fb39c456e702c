"""Lines of a tree's files, as they stand: what a pattern finds, and the whole statement that begins on a line."""

from __future__ import annotations

import ast
import re
import tokenize
from dataclasses import dataclass, field
from functools import lru_cache

from codemods.errors import ProbePatchError
from codemods.nesting import syntax
from codemods.target import Bases

_LONGEST = 240  # characters of a statement that is shown


@dataclass(frozen=True)
class Line:
    """A place in a file, and what stands there. ``value`` is what the pattern's group caught, empty without a group."""

    file: str
    line: int
    code: str
    value: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass
class Reading:
    """``bases`` gives a file's bytes without our edits. A file that cannot be read is as one that is not there, and is named in
    ``unread``."""

    bases: Bases
    unread: dict[str, str] = field(default_factory=dict)

    def text(self, file: str) -> str | None:
        try:
            data = self.bases.read(file)
        except ProbePatchError as error:
            self.unread[file] = error.what
            return None
        return None if data is None else data.decode("utf-8-sig", "replace")

    def find(self, files: tuple[str, ...], pattern: str) -> Line | None:
        """The first match in the first file that has one; its line is that of the match's first character that is no blank."""
        return next(iter(self.find_all(files, pattern)), None)

    def find_all(self, files: tuple[str, ...], pattern: str) -> list[Line]:
        found = []
        for file in files:
            text = self.text(file)
            for match in re.finditer(pattern, text, re.MULTILINE) if text is not None else ():
                start = match.start() + len(match.group()) - len(match.group().lstrip())
                number = text.count("\n", 0, start) + 1 if text is not None else 0
                value = match.group(1) if match.re.groups else ""
                found.append(Line(file, number, self.statement(file, number), value or ""))
        return found

    def statement(self, file: str, line: int) -> str:
        """The statement that begins on the line, of a compound one its header, in one line."""
        text = self.text(file)
        if text is None:
            return ""
        lines = text.splitlines()
        if not 1 <= line <= len(lines):
            return ""
        last = _logical_end(lines, line) if file.endswith(".py") else line
        code = " ".join(part.strip() for part in lines[line - 1 : last])
        return code if len(code) <= _LONGEST else code[: _LONGEST - 1] + "…"

    def around(self, file: str, line: int) -> tuple[ast.stmt, ...]:
        """The statements that hold the one on the line, outermost first, itself included."""
        text = self.text(file)
        tree = _tree(text) if text is not None else None
        return tuple(_holders(tree, line)) if tree is not None else ()


@lru_cache(maxsize=16)
def _tree(text: str) -> ast.Module | None:
    """None for what this interpreter cannot parse."""
    try:
        return syntax(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _logical_end(lines: list[str], line: int) -> int:
    """The last line of the logical line that begins here: brackets and continuations are followed."""
    following = (f"{text}\n" for text in lines[line - 1 :])
    try:
        for token in tokenize.generate_tokens(lambda: next(following, "")):
            if token.type == tokenize.NEWLINE:
                return line + token.start[0] - 1
    except (tokenize.TokenError, SyntaxError, ValueError, RecursionError):
        pass
    return line


def _holders(node: ast.AST, line: int) -> list[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt) and child.lineno <= line <= (child.end_lineno or child.lineno):
            return [child, *_holders(child, line)]
        if isinstance(child, (ast.ExceptHandler, ast.match_case)):
            inner = _holders(child, line)
            if inner:
                return inner
    return []
