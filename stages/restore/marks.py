"""A search of a whole tree for marks of ours: a comment, a payload's name, its bytecode. The ledger is not asked, for what
it does not know of (a stash that came back, a file that was copied) is what is looked for."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MARK = re.compile(rb"# probepatch: [\w-]+/|\bprobepatch_[a-z]\w*")
_BYTECODE = re.compile(r"probepatch_\w+\.[\w.-]*pyc")
_READ = (".py", ".pyi", ".sh", ".yaml", ".yml", ".json")
_PASSED_BY = {".git", ".probepatch", "node_modules", ".venv"}
_LARGEST = 8 << 20  # bytes of a file that is read
LIMIT = 50
"""Marks that are listed; more of them say no more."""


@dataclass(frozen=True)
class Mark:
    """``what``: mark (in the text), or bytecode (of a payload)."""

    path: Path
    what: str
    line: int | None = None

    def as_json(self) -> dict[str, str | int | None]:
        return {"path": str(self.path), "what": self.what, "line": self.line}


def marks(root: Path) -> list[Mark]:
    """The first of the marks below ``root``, which may be a file. Symbolic links are not followed."""
    found: list[Mark] = []
    for path in _files(root):
        found += _in_file(path)
        if len(found) >= LIMIT:
            break
    return found[:LIMIT]


def _files(root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
        return
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _PASSED_BY)
        yield from (Path(folder, name) for name in sorted(names))


def _in_file(path: Path) -> Iterator[Mark]:
    if _BYTECODE.fullmatch(path.name):
        yield Mark(path, "bytecode")
    if path.suffix not in _READ:
        return
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
            return
        data = path.read_bytes()
    except OSError:
        return
    if b"probepatch" not in data:
        return
    hit = _MARK.search(data)
    if hit is not None:
        yield Mark(path, "mark", data.count(b"\n", 0, hit.start()) + 1)
