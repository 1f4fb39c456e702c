"""What a worker does: plan the edits of some files of one version, and say in a word what became of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from authoring.trees import SourceTree, TreeError
from codemods import misses
from codemods.compiling import UncheckableError, check
from codemods.diagnose import stands_already
from codemods.errors import ProbePatchError
from codemods.identify import holds
from codemods.outline import SyntaxUnknownError
from codemods.planner import plan_edits
from codemods.recipe import Edit, Place, Recipe
from codemods.scope import NotEditableError
from codemods.site import MeaningError
from codemods.source import UnreadableSourceError
from codemods.splice import PlannedEdit, check_order, render
from codemods.target import Bases

OK, UPSTREAM, REFUSED, MOVED, AMBIGUOUS, GONE, UNREADABLE = (
    "ok",
    "upstream",
    "refused",
    "moved",
    "ambiguous",
    "gone",
    "unreadable",
)
STATES = (OK, UPSTREAM, REFUSED, MOVED, AMBIGUOUS, GONE, UNREADABLE)
"""Mildest first: a cell is what the worst of its edits is."""

_UNREADABLE = (TreeError, UnreadableSourceError, SyntaxUnknownError, NotEditableError, UncheckableError)
_GONE = (misses.FileMissingError, misses.SymbolMissingError, misses.NoMatchError)
_ADDS_A_NAME = ("add_method", "add_function", "add_attribute")

Planned = tuple[str, PlannedEdit]
Subset = tuple[int, tuple[int, ...]]
"""A recipe (by number), and those of its edits (by number) that are for one version."""


@dataclass(frozen=True)
class Verdict:
    """What became of an edit. ``file``, ``symbol`` and ``line`` are the place that matched, the new one of an edit that moved, else
    the first one asked for (without a line: 0)."""

    state: str
    file: str
    symbol: str
    line: int = 0
    error: ProbePatchError | None = None


@dataclass(frozen=True)
class Answer:
    """``planned`` counts the edits that were planned."""

    verdicts: dict[Subset, dict[int, Verdict]]
    missing: frozenset[tuple[int, int]]
    planned: int


@dataclass(frozen=True)
class Task:
    """``subsets`` are planned on the files of ``tree``, and the ``needs`` (of a recipe, a requirement; by number) looked up."""

    tree: SourceTree
    subsets: tuple[Subset, ...]
    needs: tuple[tuple[int, int], ...] = ()

    def work(self, recipes: Sequence[Recipe]) -> Answer:
        planner = _Planner(recipes, Bases(self.tree.read))
        wanted = {(number, edit): None for number, edits in self.subsets for edit in edits}
        single = {key: planner.plan(*key) for key in wanted}
        verdicts = {
            (number, edits): planner.together(number, {edit: single[number, edit] for edit in edits})
            for number, edits in self.subsets
        }
        missing = frozenset(need for need in self.needs if not planner.holds(*need))
        return Answer(verdicts, missing, len(wanted))


def state_of(edit: Edit, error: ProbePatchError, bases: Bases) -> str:
    """The word for a finding."""
    if isinstance(error, _UNREADABLE):
        return UNREADABLE
    if isinstance(error, misses.NameTakenError) or (isinstance(error, MeaningError) and edit.verb.name in _ADDS_A_NAME):
        return UPSTREAM
    if isinstance(error, misses.NoMatchError) and any(_stands_already(edit, place, bases) for place in edit.places):
        return UPSTREAM
    if isinstance(error, misses.AmbiguousSymbolError):
        return AMBIGUOUS
    if isinstance(error, misses.MatchCountError):  # its details: a line for each match, and one for the recipe
        return GONE if len(error.details) <= min(place.expect for place in edit.places) else AMBIGUOUS
    return GONE if isinstance(error, _GONE) else REFUSED


def _stands_already(edit: Edit, place: Place, bases: Bases) -> bool:
    try:
        return stands_already(edit, place, bases.target(place.file))
    except ProbePatchError:
        return False


class _Planner:
    def __init__(self, recipes: Sequence[Recipe], bases: Bases) -> None:
        self.recipes = recipes
        self.bases = bases

    def plan(self, number: int, place: int) -> Planned | ProbePatchError:
        recipe = self.recipes[number]
        try:
            ((file, (planned,)),) = plan_edits([replace(recipe, edits=(recipe.edits[place],))], self.bases).items()
        except misses.PlanError as error:
            return error.findings[0]
        return file, replace(planned, order=(recipe.order, place))

    def together(self, number: int, chosen: Mapping[int, Planned | ProbePatchError]) -> dict[int, Verdict]:
        """The verdicts, after a look at what the edits make of each file when all of them find their place."""
        verdicts, files = {}, defaultdict(list)
        for place, found in chosen.items():
            edit = self.recipes[number].edits[place]
            if isinstance(found, ProbePatchError):
                asked = edit.places[0]
                verdicts[place] = Verdict(state_of(edit, found, self.bases), asked.file, asked.symbol, error=found)
            else:
                file, planned = found
                verdicts[place] = Verdict(OK, file, planned.symbol, planned.line)
                files[file].append(planned)
        for file, edits in files.items():
            error = self.broken(file, sorted(edits, key=lambda edit: edit.order))
            if error is not None:
                state = UNREADABLE if isinstance(error, _UNREADABLE) else REFUSED
                verdicts |= {
                    place: replace(verdict, state=state, error=error)
                    for place, verdict in verdicts.items()
                    if (verdict.state, verdict.file) == (OK, file)
                }
        return verdicts

    def broken(self, file: str, edits: Sequence[PlannedEdit]) -> ProbePatchError | None:
        """Why the edits do not go together in the file, or break it."""
        base = self.bases.read(file)
        try:
            check_order(file, edits)
            check([(file, base, render(base or b"", edits))])
        except ProbePatchError as error:
            return error
        return None

    def holds(self, number: int, place: int) -> bool:
        need = self.recipes[number].requires[place]
        try:
            return holds(self.bases, need.file, need.symbol, need.has)
        except TreeError:
            return False
