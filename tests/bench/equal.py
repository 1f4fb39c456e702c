"""Do the tools really make the same edits? Compared as syntax, before anything is timed."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from codemods.outline import one_by_one


class NotTheSame(Exception):
    """A tool's result is other code than ours: comparing their times would say nothing."""


@dataclass(frozen=True)
class Likeness:
    """A tool's result beside ours, over all files: ``same_bytes`` counts equal files, ``markers`` the comments that name an edit,
    ``blanks`` the lines of white space alone that the tool put in."""

    files: int
    same_bytes: int
    blanks: int
    markers: int


def compare(tool: str, before: Mapping[str, bytes], ours: Mapping[str, bytes], theirs: Mapping[str, bytes]) -> Likeness:
    """Raises SyntaxError when a result does not compile, NotTheSame when its statements are not ours."""
    for file, data in theirs.items():
        compile(data, f"{tool}: {file}", "exec", dont_inherit=True)
        if syntax(data) != syntax(ours[file]):
            raise NotTheSame(f"{tool} leaves other code in {file} than probepatch")
        if syntax(data) == syntax(before[file]):
            raise NotTheSame(f"{tool} leaves {file} as it was")
    return Likeness(
        len(theirs),
        sum(data == ours[file] for file, data in theirs.items()),
        sum(_blanks(data) - _blanks(before[file]) for file, data in theirs.items()),
        sum(data.count(b"# probepatch: ") for data in theirs.values()),
    )


def syntax(source: bytes) -> list[str]:
    """The module's imports in the order of the alphabet, then its other statements in their own; in a class the methods go by name.
    Neither order means anything to Python here."""
    tree = ast.parse(source)
    imports = [
        line for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom)) for line in one_by_one(node)
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            node.body.sort(
                key=lambda item: item.name if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) else ""
            )
    others = [ast.dump(node) for node in tree.body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    return [*sorted(imports), *others]


def _blanks(data: bytes) -> int:
    return sum(line != b"" and not line.strip() for line in data.split(b"\n"))
