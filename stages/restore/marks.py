"""A search of a whole tree for marks of ours: a comment, a payload's name, its bytecode. The ledger is not asked, for what
it does not know of (a stash that came back, a file that was copied) is what is looked for."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

MARK = re.compile(rb"# probepatch: [\w-]+/|\bprobepatch_[a-z]\w*")
_BYTECODE = re.compile(r"probepatch_\w+\.[\w.-]*pyc")
_READ = (".py", ".pyi", ".sh", ".yaml", ".yml", ".json")
_PASSED_BY = {".git", ".probepatch", "node_modules", ".venv"}
_LARGEST = 8 << 20  # bytes of a file that is read
LIMIT = 50
"""Marks that are listed; more of them say no more."""


@dataclass(frozen=True)
class Mark:
    """``what``: mark (in the text), bytecode (of a payload), or committed (to git, as a mark)."""

    path: Path
    what: str
    line: int | None = None

    def as_json(self) -> dict[str, str | int | None]:
        return {"path": str(self.path), "what": self.what, "line": self.line}


def marks(root: Path, apart: Collection[Path] = ()) -> list[Mark]:
    """The first of the marks below ``root``, which may be a file. Symbolic links are not followed, and folders in ``apart`` (the
    capture's own artefacts, the task card's) are passed by."""
    found: list[Mark] = []
    for path in _files(root, {Path(os.path.realpath(one)) for one in apart}):
        found += _in_file(path)
        if len(found) >= LIMIT:
            break
    return found[:LIMIT]


def _files(root: Path, apart: Collection[Path]) -> Iterator[Path]:
    if root.is_file():
        yield root
        return
    for folder, folders, names in os.walk(root):
        kept = (name for name in folders if name not in _PASSED_BY)
        folders[:] = sorted(name for name in kept if Path(os.path.realpath(folder), name) not in apart)
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
    hit = MARK.search(data)
    if hit is not None:
        yield Mark(path, "mark", data.count(b"\n", 0, hit.start()) + 1)
