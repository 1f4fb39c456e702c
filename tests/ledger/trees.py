"""Small trees, edits and plans for the ledger's tests."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from codemods.splice import Indent, PlannedEdit, Splice
from patch_ledger.apply import commit
from patch_ledger.merge import merge, read_base
from patch_ledger.receipt import Receipt
from patch_ledger.store import open_ledger


@dataclass(frozen=True, slots=True)
class PlainTree:
    root: Path
    git_dir: Path | None = None


def insertion(
    at: int, text: bytes, removed: bytes = b"", *, name: str = "r/e", order: tuple[int, int] = (0, 0), **more: object
) -> PlannedEdit:
    recipe, _slash, ident = name.partition("/")
    return PlannedEdit(recipe, ident, "d", order, splices=(Splice(at, removed, text, **more),))  # type: ignore[arg-type]


def after_line(base: bytes, line: int, text: bytes, **more: object) -> PlannedEdit:
    """Whole lines after the 1-based ``line``."""
    at = len(b"".join(base.splitlines(keepends=True)[:line]))
    return insertion(at, text, **more)  # type: ignore[arg-type]


def around(
    base: bytes,
    first: int,
    last: int,
    name: str = "r/wrap",
    order: tuple[int, int] = (0, 0),
    unit: bytes = b"    ",
    column: bytes = b"    ",
) -> PlannedEdit:
    """``try`` / ``finally`` around the 1-based lines ``first`` to ``last``."""
    lines = base.splitlines(keepends=True)
    offsets = [sum(map(len, lines[:n])) for n in range(len(lines) + 1)]
    inner = tuple(offsets[n] for n in range(first - 1, last) if lines[n].strip())
    recipe, _slash, ident = name.partition("/")
    head, tail = column + b"try:\n", column + b"finally:\n" + column + unit + b"tap_stop()\n"
    return PlannedEdit(
        recipe,
        ident,
        "d",
        order,
        splices=(
            Splice(offsets[first - 1], b"", head, rank=(1, 0, 0), lines=(0,)),
            Splice(offsets[last], b"", tail, rank=(0, -1, 1), lines=(0, len(column) + 9)),
        ),
        indents=(Indent(unit, inner, 0, 1),),
    )


def apply(tree: PlainTree, files: Mapping[str, Sequence[PlannedEdit]], **more: object) -> Receipt:
    """Plan and commit edits; every recipe in ``files`` counts as planned anew."""
    ledger = open_ledger(tree)
    views = {path: read_base(ledger, path) for path in files}
    recipes = {edit.recipe: edit.digest for edits in files.values() for edit in edits}
    return commit(tree, merge(ledger, views, files, recipes), **more)  # type: ignore[arg-type]


def snapshot(root: Path) -> dict[str, tuple[int, bytes | str]]:
    """Every path below ``root`` with mode and bytes; git directories and ledgers left out."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name not in (".git", ".probepatch")]
        for name in (*names, *files):
            path = Path(folder, name)
            mode = path.lstat().st_mode
            data: bytes | str = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
            found[path.relative_to(root).as_posix()] = (mode, data)
    return found


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def git(root: Path, *args: str) -> str:
    """Run git with an identity of its own and no user configuration."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(root),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "t",
        "GIT_AUTHOR_EMAIL": "t@example.org",
        "GIT_COMMITTER_NAME": "t",
        "GIT_COMMITTER_EMAIL": "t@example.org",
    }
    return subprocess.run(["git", "-C", str(root), *args], check=True, capture_output=True, text=True, env=env).stdout


def write(root: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
