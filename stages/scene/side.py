"""The scene of one side: everything that its tree tells, each answer with the line it was read from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatch
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from codemods.recipe import Heading, Recipe
from codemods.recipe_reader import load_recipe
from locales import _
from stages.scene.changes import Change, Subject, differences
from stages.scene.defaults import Default, defaults
from stages.scene.facts import AS_OF
from stages.scene.loop import Loop, loops
from stages.scene.places import (
    CANDIDATES,
    CAPTURE,
    LINK,
    NOT_NEEDED,
    SKIP,
    TRIM,
    UNKNOWN,
    Thing,
    planned,
    runs,
    searched,
    things,
)
from stages.scene.reading import Line, Reading
from stages.scene.signs import BACKEND, GUIDES, LINKS, NATIVE, SKIPS, STARTS, Guide, Sign


@dataclass(frozen=True)
class Told:
    """A line of the tree and what it means."""

    line: Line
    says: str


@dataclass(frozen=True)
class SideScene:
    """``framework`` None for one that nobody described; ``native`` None where the tree has no integration of msprobe."""

    side: str
    checkout: str
    package: str
    framework: str | None
    declared: str | None
    declared_in: str | None
    probed: str | None
    agree: bool | None
    backend: str | None
    backends: tuple[str, ...]
    loops: tuple[Loop, ...]
    defaults: tuple[Default, ...]
    native: Told | None
    native_starts: tuple[Line, ...]
    guides: tuple[Guide, ...]
    things: tuple[Thing, ...]
    skips: tuple[Told, ...]
    links: tuple[Told, ...]
    changes: tuple[Change, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def settled(self) -> bool:
        """Whether each of the three things is there, will be added, or is not needed, and the recipes can be applied."""
        three = (one for one in self.things if one.role != SKIP)
        return all(one.state not in (CANDIDATES, UNKNOWN) for one in three) and not any(c.blocks for c in self.changes)

    @property
    def inside(self) -> bool | None:
        """Whether an official guide says that it is for this version and backend; None where that is unknown."""
        certain = any(not one.backends or self.backend in one.backends for one in self.guides)
        return True if certain else None

    def as_json(self) -> dict[str, Any]:
        plain = asdict(self)
        for drop in ("declared", "declared_in", "probed", "agree", "guides", "defaults"):
            plain.pop(drop)
        return plain | {
            "version": {"declared": self.declared, "in": self.declared_in, "probed": self.probed, "agree": self.agree},
            "defaults": [_default_json(one) for one in self.defaults],
            "native_msprobe": self.native is not None,
            "official": {
                "inside": self.inside,
                "guides": [
                    {"document": one.document, "versions": one.versions, "backends": list(one.backends)}
                    for one in self.guides
                ],
                "as_of": AS_OF,
            },
            "settled": self.settled,
        }

    def for_card(self) -> dict[str, Any]:
        """What later stages want to know: places and words, no line of anybody's code."""
        return {
            "side": self.side,
            "framework": self.framework,
            "package": self.package,
            "version": self.declared,
            "probed": self.probed,
            "backend": self.backend,
            "loops": {one.recipe: one.shape for one in self.loops},
            "defaults": {one.fact.about: one.way.word for one in self.defaults},
            "native_msprobe": self.native is not None,
            "official": self.inside,
            "things": {
                thing.role: {
                    "state": thing.state,
                    "places": [
                        {"file": one.file, "line": one.line, "recipe": one.recipe, "edit": one.edit, "runs": one.runs}
                        for one in thing.places
                    ],
                }
                for thing in self.things
            },
            "changes": [asdict(change) for change in self.changes],
        }


def _default_json(one: Default) -> dict[str, Any]:
    return {
        "about": one.fact.about,
        "switch": one.fact.switch or None,
        "default": one.value or None,
        "runs": one.way.word,
        "says": one.way.says,
        "decided_at": asdict(one.decided_at),
        "default_at": asdict(one.value_at) if one.value_at else None,
    }


def look(subject: Subject, notes: Sequence[str] = ()) -> SideScene:
    """The whole scene. Reads only."""
    identity, reading = subject.identity, subject.reading
    name = identity.framework.name if identity.framework else None
    ways = defaults(name, identity.version, reading)
    recipes = _recipes(subject)
    found = planned(recipes, identity.nearest, reading)
    backend, choices = _backend(subject, ways, recipes)
    paths = [one.allowed for one in ways]
    missed = [replace(one, blocks=runs(one.recipe, paths, backend) is not False) for one in found.missed]
    three = _three(subject, things(found, subject.side, paths, backend))
    known = NATIVE.get(name or "")
    native = reading.find(known.files, known.pattern) if known else _any_native(subject)
    captures = next(one.places for one in three if one.role == CAPTURE)
    here = subject.side == ("train" if name in ("verl", "slime", "vime") else "infer")
    return SideScene(
        side=subject.side,
        checkout=subject.checkout,
        package=subject.package,
        framework=name,
        declared=str(identity.declared) if identity.declared is not None else None,
        declared_in=identity.declared_in or None,
        probed=str(identity.probed) or None,
        agree=identity.agree,
        backend=backend,
        backends=choices,
        loops=loops(captures, subject.side, reading),
        defaults=ways,
        native=Told(native, known.says if known else "") if native else None,
        native_starts=_lines(STARTS.get(name or ""), reading),
        guides=_guides(name, identity.version, backend),
        things=three,
        skips=_told(SKIPS.get(name or "", ()), reading) if here else (),
        links=_told(LINKS.get(name or "", ()), reading),
        changes=tuple(differences(subject, ways, missed, choices)),
        notes=(*notes, *(_("{file} was not read: {why}").format(file=f, why=w) for f, w in reading.unread.items())),
    )


def _three(subject: Subject, things_: Sequence[Thing]) -> tuple[Thing, ...]:
    """The things as the recipes have them; where they have none, what a search by shape finds."""
    if all(one.state != UNKNOWN for one in things_):
        return tuple(things_)
    by_shape = searched(subject.tree, subject.package, subject.side)
    found = {one.role: one for one in by_shape}
    kept = [replace(found[one.role], places=one.places) if one.state == UNKNOWN else one for one in things_]
    return (*kept, *(one for one in by_shape if one.role == SKIP))


def _recipes(subject: Subject) -> list[Recipe]:
    """The fitting recipes of this side that dump the log-prob forward; those of one's own come with them."""
    fitting = [fit.recipe for fit in subject.identity.fits if fit.fits]
    headings = [one for one in fitting if one.side == subject.side and not one.id.endswith("-update")]
    unfit = {fit.recipe.id for fit in subject.identity.fits if not fit.fits}
    own = [one for one in subject.files if one.side == subject.side and one.id not in unfit]
    names = {one.id for one in own}
    return [*own, *(_loaded(one) for one in headings if one.id not in names)]


def _loaded(heading: Heading) -> Recipe:
    return heading if isinstance(heading, Recipe) else load_recipe(heading.path)


def _backend(
    subject: Subject, ways: Sequence[Default], recipes: Sequence[Recipe]
) -> tuple[str | None, tuple[str, ...]]:
    """(backend, those that the recipes are for): what the card says, else the tree's default."""
    if subject.side != "train":
        return None, ()
    choices = tuple(
        name for name, ids in BACKEND.items() if any(fnmatch(one.id, pattern) for one in recipes for pattern in ids)
    )
    default = next((one.way.word for one in ways if one.fact.about == "backend"), None)
    return subject.backend or default, choices


def _guides(name: str | None, version: Version | None, backend: str | None) -> tuple[Guide, ...]:
    """The official guides whose range this is; several while the backend is unknown, none where nobody says."""
    found = []
    for guide in GUIDES.get(name or "", ()):
        inside = version is not None and SpecifierSet(guide.versions, prereleases=True).contains(version)
        if inside and (not guide.backends or backend is None or backend in guide.backends):
            found.append(guide)
    return tuple(found)


def _lines(sign: Sign | None, reading: Reading) -> tuple[Line, ...]:
    return tuple(reading.find_all(sign.files, sign.pattern)) if sign is not None else ()


def _told(signs: Sequence[Sign], reading: Reading) -> tuple[Told, ...]:
    return tuple(Told(line, sign.says) for sign in signs for line in reading.find_all(sign.files, sign.pattern))


def _any_native(subject: Subject) -> Line | None:
    """In a framework that nobody described: any import of msprobe in its package."""
    files = tuple(file for file in subject.tree.files() if file.startswith(f"{subject.package}/"))
    holding = tuple(file for file in files if b"msprobe" in (subject.tree.read(file) or b""))
    return subject.reading.find(holding, r"^ *(?:from|import) msprobe\b")


def without_tree(side: str, framework: str) -> SideScene:
    """A side whose source is not patched: a script of the user's calls the helpers (docs/transformers.md)."""
    says = _("your own script calls the helpers of docs/transformers.md; no source is patched")
    three = tuple(Thing(role, NOT_NEEDED, says) for role in (TRIM, CAPTURE, LINK))
    return SideScene(
        side=side,
        checkout="",
        package=framework,
        framework=framework,
        declared=None,
        declared_in=None,
        probed=None,
        agree=None,
        backend=None,
        backends=(),
        loops=(),
        defaults=(),
        native=None,
        native_starts=(),
        guides=(),
        things=three,
        skips=(),
        links=(),
        changes=(),
    )
