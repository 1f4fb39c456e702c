"""The three things — trim place, capture place, request-id link — on a tree: from the recipes that fit it, each edit planned for
itself; else searched by shape, ranked and never presumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch

from packaging.version import Version

from authoring.start.scene import search
from authoring.trees import FolderTree
from codemods.errors import ProbePatchError
from codemods.misses import PlanError
from codemods.planner import plan_edits
from codemods.recipe import Edit, Recipe
from codemods.recipe_reader import RECIPES
from locales import _
from stages.scene.reading import Reading
from stages.scene.signs import BACKEND, OWN_ROLES, ROLES

TRIM, CAPTURE, LINK, SKIP = "trim", "capture", "link", "skip"
FOUND, ABSENT, NOT_NEEDED, CANDIDATES, UNKNOWN = "found", "absent", "not needed", "candidates", "unknown"


@dataclass(frozen=True)
class Place:
    """Where an edit of a recipe goes. ``state``: found, or absent when it is a definition or file that will be added. ``runs``:
    whether the default path runs it, None where that is not known."""

    state: str
    file: str
    line: int | None
    symbol: str
    code: str
    recipe: str
    edit: str
    why: str
    runs: bool | None = None


@dataclass(frozen=True)
class Candidate:
    """A place found by its shape: a hint with its reasons."""

    score: int
    file: str
    line: int
    symbol: str
    code: str
    because: tuple[str, ...]


@dataclass(frozen=True)
class Thing:
    """One of the three, or what may skip the capture as the search saw it."""

    role: str
    state: str
    says: str
    places: tuple[Place, ...] = ()
    candidates: tuple[Candidate, ...] = ()


@dataclass(frozen=True)
class Missed:
    """An edit whose place the tree does not have as the recipe says; it ``blocks`` where what it edits may run by default."""

    recipe: str
    edit: str
    what: str
    where: str
    blocks: bool = True


@dataclass(frozen=True)
class Planned:
    places: dict[str, list[Place]]
    missed: tuple[Missed, ...]


def planned(recipes: Sequence[Recipe], version: Version | None, reading: Reading) -> Planned:
    """Plan every edit of every recipe for itself, so that one that misses hides no other."""
    places: dict[str, list[Place]] = {TRIM: [], CAPTURE: [], LINK: []}
    missed = []
    for recipe in recipes:
        for edit in recipe.edits:
            try:
                found = _place(recipe, edit, version, reading)
            except ProbePatchError as error:
                missed.append(Missed(recipe.id, edit.id, error.what, error.where or ""))
                continue
            for role, names in roles_of(recipe).items():
                if found is not None and any(fnmatch(edit.id, name) for name in names):
                    places[role].append(found)
    return Planned(places, tuple(dict.fromkeys(missed)))


def roles_of(recipe: Recipe) -> Mapping[str, tuple[str, ...]]:
    """Patterns of the ids of the edits at each place; a recipe that did not come with us says it by the ids' words."""
    return ROLES[recipe.side] if recipe.path.resolve().is_relative_to(RECIPES) else OWN_ROLES


def _place(recipe: Recipe, edit: Edit, version: Version | None, reading: Reading) -> Place | None:
    """None for an edit of other versions. Raises the finding that keeps it from being planned."""
    try:
        plan = plan_edits([replace(recipe, edits=(edit,))], reading.bases, version=version)
    except PlanError as error:
        raise error.findings[0] from error
    for path, edits in plan.items():
        file = next(place.file for place in edit.places if reading.bases.path(place.file) == path)
        absent = edit.verb.name.startswith("add_")
        line = None if edit.verb.name == "add_file" else edits[0].line
        code = "" if absent or line is None else reading.statement(file, line)
        state = ABSENT if absent else FOUND
        return Place(state, file, line, edits[0].symbol, code, recipe.id, edit.id, edit.why)
    return None


@dataclass(frozen=True)
class Allowed:
    """What a default path says of recipes: ``others`` are for another way than the default one, ``undecided`` for ways between
    which it is told at run time only (None: whatever the recipe)."""

    others: tuple[str, ...] = ()
    undecided: tuple[str, ...] | None = ()

    def runs(self, recipe: str) -> bool | None:
        if self.undecided is None or recipe in self.undecided:
            return None
        return recipe not in self.others


def things(found: Planned, side: str, paths: Sequence[Allowed], backend: str | None) -> tuple[Thing, ...]:
    """The three things from what was planned."""
    out = []
    for role in (TRIM, CAPTURE, LINK):
        places = tuple(dict.fromkeys(replace(p, runs=runs(p.recipe, paths, backend)) for p in found.places[role]))
        running = [one for one in places if one.runs is not False]
        if running:
            state = FOUND if any(one.state == FOUND for one in running) else ABSENT
            says = "" if state == FOUND else _("absent: will be added")
        elif role == TRIM and side == "infer":
            state, says = NOT_NEEDED, _("a prefill is the prompt alone")
        else:
            state, says = UNKNOWN, _("no recipe that fits has such a place on the default path")
        out.append(Thing(role, state, says, places))
    return tuple(out)


def runs(recipe: str, paths: Sequence[Allowed], backend: str | None) -> bool | None:
    """Whether the default path and the backend run what the recipe edits; None where one of the two is not known."""
    verdicts = [path.runs(recipe) for path in paths]
    of = next((name for name, ids in BACKEND.items() if any(fnmatch(recipe, one) for one in ids)), None)
    if of is not None:
        verdicts.append(None if backend is None else backend == of)
    return False if False in verdicts else None if None in verdicts else True


def searched(tree: FolderTree, package: str, side: str) -> tuple[Thing, ...]:
    """Candidates by shape, with what may skip the capture among them."""
    out = []
    for role in search(tree, package, side).roles:
        shown = tuple(
            Candidate(one.score, one.file, one.line, one.symbol, one.code, one.says) for one in role.candidates
        )
        says = _("found by shape; a person says which one is meant") if shown else _("nothing of this shape was found")
        out.append(Thing(role.shape.role, CANDIDATES if shown else UNKNOWN, says, candidates=shown))
    return tuple(out)
