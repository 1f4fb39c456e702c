"""Recipes by version: every recipe tried on every release, every distinct blob planned once, and the release that broke an edit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product

from authoring.matrix.pool import Pool, Step
from authoring.matrix.releases import NoPackageError, Release, Tree
from authoring.matrix.search import LOST, Search
from authoring.matrix.tasks import GONE, OK, STATES, UNREADABLE, Answer, Subset, Task, Verdict
from authoring.trees import GitTree, TreeError, WheelTree
from codemods.recipe import Edit, Recipe


@dataclass(frozen=True)
class Cell:
    """A recipe on a release. ``in_range``: is the release's version one of the recipe's own? None when it is not known.

    ``state`` is None where nothing was tried. ``verdicts`` go by the edit's number; edits that are not for this version are
    left out. ``missing`` are the numbers of requirements that the tree lacks.
    """

    recipe: int
    release: int
    in_range: bool | None
    state: str | None
    verdicts: Mapping[int, Verdict]
    missing: tuple[int, ...] = ()

    @property
    def broken(self) -> int:
        return sum(verdict.state != OK for verdict in self.verdicts.values())


@dataclass(frozen=True)
class History:
    """When an edit went wrong, as numbers of releases. ``broke`` is the first release of a run that it does not fit, ``last_good``
    the one before that it did (None: none did), ``since`` the first of all that it fits. ``in_range``: the run reaches into the
    recipe's own range. ``verdict`` is the one on ``broke``."""

    recipe: int
    edit: int
    since: int | None
    broke: int
    last_good: int | None
    verdict: Verdict
    in_range: bool


@dataclass(frozen=True)
class Matrix:
    """``cells`` by recipe, then release. ``asked`` counts the edits of all cells, ``planned`` those that had to be
    planned for it."""

    recipes: tuple[Recipe, ...]
    releases: tuple[Release, ...]
    cells: tuple[Cell, ...]
    asked: int
    planned: int

    def cell(self, recipe: int, release: int) -> Cell:
        return self.cells[recipe * len(self.releases) + release]

    @property
    def fits(self) -> bool:
        """Every recipe is ok on every release of its own range."""
        return all(cell.state == OK for cell in self.cells if cell.in_range and cell.state is not None)


def build(
    recipes: Sequence[Recipe],
    releases: Sequence[Release],
    step: Step = lambda done, total: None,
    *,
    only_in_range: bool = False,
    workers: int | None = None,
) -> Matrix:
    """Raises WorkerError."""
    work = _Work(tuple(recipes), tuple(releases), only_in_range)
    work.collect()
    with Pool(recipes, workers) as pool:
        answers = pool.run(list(work.tasks.values()), step)
        cells = work.cells(dict(zip(work.tasks, answers, strict=True)))
        searches = list(_searches(cells, work.releases))
        better = pool.run([search for _place, search in searches], step) if searches else []
    for (place, _search), verdicts in zip(searches, better, strict=True):
        cells[place] = work.cell(cells[place].recipe, cells[place].release, verdicts, cells[place].missing)
    asked = sum(len(cell.verdicts) for cell in cells)
    return Matrix(work.recipes, work.releases, tuple(cells), asked, sum(answer.planned for answer in answers))


def _searches(cells: Sequence[Cell], releases: Sequence[Release]) -> Iterator[tuple[int, Search]]:
    """Edits are looked for on the release that broke them, and wherever it is one of the recipe's own; with the cell's number."""
    for place, cell in enumerate(cells):
        lost = {edit for edit, verdict in cell.verdicts.items() if verdict.state in LOST}
        earlier = [other for other in cells[:place] if other.recipe == cell.recipe]
        good = [
            other for other in earlier if any(other.verdicts[edit].state == OK for edit in lost & {*other.verdicts})
        ]
        tree = releases[cell.release].tree
        if tree is not None and lost and (cell.in_range or good[-1:] == earlier[-1:] != []):
            before = releases[good[-1].release].tree if good else None
            yield place, Search(_part(tree), _part(before) if before is not None else None, cell.recipe, cell.verdicts)


Blobs = tuple[tuple[str, str | None], ...]
"""Files with the keys of their bytes: what a task's answer depends on."""


class _Work:
    """The tasks, one for each distinct set of blobs, and which cell wants what from which of them."""

    def __init__(self, recipes: tuple[Recipe, ...], releases: tuple[Release, ...], only_in_range: bool) -> None:
        self.recipes = recipes
        self.releases = releases
        self.only_in_range = only_in_range
        self.groups = _groups(edit for recipe in recipes for edit in recipe.edits)
        self.keys: dict[tuple[int, str], str | None] = {}
        self.tasks: dict[Blobs, Task] = {}
        self.subsets: dict[tuple[int, int], list[tuple[Blobs, Subset]]] = {}
        self.needs: dict[tuple[int, int], list[tuple[Blobs, int]]] = {}

    def in_range(self, number: int, release: int) -> bool | None:
        version = self.releases[release].version
        return None if version is None else version in self.recipes[number].versions

    def tried(self, number: int, release: int) -> bool:
        return not (self.only_in_range and self.in_range(number, release) is False)

    def collect(self) -> None:
        for place, release in enumerate(self.releases):
            if release.tree is None:
                continue
            for number, recipe in enumerate(self.recipes):
                if self.tried(number, place):
                    self._cell(number, recipe, place, release, release.tree)

    def _cell(self, number: int, recipe: Recipe, place: int, release: Release, tree: Tree) -> None:
        chosen: dict[tuple[str, ...], list[int]] = {}
        for index, edit in enumerate(recipe.edits):
            if edit.versions is None or release.version is None or release.version in edit.versions:
                chosen.setdefault(self._group(edit.places[0].file), []).append(index)
        for files, edits in chosen.items():
            subset = (number, tuple(edits))
            key = self._task(tree, files)
            if subset not in self.tasks[key].subsets:
                self.tasks[key] = replace(self.tasks[key], subsets=(*self.tasks[key].subsets, subset))
            self.subsets.setdefault((number, place), []).append((key, subset))
        for index, need in enumerate(recipe.requires):
            key = self._task(tree, self._group(need.file))
            if (number, index) not in self.tasks[key].needs:
                self.tasks[key] = replace(self.tasks[key], needs=(*self.tasks[key].needs, (number, index)))
            self.needs.setdefault((number, place), []).append((key, index))

    def _group(self, file: str) -> tuple[str, ...]:
        return self.groups.get(file, (file,))

    def _task(self, tree: Tree, files: tuple[str, ...]) -> Blobs:
        key = tuple((file, self._key(tree, file)) for file in files)
        if key not in self.tasks:
            self.tasks[key] = Task(_part(tree, files), ())
        return key

    def _key(self, tree: Tree, file: str) -> str | None:
        """The file's key; one of its own where it cannot be read, which whoever reads it will find out again."""
        known = (id(tree), file)
        if known not in self.keys:
            try:
                self.keys[known] = tree.key(file)
            except TreeError:
                self.keys[known] = f"unreadable {known}"
        return self.keys[known]

    def cells(self, found: Mapping[Blobs, Answer]) -> list[Cell]:
        """By recipe, then release."""
        cells = []
        for where in product(range(len(self.recipes)), range(len(self.releases))):
            verdicts: dict[int, Verdict] = {}
            for key, subset in self.subsets.get(where, ()):
                verdicts |= found[key].verdicts[subset]
            missing = [need for key, need in self.needs.get(where, ()) if (where[0], need) in found[key].missing]
            cells.append(self.cell(*where, verdicts, missing))
        return cells

    def cell(self, number: int, place: int, verdicts: Mapping[int, Verdict], missing: Sequence[int]) -> Cell:
        in_range = self.in_range(number, place)
        if not self.tried(number, place):
            return Cell(number, place, in_range, None, {})
        release = self.releases[place]
        if release.error is not None:
            state = GONE if isinstance(release.error, NoPackageError) else UNREADABLE
            return Cell(number, place, in_range, state, {})
        states = {verdict.state for verdict in verdicts.values()} | ({GONE} if missing or not verdicts else set())
        return Cell(
            number,
            place,
            in_range,
            max(states, key=STATES.index),
            dict(sorted(verdicts.items())),
            tuple(missing),
        )


def _groups(edits: Iterable[Edit]) -> dict[str, tuple[str, ...]]:
    """By file the files that have to be planned together: an edit with alternatives in several files ties these."""
    groups: dict[str, tuple[str, ...]] = {}
    for edit in edits:
        files = {other for place in edit.places for other in groups.get(place.file, (place.file,))}
        groups |= dict.fromkeys(files, tuple(sorted(files)))
    return groups


def _part(tree: Tree, files: Iterable[str] | None = None) -> Tree:
    """The tree as far as a worker needs it (all of it, when no files are named), without what was read of it."""
    if isinstance(tree, WheelTree):
        return WheelTree(tree.path, tree.label)
    ids = tree.ids if files is None else {file: tree.ids[file] for file in files if file in tree.ids}
    return GitTree(tree.repo, tree.label, ids)


def histories(matrix: Matrix) -> Iterator[History]:
    """Of every edit that does not fit everywhere."""
    for number, recipe in enumerate(matrix.recipes):
        cells = [matrix.cell(number, release) for release in range(len(matrix.releases))]
        for edit in range(len(recipe.edits)):
            found = _history(edit, [cell for cell in cells if edit in cell.verdicts])
            if found is not None:
                yield found


def _history(edit: int, cells: Sequence[Cell]) -> History | None:
    """The first run of misses that reaches into the recipe's own range, else the first that follows a hit, else the first."""
    runs: list[tuple[Cell | None, list[Cell]]] = []
    good: list[Cell] = []
    for fits, same in groupby(cells, key=lambda cell: cell.verdicts[edit].state == OK):
        if fits:
            good += same
        else:
            runs.append((good[-1] if good else None, list(same)))
    if not runs:
        return None
    ours = [run for run in runs if any(cell.in_range for cell in run[1])]
    last_good, misses = next(iter(ours), None) or next((run for run in runs if run[0] is not None), runs[0])
    return History(
        misses[0].recipe,
        edit,
        good[0].release if good else None,
        misses[0].release,
        last_good.release if last_good is not None else None,
        misses[0].verdicts[edit],
        bool(ours),
    )
