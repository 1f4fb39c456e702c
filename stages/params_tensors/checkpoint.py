"""A checkpoint folder or file as Hugging Face lays it out: shards with an index, one file, or files without an index."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from locales import _
from stages.params_tensors.header import read_header, strict_json
from stages.params_tensors.tensors import Leaf, NoTensorsError, Problem, Side, TensorFileError

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
_LARGEST_INDEX = 64 << 20  # bytes
_LARGEST_CONFIG = 4 << 20


def read_file(path: Path) -> Side:
    """One safetensors file. Raises TensorFileError."""
    leaves = {name: (leaf,) for name, leaf in read_header(path).items()}
    return Side(path, "file", leaves, config=config_beside(path.parent), files=(path,))


def read_folder(folder: Path) -> Side:
    """A folder of safetensors files; every fault of the set is a problem of its own. Raises TensorFileError, NoTensorsError."""
    index = folder / INDEX
    present = sorted(path for path in folder.glob("*.safetensors"))
    if os.path.lexists(index):
        return _indexed(folder, index, present)
    if not present:
        raise NoTensorsError(
            _("there are no safetensors files in {path}").format(path=folder),
            todo=_("name a checkpoint's folder or file, or a folder of inventories"),
        )
    problems: list[Problem] = []
    leaves: dict[str, tuple[Leaf, ...]] = {}
    for path in present:
        for name, leaf in _header(path, problems).items():
            if name in leaves:
                what = _("a tensor stands in two files: {a} and {b}").format(a=leaves[name][0].file, b=path.name)
                problems.append(Problem("duplicate", what, path.name, (name,)))
            else:
                leaves[name] = (leaf,)
    if len(present) > 1:
        problems.append(Problem("no-index", _("there is no index; all files were read"), fatal=False))
    return Side(folder, "folder", leaves, tuple(problems), config_beside(folder), files=tuple(present))


def _indexed(folder: Path, index: Path, present: list[Path]) -> Side:
    weight_map, total = _index(index)
    problems: list[Problem] = []
    by_file: dict[str, list[str]] = {}
    for name, file in weight_map.items():
        by_file.setdefault(file, []).append(name)
    leaves: dict[str, tuple[Leaf, ...]] = {}
    used, bytes_found = [], 0
    for file, names in sorted(by_file.items()):
        if not _stays_inside(file):
            what = _("the index names a file outside of the folder; it was not opened")
            problems.append(Problem("outside", what, file, tuple(names)))
            continue
        path = folder / file
        if not os.path.isfile(path):
            problems.append(Problem("shard-missing", _("the index names a file that is not there"), file, tuple(names)))
            continue
        used.append(path)
        head = _header(path, problems, tuple(names))
        bytes_found += sum(leaf.length for leaf in head.values())
        if head and (absent := tuple(name for name in names if name not in head)):
            problems.append(
                Problem("tensor-missing", _("the index puts a tensor into a file that lacks it"), file, absent)
            )
        if stray := tuple(name for name in head if weight_map.get(name) != file):
            problems.append(
                Problem("not-in-index", _("a file holds a tensor that the index does not put there"), file, stray)
            )
        leaves |= {name: (head[name],) for name in names if name in head}
    for path in present:
        if path.name not in by_file:
            what = _("a file is not in the index, and was ignored")
            problems.append(Problem("file-ignored", what, path.name, fatal=False))
    if total is not None and total != bytes_found:
        what = _("the index says {said} bytes in total, the files hold {found}").format(said=total, found=bytes_found)
        problems.append(Problem("total-size", what, INDEX, fatal=False))
    return Side(folder, "indexed", leaves, tuple(problems), config_beside(folder), files=(index, *used))


def _header(path: Path, problems: list[Problem], names: tuple[str, ...] = ()) -> dict[str, Leaf]:
    """Empty for a broken file, which is a problem of the set."""
    try:
        return read_header(path)
    except TensorFileError as error:
        what = f"{error.what}: {error.why}" if error.why else error.what
        problems.append(Problem("broken", what, path.name, names))
        return {}


def _index(path: Path) -> tuple[dict[str, str], int | None]:
    data = strict_json(path, read_limited(path, _LARGEST_INDEX))
    weight_map = data.get("weight_map") if isinstance(data, dict) else None
    if not isinstance(weight_map, dict) or not all(isinstance(file, str) for file in weight_map.values()):
        raise TensorFileError(_("the index has no `weight_map` of names and files"), where=str(path))
    metadata = data.get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    return weight_map, total if type(total) is int else None


def _stays_inside(file: str) -> bool:
    """By its words: a cache of downloads links each file of a folder to another place, and may."""
    path = PurePosixPath(file)
    plain = file and "\\" not in file and all(c.isprintable() for c in file)
    return bool(plain) and not path.is_absolute() and ".." not in path.parts and path.suffix == ".safetensors"


def config_beside(folder: Path) -> dict[str, Any]:
    """``config.json`` of the folder; empty when there is none. Raises TensorFileError when it is no JSON."""
    path = folder / "config.json"
    if not os.path.isfile(path):
        return {}
    data = strict_json(path, read_limited(path, _LARGEST_CONFIG))
    return data if isinstance(data, dict) else {}


def read_limited(path: Path, limit: int) -> bytes:
    """A small file. Raises TensorFileError when it is larger than ``limit`` bytes or cannot be read."""
    try:
        if not os.path.isfile(path):
            raise TensorFileError(_("this is no regular file"), where=str(path))
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise TensorFileError(_("the file cannot be read"), where=str(path), why=error.strerror) from error
    if len(data) > limit:
        raise TensorFileError(_("the file is larger than {size} bytes").format(size=limit), where=str(path))
    return data


def lines_of(path: Path, limit: int) -> Iterator[tuple[int, Any]]:
    """The JSON values of a file, one a line, with their numbers. Raises TensorFileError."""
    for number, line in enumerate(read_limited(path, limit).split(b"\n"), 1):
        if line.strip():
            yield number, strict_json(Path(f"{path}:{number}"), line)
