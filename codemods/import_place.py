"""Where an import goes among a module's leading imports: beside its kin, sorted as isort and ruff sort."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence

from codemods.outline import Import


def as_import(node: ast.Import | ast.ImportFrom) -> Import:
    """A statement that has no place yet."""
    if isinstance(node, ast.Import):
        return Import(-1, -1, node.names[0].name, True)
    return Import(-1, -1, "." * node.level + (node.module or ""), False)


def neighbour(new: Import, leading: Sequence[Import], text: bytes) -> tuple[Import, bool] | None:
    """The import beside which ``new`` goes, and whether it goes behind that; None where nothing of its kind is imported.

    Kin are the imports of one package, else the standard library's. Plain ones come first, each sort by its module; where the kin
    are all of the other sort, the block of imports that the first of them stands in is what is sorted.
    """
    kin = _kin(new, leading)
    if not kin:
        return None
    alike = [one for one in kin if one.plain == new.plain]
    twins = [one for one in alike if one.module == new.module]
    if twins:
        return twins[-1], True
    row = alike or _block(kin[0], leading, text)
    place = next((number for number, one in enumerate(row) if _key(one) > _key(new)), len(row))
    return (row[place - 1], True) if place else (row[0], False)


def same_section(one: Import, other: Import) -> bool:
    """Whether no blank line parts them: both of the standard library, or neither."""
    return _in_library(one) == _in_library(other)


def _kin(new: Import, leading: Sequence[Import]) -> list[Import]:
    related: Sequence[Callable[[Import], bool]] = (lambda one: _root(one) == _root(new), _in_library)
    ways = related if _in_library(new) else related[:1]
    return next((kin for way in ways if (kin := [one for one in leading if way(one)])), [])


def _root(one: Import) -> str:
    """The top-level package; empty for relative imports."""
    return one.module.partition(".")[0]


def _in_library(one: Import) -> bool:
    return _root(one) in sys.stdlib_module_names


def _key(one: Import) -> tuple[bool, int, str]:
    name = one.module.lstrip(".")
    return not one.plain, len(name) - len(one.module), name.lower()


def _block(member: Import, leading: Sequence[Import], text: bytes) -> list[Import]:
    """The imports around ``member`` which nothing but comments parts."""
    blocks: list[list[Import]] = []
    for one in leading:
        between = text[blocks[-1][-1].end : one.start] if blocks else b"\n"
        if not all(line.startswith(b"#") for line in between.splitlines()):
            blocks.append([])
        blocks[-1].append(one)
    return next(block for block in blocks if member in block)
