"""The default path of a tree: its facts looked up in it again.

What the tree says is taken; where the facts expected something else for its version, that is a finding for the list of
changes.
"""

from __future__ import annotations

from dataclasses import dataclass

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from locales import _
from stages.scene.facts import AS_OF, FACTS, Fact, Way
from stages.scene.places import Allowed
from stages.scene.reading import Line, Reading


@dataclass(frozen=True)
class Default:
    """What was found: the fact, the deciding line, the line with the default, and the way; ``unlike`` says how the tree differs
    from the facts of its version, empty when it does not."""

    fact: Fact
    decided_at: Line
    value: str
    value_at: Line | None
    way: Way
    unlike: str = ""

    @property
    def allowed(self) -> Allowed:
        """What the way says of recipes."""
        named = {name for way in self.fact.ways.values() for name in way.recipes}
        if self.way.word is None:
            return Allowed(undecided=tuple(sorted(named)) or None)
        return Allowed(others=tuple(sorted(named - {*self.way.recipes})))


def defaults(framework: str | None, version: Version | None, reading: Reading) -> tuple[Default, ...]:
    """One for each thing that the facts speak of and the tree decides; facts of the tree's own version are asked first."""
    facts = FACTS.get(framework or "", ())
    found: dict[str, Default] = {}
    for fact in sorted(facts, key=lambda fact: not _of(fact, version)):
        if fact.about not in found and (one := _look(fact, reading)) is not None:
            found[fact.about] = one
    order = list(dict.fromkeys(fact.about for fact in facts))
    return tuple(_compared(found[about], version) for about in order if about in found)


def _of(fact: Fact, version: Version | None) -> bool:
    return version is not None and SpecifierSet(fact.versions, prereleases=True).contains(version)


def _look(fact: Fact, reading: Reading) -> Default | None:
    decided = reading.find(fact.decides, fact.pattern)
    if decided is None:
        return None
    if not fact.default:
        return Default(fact, decided, "", None, fact.ways[""])
    at = reading.find(fact.default, fact.default_pattern)
    if at is None:
        return Default(fact, decided, "", None, Way(None, _("the default was not found in the tree")))
    way = fact.ways.get(at.value) or Way(None, _("`{value}` is no value that the facts know").format(value=at.value))
    return Default(fact, decided, at.value, at, way)


def _compared(one: Default, version: Version | None) -> Default:
    """Beside what the facts say of the tree's version."""
    fact, unlike = one.fact, ""
    if version is not None and not _of(fact, version):
        text = _("the facts of {date} have this for {versions}, not for {version}")
        unlike = text.format(date=AS_OF, versions=fact.versions, version=version)
    elif fact.default and one.value != fact.expected:
        text = _("the facts of {date} have the default `{expected}`, the tree has `{value}`")
        unlike = text.format(date=AS_OF, expected=fact.expected, value=one.value or "-")
    return Default(fact, one.decided_at, one.value, one.value_at, one.way, unlike)


def missing(framework: str | None, version: Version | None, found: tuple[Default, ...]) -> list[Fact]:
    """Facts for this version that the tree shows nothing of."""
    known = {one.fact.about for one in found}
    return [fact for fact in FACTS.get(framework or "", ()) if fact.about not in known and _of(fact, version)]
