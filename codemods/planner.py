"""Plans every edit of every chosen recipe on the base bytes. Pure: it reads through ``Bases`` and writes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from packaging.version import Version

from codemods import misses
from codemods.errors import ProbePatchError
from codemods.locate import find_sites, stands
from codemods.recipe import Edit, Place, Recipe
from codemods.settings import digest_with, filled_payload
from codemods.site import Change, Site
from codemods.splice import PlannedEdit, Splice
from codemods.target import Bases, Target
from locales import _


class _Planning:
    """One run over one tree: each file is read once."""

    def __init__(self, bases: Bases, version: Version | None, values: Mapping[str, Any]) -> None:
        self.bases = bases
        self.version = version
        self.values = values
        self.found: dict[str, list[PlannedEdit]] = {}

    def plan(self, recipe: Recipe, number: int, edit: Edit) -> None:
        if edit.versions is not None and self.version is not None and self.version not in edit.versions:
            return
        place, sites = self.sites(recipe, edit)
        path = self.bases.path(place.file)
        changes = [edit.verb.change(site) for site in sites]
        if edit.verb.name == "add_file":
            planned = self.added_file(recipe, number, edit, place)
        else:
            planned = _planned(
                self.bases.target(place.file),
                recipe,
                number,
                edit,
                place,
                sites,
                changes,
                digest_with(recipe, self.values),
            )
        self.found.setdefault(path, []).append(planned)

    def sites(self, recipe: Recipe, edit: Edit) -> tuple[Place, list[Site]]:
        """The place that matches, with its sites; with alternatives exactly one has to match."""
        marker = f"probepatch: {recipe.id}/{edit.id}" if edit.marker else ""
        if edit.verb.name == "add_file":
            return edit.places[0], []
        hits: list[tuple[Place, list[Site]]] = []
        missed: list[ProbePatchError] = []
        places = [place for place in edit.places if self._stands(place)] or edit.places
        for place in places:
            try:
                hits.append((place, find_sites(self.bases.target(place.file), edit, place, marker)))
            except ProbePatchError as error:
                missed.append(error)
        if len(hits) == 1:
            return hits[0]
        if hits:
            raise misses.MatchCountError(
                _("{count} alternatives match, exactly one may").format(count=len(hits)),
                where=edit.where,
                details=tuple(place.where for place, _sites in hits),
            )
        raise missed[0] if len(missed) == 1 else _no_alternative(missed)

    def _stands(self, place: Place) -> bool:
        try:
            return stands(self.bases.target(place.file), place)
        except ProbePatchError:
            return False

    def added_file(self, recipe: Recipe, number: int, edit: Edit, place: Place) -> PlannedEdit:
        path = self.bases.path(place.file)
        if self.bases.read(place.file) is not None:
            raise misses.NameTakenError(
                _("there is a file of that name already, and it is not ours"),
                where=path,
                todo=_("move it away, or give the edit another `file`; `probepatch ledger show` tells what we wrote"),
            )
        text = filled_payload(recipe.payloads[place.fields["add_file"]], recipe, self.values)
        splice = Splice(0, b"", text.encode("utf-8"), shared=True)
        digest = digest_with(recipe, self.values)
        return PlannedEdit(recipe.id, edit.id, digest, (recipe.order, number), "", 1, edit.why, (splice,))


def _no_alternative(missed: Sequence[ProbePatchError]) -> ProbePatchError:
    """Where all alternatives miss, the one that came furthest says most."""
    rank = (misses.FileMissingError, misses.SymbolMissingError)
    best = max(missed, key=lambda error: next((n for n, kind in enumerate(rank) if isinstance(error, kind)), len(rank)))
    others = tuple(f"{error.where}: {error.what}" for error in missed if error is not best)
    best.details = (*best.details, *others)
    return best


def _planned(
    target: Target,
    recipe: Recipe,
    number: int,
    edit: Edit,
    place: Place,
    sites: list[Site],
    changes: list[Change],
    digest: str,
) -> PlannedEdit:
    source = target.source
    splices: list[Splice] = []
    indents = []
    for change in changes:
        for indent in change.indents:
            shift = len(splices)
            indents.append(
                source.raw_indent(replace(indent, opening=indent.opening + shift, closing=indent.closing + shift))
            )
        splices += [source.raw_splice(splice) for splice in change.splices]
    offset = changes[0].splices[0].start if changes and changes[0].splices else 0
    if sites and sites[0].match is not None:
        offset = sites[0].parsed.span(sites[0].first.node)[0]
    elif sites and sites[0].definition is not None:
        offset = sites[0].definition.start
    return PlannedEdit(
        recipe.id,
        edit.id,
        digest,
        (recipe.order, number),
        place.symbol,
        source.line_of(offset),
        edit.why,
        tuple(splices),
        tuple(indents),
    )


def plan_edits(
    recipes: Sequence[Recipe],
    bases: Bases,
    *,
    version: Version | None = None,
    values: Mapping[str, Any] | None = None,
) -> dict[str, tuple[PlannedEdit, ...]]:
    """Plan all edits on the tree's base files.

    Gives the edits by path in the tree. Raises PlanError with every finding, when there is one.
    """
    planning = _Planning(bases, version, values or {})
    findings: list[ProbePatchError] = []
    for recipe in recipes:
        for number, edit in enumerate(recipe.edits):
            try:
                planning.plan(recipe, number, edit)
            except ProbePatchError as error:
                findings.append(_of_edit(_with_near_files(error, edit, bases), recipe, edit))
    if findings:
        raise misses.PlanError(findings)
    return {path: tuple(edits) for path, edits in planning.found.items()}


def _with_near_files(error: ProbePatchError, edit: Edit, bases: Bases) -> ProbePatchError:
    if isinstance(error, misses.FileMissingError) and error.todo is None:
        near = [
            path for place in edit.places if bases.path(place.file) == error.where for path in bases.near(place.file)
        ]
        if near:
            error.todo = _("did you mean `{near}`?").format(near=near[0])
            error.details = (*error.details, *(_("there is {path}, too").format(path=path) for path in near[1:]))
    return error


def _of_edit(error: ProbePatchError, recipe: Recipe, edit: Edit) -> ProbePatchError:
    """The error again, with the edit's name in front and the line of the recipe behind."""
    named = type(error).__new__(type(error))
    named.__dict__.update(error.__dict__)
    named.what = f"{recipe.id}/{edit.id}: {error.what}"
    named.args = (named.what,)
    named.details = (*error.details, _("the edit is written at {where}").format(where=edit.where))
    return named
