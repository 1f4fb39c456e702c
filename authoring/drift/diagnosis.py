"""Every edit of a recipe on another tree: does it still fit, where has its place gone, and may one say so without a look."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from authoring.drift.anchors import differences, fits
from authoring.drift.candidates import MARGIN, SURE, SURE_ALONE, Candidate, Old, candidates, old_of
from authoring.drift.names import added_names, inserted, unbound
from authoring.drift.view import View
from codemods.diagnose import stands_already
from codemods.errors import ProbePatchError
from codemods.locate import find_sites
from codemods.misses import AmbiguousSymbolError, FileMissingError, MatchCountError
from codemods.recipe import Edit, Place, Recipe
from codemods.target import Target
from locales import _

OK, MOVED, UNSURE, GONE, UPSTREAM, AMBIGUOUS = "ok", "moved", "unsure", "gone", "upstream", "ambiguous"
_HELPS = ("add_function", "add_method", "add_import")
_BOUND = re.compile(r"(?:def|import|as)\s+(\w+)\s*(?:\(|$|#|,)")


@dataclass(frozen=True)
class Diagnosis:
    """``compared``: whether the older tree holds the edit's place; None without such a tree.

    ``state``: ok (fits as it is), moved (``taken`` is its new place), unsure (only ``candidates``), ambiguous (more matches
    than it expects), upstream (the tree has it already), gone (nothing is near). ``place`` is the one that was looked for."""

    edit: Edit
    state: str
    place: Place
    finding: ProbePatchError | None = None
    candidates: tuple[Candidate, ...] = ()
    taken: Candidate | None = None
    doubts: tuple[str, ...] = ()
    compared: bool | None = None

    @property
    def stands(self) -> Place | None:
        """Where the edit may be made on the new tree; None when that is not known."""
        if self.state == OK:
            return self.place
        return self.taken.place if self.taken is not None else None


def diagnose(edit: Edit, view: View, was: View | None = None, added: frozenset[str] = frozenset()) -> Diagnosis:
    """One edit by itself. ``was`` is a tree on which it fits; with it the search has bodies to compare, without it names."""
    for place in edit.places:
        target = view.target(place.file)
        if edit.verb.name == "add_file" or (target is not None and fits(target, edit, place) is not None):
            return _standing(edit, place, view, was, added)
    place = _meant(edit, view, was)
    finding = _finding(edit, place, view)
    if _upstream(edit, place, view):
        return Diagnosis(edit, UPSTREAM, place, finding)
    old = old_of(was, edit, place)
    compared = (old.shape is not None or old.anchor is not None) if was is not None and place.symbol else None
    found = tuple(candidates(edit, place, view, old, added))
    taken = _sure(edit, place, found, old, view, was)
    if taken is not None:
        return Diagnosis(edit, MOVED, place, finding, found, taken, compared=compared)
    many = isinstance(finding, (MatchCountError, AmbiguousSymbolError)) and place.expect < len(finding.details)
    state = AMBIGUOUS if many else UNSURE if found else GONE
    return Diagnosis(edit, state, place, finding, found, compared=compared)


def _standing(edit: Edit, place: Place, view: View, was: View | None, added: frozenset[str]) -> Diagnosis:
    """The place fits; what is left to doubt is whether it still means the same, and whether the names that the code reads are
    there."""
    target = view.target(place.file)
    if target is None:
        return Diagnosis(edit, OK, place)
    lines = fits(target, edit, place) or (1,)
    missing = set(unbound(edit, place, target, added, lines[0]))
    before = was.target(place.file) if was is not None else None
    known = fits(before, edit, place) if before is not None else None
    if before is not None and known is not None:
        missing -= set(unbound(edit, place, before, added, known[0]))
    said = _("the inserted code reads `{name}`, which nothing binds there")
    doubts = (*(said.format(name=name) for name in sorted(missing)), *_changes(edit, place, target, was))
    if not doubts:
        return Diagnosis(edit, OK, place)
    here = Candidate(1.0, (_("it fits as it is"),), place, lines[0], place.symbol or place.file, True, 1.0, doubts)
    return Diagnosis(edit, UNSURE, place, None, (here,), doubts=doubts)


def _changes(edit: Edit, place: Place, target: Target, was: View | None) -> tuple[str, ...]:
    """What speaks against a place that fits as it is: it is reached otherwise, or means something else, than in the older tree."""
    if was is None or not edit.verb.anchor:
        return ()
    fitting = [one for one in edit.places if (old := was.target(one.file)) is not None and fits(old, edit, one)]
    if not fitting:
        return ()
    if place not in fitting:
        return (_("in the older tree another alternative fits"),)
    old = was.target(place.file)
    assert old is not None
    return differences(old, target, edit, place)


def _meant(edit: Edit, view: View, was: View | None) -> Place:
    """The place that the older tree has, else the one that comes furthest on this one."""
    for place in edit.places:
        target = was.target(place.file) if was is not None else None
        if target is not None and fits(target, edit, place) is not None:
            return place
    rank: dict[type, int] = {FileMissingError: 0, AmbiguousSymbolError: 2, MatchCountError: 3}
    return max(edit.places, key=lambda place: rank.get(type(_finding(edit, place, view)), 1))


def _finding(edit: Edit, place: Place, view: View) -> ProbePatchError | None:
    try:
        find_sites(view.bases.target(place.file), edit, place, "")
    except ProbePatchError as error:
        return error
    return None


def _upstream(edit: Edit, place: Place, view: View) -> bool:
    """Whether what the edit inserts stands in its place already."""
    target = view.target(place.file)
    return target is not None and stands_already(edit, place, target)


def _sure(
    edit: Edit, place: Place, found: Sequence[Candidate], old: Old, view: View, was: View | None
) -> Candidate | None:
    """The one candidate that may be taken: it matches as it is, was not there before, looks like the old place, and leads clearly.

    Without the older tree only git's word for a renamed file is enough.
    """
    if not found:
        return None
    best, others = found[0], found[1:]
    if best.doubts or not best.exact or best.place.expect != place.expect:
        return None
    moved = view.renamed(place.file) if view.target(place.file) is None else None
    if moved is not None and moved[0] == best.place.file and best.place.symbol == place.symbol:
        return best
    if not place.symbol or was is None or old.shape is None or _was_there(edit, best.place, was):
        return None
    around = best.place.file == place.file and place.symbol.startswith(f"{best.place.symbol}.")
    if around:  # a nested function was taken into the one around it
        return best if not any(one.place.symbol.startswith(place.symbol.rpartition(".")[0]) for one in others) else None
    if _at_home(place, view) and best.place.symbol != place.symbol:
        outer = place.symbol.rpartition(".")[0]
        sibling = best.place.file == place.file and best.place.symbol.rpartition(".")[0] == outer
        if not sibling or any(one.place.symbol == place.symbol for one in others):
            return None  # the definition is still there: only a method beside it may have taken the statement over
    rivals = [one for one in others if best.likeness - one.likeness < MARGIN and not _was_there(edit, one.place, was)]
    return best if best.likeness >= (SURE if edit.verb.anchor else SURE_ALONE) and not rivals else None


def _was_there(edit: Edit, place: Place, was: View) -> bool:
    """Whether the older tree holds this place as well: then nothing has moved to it."""
    target = was.target(place.file)
    return target is not None and fits(target, edit, place) is not None


def _at_home(place: Place, view: View) -> bool:
    """Whether the place's definition is still where it was."""
    target = view.target(place.file)
    return target is not None and bool(place.symbol) and bool(target.outline.named(place.symbol))


def diagnose_all(recipe: Recipe, edits: Sequence[Edit], view: View, was: View | None = None) -> list[Diagnosis]:
    """All edits together: what only helps others (an import, a method) goes where those that use it have gone."""
    found = [diagnose(edit, view, was, added_names(recipe, edit.places[0])) for edit in edits]
    for verb in _HELPS:  # an import comes last: methods use it
        found = [_with_users(one, found, view) if one.edit.verb.name == verb else one for one in found]
    return found


def _with_users(helper: Diagnosis, all_of_them: Sequence[Diagnosis], view: View) -> Diagnosis:
    users = [one for one in all_of_them if one is not helper and _uses(one, helper)]
    if not users:
        return helper
    if all(one.state in (GONE, UPSTREAM) for one in users):
        return replace(helper, state=GONE, taken=None, candidates=(), doubts=(_("no edit that uses it has a place"),))
    known = [one.stands for one in users]
    homes = {_home(helper.edit, place) for place in known if place is not None}
    hinted = {
        _home(helper.edit, candidate.place)
        for one in users
        if one.stands is None
        for candidate in one.candidates[: 1 if _at_home(one.place, view) else None]
    }
    if homes | hinted == {_home(helper.edit, helper.place)}:
        return helper
    firsts = {_home(helper.edit, one.candidates[0].place) for one in users if one.stands is None and one.candidates}
    together = _follows(helper, homes | firsts, view)
    if together is not None and None not in known:
        return replace(helper, state=MOVED, taken=together, candidates=(together,), doubts=())
    said = _("the edits that use it stand in several places, or it is not known where")
    shown = (together,) if together is not None else helper.candidates
    return replace(helper, state=UNSURE, taken=None, candidates=shown, doubts=(*helper.doubts, said))


def _follows(helper: Diagnosis, homes: set[tuple[str, str]], view: View) -> Candidate | None:
    """The helper at the one place to which the edits that use it have gone; None where that is not one, or it does not fit."""
    if len(homes) != 1:
        return None
    file, symbol = next(iter(homes))
    place = replace(helper.place, file=file, symbol=symbol, select={})
    target = view.target(file)
    lines = fits(target, helper.edit, place) if target is not None else None
    if lines is None:
        return None
    return Candidate(1.0, (_("follows the edits that use it"),), place, lines[0], symbol or file, True, 1.0)


def _uses(one: Diagnosis, helper: Diagnosis) -> bool:
    """Whether an edit of the same file reads a name that the helper binds."""
    if one.place.file != helper.place.file or one.edit.verb.name == "add_file":
        return False
    head = r"(?:self|cls)\." if helper.edit.verb.name == "add_method" else r"(?<![.\w])"
    names = _BOUND.findall(helper.place.fields[helper.edit.verb.name].strip().split("\n")[0])
    texts = inserted(one.place).values()
    return any(re.search(rf"{head}{re.escape(name)}\b", text) for name in names for text in texts)


def _home(helper: Edit, place: Place) -> tuple[str, str]:
    """Where a helper of this kind has to stand for an edit at ``place``: the module, or the class around."""
    if helper.verb.name == "add_method" and place.symbol:
        depth = helper.places[0].symbol.count(".") + 1
        return place.file, ".".join(place.symbol.split(".")[:depth])
    return place.file, place.symbol if helper.places[0].symbol else ""


def summary(found: Iterable[Diagnosis]) -> Mapping[str, int]:
    """How many edits are in each state."""
    counts = dict.fromkeys((OK, MOVED, UNSURE, AMBIGUOUS, UPSTREAM, GONE), 0)
    for one in found:
        counts[one.state] += 1
    return counts
