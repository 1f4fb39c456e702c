"""What a recipe is: which framework and versions, which edits, why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

from codemods.verbs.verb import Verb


@dataclass(frozen=True)
class Place:
    """One way to find an edit: where, and what stands there."""

    file: str
    symbol: str
    select: Mapping[str, Any]
    nth: int | None
    expect: int
    fields: Mapping[str, str]
    where: str


@dataclass(frozen=True)
class Edit:
    """``places`` has several entries when the edit has alternatives; exactly one of them has to match."""

    id: str
    why: str
    verb: Verb
    places: tuple[Place, ...]
    versions: SpecifierSet | None
    marker: bool
    where: str


@dataclass(frozen=True)
class Parameter:
    name: str
    type: str
    env: str
    default: Any
    choices: tuple[str, ...]
    help: str


@dataclass(frozen=True)
class Requirement:
    file: str
    symbol: str
    has: str


@dataclass(frozen=True)
class Alternative:
    group: str
    default: SpecifierSet
    because: str


@dataclass(frozen=True, kw_only=True)
class Heading:
    """Everything that a recipe says of itself, without its edits: enough to tell whether it fits a tree."""

    id: str
    framework: str
    side: str
    versions: SpecifierSet
    why: str
    path: Path
    order: int = 0
    upstream: str = ""
    remove_when: str = ""
    verified: tuple[str, ...] = ()
    alternative: Alternative | None = None
    requires: tuple[Requirement, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    switches: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Example:
    """A small file and what the edits make of it: ``after``, or a finding that holds ``message`` when ``after`` is None.

    An example of a file that stays as it is has ``after == before``. ``version`` is empty where none is said.
    """

    edits: tuple[str, ...]
    version: str
    before: str
    after: str | None
    message: str
    where: str


@dataclass(frozen=True, kw_only=True)
class Recipe(Heading):
    """``digest`` is the SHA-256 of the recipe, its fragments and its payloads; ``payloads`` the texts of the files it adds."""

    edits: tuple[Edit, ...]
    examples: tuple[Example, ...] = ()
    digest: str
    payloads: Mapping[str, str] = field(default_factory=dict)

    @property
    def top(self) -> str:
        """The folder in which most of the edits' files lie, by its first name; empty when that is none."""
        firsts = [place.file.partition("/") for edit in self.edits for place in edit.places]
        counts = Counter(first if slash else "" for first, slash, _rest in firsts)
        return counts.most_common(1)[0][0] if counts else ""
