"""The header of a safetensors file, read strictly: nothing in it is believed before it fits the file's size."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

from locales import _
from stages.params_tensors.tensors import Leaf, TensorFileError, expected_bytes

LARGEST = 16 << 20  # bytes of a header; real ones have a few hundred bytes for each tensor
LONGEST_NAME = 1000  # characters
_LARGEST_DIMENSION = 1 << 48
_MOST_DIMENSIONS = 16


def read_header(path: Path) -> dict[str, Leaf]:
    """The tensors of the file by name, in the order of their bytes. Raises TensorFileError."""
    try:
        with _regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little") if size >= 8 else 0
            if size < 8:
                raise _bad(path, _("the file is cut off: {size} bytes are no header").format(size=size))
            if length > LARGEST:
                raise _bad(
                    path, _("the header claims {length} bytes; {most} are the most").format(length=length, most=LARGEST)
                )
            if length > size - 8:
                raise _bad(
                    path, _("the file is cut off: its header alone should have {length} bytes").format(length=length)
                )
            raw = file.read(length)
    except OSError as error:
        raise _bad(path, _("the file cannot be read"), error.strerror) from error
    return _checked(path, strict_json(path, raw), 8 + length, size)


def _regular(path: Path) -> BinaryIO:
    """Open without waiting for the other end of a pipe. Raises TensorFileError, OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _bad(path, _("this is no regular file"))
    return os.fdopen(descriptor, "rb")


def _checked(path: Path, head: Any, start: int, size: int) -> dict[str, Leaf]:
    if not isinstance(head, dict):
        raise _bad(path, _("the header is no table"))
    head.pop("__metadata__", None)
    found = sorted(
        (_leaf(path, name, entry, start) for name, entry in head.items()), key=lambda leaf: (leaf.offset, leaf.length)
    )
    at, before = start, ""
    for leaf in found:
        if leaf.offset < at:
            raise _bad(path, _("the bytes of `{a}` and `{b}` overlap").format(a=before, b=leaf.name))
        if leaf.offset > at:
            raise _bad(path, _("before `{name}` there are bytes that belong to no tensor").format(name=leaf.name))
        at, before = leaf.offset + leaf.length, leaf.name
    if at > size:
        raise _bad(path, _("the file is cut off: {size} bytes, the header says {wanted}").format(size=size, wanted=at))
    if at < size:
        raise _bad(
            path, _("the file is longer than its header says: {size} bytes, not {wanted}").format(size=size, wanted=at)
        )
    return {leaf.name: leaf for leaf in found}


def _leaf(path: Path, name: str, entry: Any, start: int) -> Leaf:
    if len(name) > LONGEST_NAME:
        raise _bad(path, _("`{name}…` is too long a name for a tensor").format(name=name[:80]))
    entry = entry if isinstance(entry, dict) else {}
    dtype: Any = entry.get("dtype")
    shape: Any = entry.get("shape")
    offsets: Any = entry.get("data_offsets")
    if not isinstance(dtype, str) or not is_shape(shape) or not is_shape(offsets) or len(offsets) != 2:
        raise _bad(path, _("`{name}` has no valid dtype, shape and data_offsets").format(name=name[:200]))
    begin, end = offsets
    wanted = expected_bytes(dtype, tuple(shape))
    if end < begin or (wanted is not None and wanted != end - begin):
        raise _bad(
            path,
            _("`{name}` is {dtype} {shape}, but has {length} bytes").format(
                name=name[:200], dtype=dtype, shape=shape, length=end - begin
            ),
        )
    return Leaf(name, dtype, tuple(shape), path, start + begin, end - begin)


def is_shape(value: Any) -> bool:
    """A list of whole numbers that a tensor may have as dimensions."""
    return (
        isinstance(value, list)
        and len(value) <= _MOST_DIMENSIONS
        and all(type(one) is int and 0 <= one <= _LARGEST_DIMENSION for one in value)
    )


def strict_json(path: Path, raw: bytes) -> Any:
    """JSON without NaN and without a key that stands twice. Raises TensorFileError."""
    try:
        return json.loads(raw.decode("utf-8"), parse_constant=_refused, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise _bad(path, _("this is no valid JSON"), str(error)[:200]) from error


def _refused(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key[:100]!r} stands twice")
        found[key] = value
    return found


def _bad(path: Path, what: str, why: str | None = None) -> TensorFileError:
    return TensorFileError(what, where=str(path), why=why)
