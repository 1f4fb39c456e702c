"""One base file during planning: read, outlined and parsed once, and only as far as edits ask for it."""

from __future__ import annotations

from dataclasses import dataclass, field

from codemods.outline import Definition, Outline, outline
from codemods.scope import Scope, parse_scope
from codemods.source import Source, read_source


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
