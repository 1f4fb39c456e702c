"""Which edits an edit that stays in the tree cannot do without: those that bring the names which it uses.

Judged by names alone, and rather once too often: what is left in the tree too much harms nobody, what is missing breaks a run.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from codemods.splice import PlannedEdit

_WORD = re.compile(r"[^\W\d]\w*")
_MARK = re.compile(r"# probepatch: \S+")
_NAMED = re.compile(r"\b(?:def|class|import)[ \t]+([^\W\d]\w*)")
_SET = re.compile(
    r"\b(?:as|for)[ \t]+([^\W\d]\w*)|^[ \t]*([^\W\d]\w*)[ \t]*(?::[^=\n]+)?=(?!=)|\b([^\W\d]\w*)[ \t]*:=",
    re.MULTILINE,
)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Standing:
    """An edit that is recorded for ``path``, whose bytes without edits are ``base``: None where the edit is the whole file."""

    path: str
    edit: PlannedEdit
    base: bytes | None

    @property
    def text(self) -> str:
        text = "\n".join(splice.inserted.decode("utf-8", "replace") for splice in self.edit.splices)
        return _MARK.sub("", text)


@dataclass(frozen=True)
class Need:
    """``edit`` brings ``name``, which ``user`` uses."""

    edit: Standing
    user: Standing
    name: str


def needs(staying: Sequence[Standing], others: Sequence[Standing]) -> Iterator[Need]:
    """Each of ``others`` that one of ``staying`` needs, and what those need in turn; only within a recipe."""
    left, users = list(others), list(staying)
    while users:
        user = users.pop(0)
        words = set(_WORD.findall(user.text))
        for other in tuple(left):
            name = _brings(other, user, words) if other.edit.recipe == user.edit.recipe else None
            if name is not None:
                left.remove(other)
                users.append(other)
                yield Need(other, user, name)


def _brings(other: Standing, user: Standing, words: set[str]) -> str | None:
    """A name that ``other`` brings and ``user`` uses; ``*`` where nobody can tell."""
    if other.base is None:
        path = PurePosixPath(other.path)
        name = path.parent.name if path.stem == "__init__" else path.stem
        return name if name in words else None if name.isidentifier() else "*"
    bound = _bound(other.text)
    if other.path != user.path:
        return min(bound.defined & words, default=None)
    if "*" in bound.imported:
        return "*"
    found = (bound.defined | bound.imported) & words
    if not found and bound.set & words:  # a name that the file had before is not this edit's
        found = (bound.set & words) - set(_WORD.findall(other.base.decode("utf-8", "replace")))
    return min(found, default=None)


@dataclass(frozen=True)
class _Bound:
    """The names that code defines (for other files, too), imports and sets."""

    defined: set[str]
    imported: set[str]
    set: set[str]


def _bound(text: str) -> _Bound:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(textwrap.dedent(text.lstrip("\r\n")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a part of a statement
        return _Bound(
            set(), set(_NAMED.findall(text)), {name for names in _SET.findall(text) for name in names if name}
        )
    bound = _Bound({node.name for node in tree.body if isinstance(node, _DEFINITIONS)}, set(), set())
    for node in ast.walk(tree):
        if isinstance(node, ast.alias):
            bound.imported.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.set.add(node.id)
    return bound
