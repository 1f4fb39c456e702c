"""Tensors as files hold them, and tensors as they are compared: put together from pieces, without one byte being read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from codemods.errors import InvalidError, UsageError
from locales import _
from stages.params_tensors.dtypes import BITS

PARAMETER, BUFFER = "parameter", "buffer"


class TensorFileError(InvalidError):
    """A file of tensors, an index or an inventory is not valid."""


class NoTensorsError(UsageError):
    """There is nothing at the path that could be compared."""


@dataclass(frozen=True)
class Shard:
    """This is piece ``index`` of ``count``, cut along ``dim``."""

    dim: int
    index: int
    count: int


@dataclass(frozen=True)
class Leaf:
    """A tensor in one piece: ``length`` bytes from ``offset`` of ``file``, row-major.

    ``file`` is None when only the SHA-256 of the bytes is known, or nothing at all. ``kind`` is parameter, buffer or unknown
    (a checkpoint does not tell); ``persistent`` whether a buffer belongs to the state dict. ``alias_of`` names the tensor of the
    same side that is the same memory. ``unsupported`` says why it cannot be compared, whatever its bytes are.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: Path | None = None
    offset: int = 0
    length: int = 0
    sha256: str | None = None
    kind: str = ""
    persistent: bool = True
    rank: int | None = None
    shard: Shard | None = None
    alias_of: str | None = None
    unsupported: str = ""

    @property
    def row_bytes(self) -> int:
        return self.length // self.shape[0] if self.shape and self.shape[0] else 0

    def rows(self, start: int, stop: int, shape: tuple[int, ...]) -> Leaf:
        """Rows of the first dimension, seen in another shape. The hash of the whole is not theirs."""
        return replace(
            self,
            shape=shape,
            offset=self.offset + start * self.row_bytes,
            length=(stop - start) * self.row_bytes,
            sha256=None,
        )


@dataclass(frozen=True)
class View:
    """A tensor as it is compared: ``leaves`` joined along ``axis``, in their order.

    ``dtype`` and ``shape`` are of the whole. ``stored_as`` are the names that it has in its files.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    leaves: tuple[Leaf, ...]
    axis: int = 0
    unsupported: str = ""

    @classmethod
    def of(cls, leaf: Leaf, name: str | None = None) -> View:
        return cls(name or leaf.name, leaf.dtype, leaf.shape, (leaf,), 0, leaf.unsupported)

    @property
    def length(self) -> int:
        return sum(leaf.length for leaf in self.leaves)

    @property
    def readable(self) -> bool:
        return all(leaf.file is not None or not leaf.length for leaf in self.leaves)

    @property
    def sha256(self) -> str | None:
        return self.leaves[0].sha256 if len(self.leaves) == 1 else None

    @property
    def kind(self) -> str:
        return self.leaves[0].kind

    @property
    def persistent(self) -> bool:
        return all(leaf.persistent for leaf in self.leaves)

    @property
    def stored_as(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(leaf.name for leaf in self.leaves))

    def __str__(self) -> str:
        return f"{self.dtype} [{', '.join(map(str, self.shape))}]"


def joined(name: str, parts: list[View], axis: int) -> View:
    """The parts one after the other along ``axis``. Parts that do not fit together give a view that says so."""
    first = parts[0]
    why = next((part.unsupported for part in parts if part.unsupported), "")
    rest = [part.shape[:axis] + part.shape[axis + 1 :] for part in parts]
    if axis >= len(first.shape) or len(set(rest)) > 1 or len({part.dtype for part in parts}) > 1:
        why = why or _("pieces do not fit together: {shapes}").format(shapes=", ".join(map(str, parts[:4])))
        return View(name, first.dtype, first.shape, first.leaves, 0, why)
    if axis and any(len(part.leaves) > 1 for part in parts):
        why = why or _("pieces of pieces cannot be joined along dimension {axis}").format(axis=axis)
    shape = (*first.shape[:axis], sum(part.shape[axis] for part in parts), *first.shape[axis + 1 :])
    return View(name, first.dtype, shape, tuple(leaf for part in parts for leaf in part.leaves), axis, why)


def expected_bytes(dtype: str, shape: tuple[int, ...]) -> int | None:
    """None for a dtype whose width is unknown."""
    bits = BITS.get(dtype)
    return None if bits is None else (math.prod(shape) * bits + 7) // 8


@dataclass(frozen=True)
class Problem:
    """A fault of a set of files. ``fatal`` ones mean that the set is not whole; the others are notes."""

    kind: str
    what: str
    file: str = ""
    tensors: tuple[str, ...] = ()
    fatal: bool = True

    def as_json(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "what": self.what,
            "file": self.file,
            "tensors": list(self.tensors),
            "fatal": self.fatal,
        }


@dataclass(frozen=True)
class Side:
    """All that was found at a path. ``leaves`` by name, one for each rank that has it; ``config`` is the model's, if known."""

    path: Path
    form: str
    leaves: Mapping[str, tuple[Leaf, ...]]
    problems: tuple[Problem, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    parallel: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    files: tuple[Path, ...] = ()

    def number(self, name: str) -> int | None:
        """A whole number of the model's config, also from its ``text_config``; None when it is unknown or the two disagree."""
        nested = self.config.get("text_config")
        places = [self.config, nested if isinstance(nested, Mapping) else {}]
        found = {value for place in places if type(value := place.get(name)) is int}
        return found.pop() if len(found) == 1 else None

    def flags(self, name: str) -> list[bool]:
        """The distinct values of a flag at the top level and in ``text_config``."""
        nested = self.config.get("text_config")
        places = [self.config, nested if isinstance(nested, Mapping) else {}]
        return sorted({value for place in places if isinstance(value := place.get(name), bool)})
