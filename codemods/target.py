"""The base files during identification and planning: each read, outlined and parsed once, and only as far as somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from codemods import misses
from codemods.errors import ProbePatchError
from codemods.outline import Definition, Outline, outline
from codemods.scope import Scope, parse_scope
from codemods.source import Source, read_source
from locales import _

_NEAR = 3  # paths that a missing file's message names


@dataclass
class Target:
    """``source`` with its outline and its parsed definitions, each made on first use."""

    source: Source
    _outline: Outline | None = None
    _scopes: dict[tuple[int, Definition | None], Scope] = field(default_factory=dict)

    @classmethod
    def of(cls, path: str, base: bytes) -> Target:
        return cls(read_source(path, base))

    @property
    def outline(self) -> Outline:
        if self._outline is None:
            self._outline = outline(self.source.text, self.source.path)
        return self._outline

    def scope(self, start: int, end: int, definition: Definition | None) -> Scope:
        key = (start, definition)
        if key not in self._scopes:
            self._scopes[key] = parse_scope(self.source, start, end, definition)
        return self._scopes[key]


class Bases:
    """A tree's base files, asked for by the path that recipes use.

    ``read`` gives a file's bytes without our edits by its path in the tree, None when there is no such file; ``prefix`` is the
    import root below the tree's root. ``files`` lists the tree's files by the paths that recipes use: for hints alone.
    """

    def __init__(
        self,
        read: Callable[[str], bytes | None],
        prefix: str = "",
        files: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._read = read
        self._prefix = prefix
        self._files = files
        self._bytes: dict[str, bytes | None] = {}
        self._targets: dict[str, Target | ProbePatchError] = {}

    def path(self, file: str) -> str:
        """The file's path in the tree."""
        return f"{self._prefix}/{file}" if self._prefix else file

    def read(self, file: str) -> bytes | None:
        if file not in self._bytes:
            self._bytes[file] = self._read(self.path(file))
        return self._bytes[file]

    def near(self, file: str) -> list[str]:
        """Paths that there are and that look most like ``file``, those of its own name first."""
        files = self._files()
        name = file.rpartition("/")[2]
        named = [path for path in files if path.rpartition("/")[2] == name]
        return list(dict.fromkeys(get_close_matches(file, named, _NEAR, 0) + get_close_matches(file, files, _NEAR)))[
            :_NEAR
        ]

    def target(self, file: str) -> Target:
        """Raises FileMissingError, or what keeps the file from being read, again each time."""
        if file not in self._targets:
            self._targets[file] = self._open(file)
        known = self._targets[file]
        if isinstance(known, ProbePatchError):
            raise known
        return known

    def _open(self, file: str) -> Target | ProbePatchError:
        data = self.read(file)
        if data is None:
            return misses.FileMissingError(_("the file is not there"), where=self.path(file))
        try:
            return Target.of(self.path(file), data)
        except ProbePatchError as error:
            return error
