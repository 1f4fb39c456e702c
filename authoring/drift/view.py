"""A tree as the diagnosis sees it: files by the words in them, definitions with their shapes, each looked up once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from authoring.drift.shape import Shape, shapes
from authoring.trees import SourceTree, TreeError
from codemods.errors import ProbePatchError
from codemods.outline import Definition
from codemods.target import Bases, Target


@dataclass
class View:
    """``tree`` with what has been read of it. ``renamed`` tells where a missing file has gone and how one knows."""

    tree: SourceTree
    renamed: Callable[[str], tuple[str, str] | None] = lambda _file: None
    _bytes: dict[str, bytes] = field(default_factory=dict)
    _shapes: dict[str, Mapping[tuple[str, int], Shape]] = field(default_factory=dict)
    _holding: dict[tuple[bytes, str], frozenset[str]] = field(default_factory=dict)

    @cached_property
    def bases(self) -> Bases:
        return Bases(self.tree.read)

    def target(self, file: str) -> Target | None:
        """None where the file is missing or cannot be read as Python."""
        try:
            target = self.bases.target(file)
            _ = target.outline
        except ProbePatchError:
            return None
        return target

    def shape(self, file: str, definition: Definition) -> Shape | None:
        target = self.target(file)
        if target is None:
            return None
        if file not in self._shapes:
            self._shapes[file] = shapes(target.source.text)
        return self._shapes[file].get((definition.qualname, definition.line))

    def files_with(self, words: Iterable[bytes], package: str) -> list[str]:
        """The package's files that hold all these byte strings; its tests are left out."""
        found = [self._with(word, package) for word in words]
        return sorted(frozenset.intersection(*found)) if found else []

    def _with(self, word: bytes, package: str) -> frozenset[str]:
        key = (word, package)
        if key not in self._holding:
            self._holding[key] = frozenset(file for file in self._package(package) if word in self.raw(file))
        return self._holding[key]

    def _package(self, package: str) -> list[str]:
        head = f"{package}/"
        return [file for file in self.tree.files() if file.startswith(head) and "/tests/" not in file]

    def raw(self, file: str) -> bytes:
        """The file's bytes; none where it cannot be read."""
        if file not in self._bytes:
            try:
                self._bytes[file] = self.tree.read(file) or b""
            except TreeError:
                self._bytes[file] = b""
        return self._bytes[file]
