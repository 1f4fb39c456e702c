"""The syntax of a script: words made of parts, commands made of words. Offsets are characters in the source's text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True, eq=False)
class Source:
    """A script's text, and how its characters count in lines and bytes. ``path`` is None for text that does not stand in a file as
    it is (``eval``, a job's entry point); ``label`` then says where it is from."""

    path: Path | None
    text: str
    label: str = ""

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(at + 1 for at, c in enumerate(self.text) if c == "\n")]

    def line(self, at: int) -> int:
        """1-based."""
        return bisect_right(self._starts, at)

    def byte(self, at: int) -> int:
        return len(self.text[:at].encode("utf-8", "surrogateescape"))

    def where(self, at: int) -> str:
        return f"{self.path.name}:{self.line(at)}" if self.path is not None else self.label


@dataclass(frozen=True)
class Lit:
    """Literal text. ``quote``: empty, ``\\`` (one escaped character), ``'``, ``"``, ``$'`` or ``<<`` (a here-document)."""

    text: str
    start: int
    end: int
    quote: str = ""


@dataclass(frozen=True)
class Param:
    """``${name[index]op arg}``; ``flag`` is ``#`` for a length, ``!`` for an indirection."""

    name: str
    start: int
    end: int
    quoted: bool
    index: str | None = None
    op: str = ""
    arg: Word | None = None
    flag: str = ""


@dataclass(frozen=True)
class Sub:
    """``$(commands)``."""

    body: Sequence[Node]
    start: int
    end: int
    quoted: bool


@dataclass(frozen=True)
class Arith:
    """``$((expression))``."""

    text: str
    start: int
    end: int
    quoted: bool


@dataclass(frozen=True)
class Opaque:
    """Something that is read over: ``<(…)``, say."""

    start: int
    end: int


Part = Lit | Param | Sub | Arith | Opaque


@dataclass(frozen=True)
class Word:
    parts: tuple[Part, ...]
    start: int
    end: int

    @property
    def plain(self) -> str | None:
        """The text of a word without a quote or an expansion; None for every other."""
        if all(isinstance(part, Lit) and not part.quote for part in self.parts):
            return "".join(part.text for part in self.parts if isinstance(part, Lit))
        return None


@dataclass(frozen=True)
class Assign:
    """``name[index]+=value``; the value of an array is a list of words."""

    name: str
    value: Word | tuple[Word, ...]
    start: int
    append: bool = False
    index: str | None = None


@dataclass
class Redirect:
    op: str
    target: Word
    body: Word | None = None  # of a here-document, known when its lines were read


@dataclass(frozen=True)
class Simple:
    assigns: tuple[Assign, ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]
    start: int
    end: int


@dataclass(frozen=True)
class If:
    branches: tuple[tuple[Sequence[Node], Sequence[Node]], ...]
    otherwise: Sequence[Node]
    start: int


@dataclass(frozen=True)
class Loop:
    """``for name in words``, or ``while``/``until`` with a condition, or something else that repeats its body."""

    kind: str
    body: Sequence[Node]
    start: int
    name: str = ""
    words: tuple[Word, ...] | None = None
    condition: Sequence[Node] = ()


@dataclass(frozen=True)
class Case:
    word: Word
    arms: tuple[tuple[tuple[Word, ...], Sequence[Node]], ...]
    start: int


@dataclass(frozen=True)
class Group:
    body: Sequence[Node]
    subshell: bool
    start: int


@dataclass(frozen=True)
class Function:
    name: str
    body: Sequence[Node]
    start: int


@dataclass(frozen=True)
class Counting:
    """``((expression))`` as a command."""

    text: str
    start: int


@dataclass(frozen=True)
class Chain:
    """``first && second || third``; an operator per later node."""

    nodes: tuple[Node, ...]
    operators: tuple[str, ...]
    start: int


@dataclass(frozen=True)
class Pipeline:
    nodes: tuple[Node, ...]
    negated: bool
    start: int


Node = Simple | If | Loop | Case | Group | Function | Counting | Chain | Pipeline


@dataclass
class Script:
    source: Source
    nodes: Sequence[Node] = field(default_factory=tuple)
