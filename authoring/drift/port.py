"""A recipe carried to another version: edits that were found again without a doubt are mended, the rest is left to its author.

The mended recipe stands alone (fragments are written out in it) and claims the one version that it was planned and compiled on.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.version import Version

from authoring.drift.candidates import Candidate
from authoring.drift.diagnosis import GONE, MOVED, OK, Diagnosis, diagnose_all
from authoring.drift.view import View
from authoring.yamltext import Item, commented, heading, indented, items, texts, with_key, without_key
from codemods.compiling import check
from codemods.errors import ProbePatchError
from codemods.identify import holds
from codemods.planner import plan_edits
from codemods.recipe import Edit, Place, Recipe
from codemods.recipe_reader import PAYLOADS, load_recipe
from codemods.splice import render
from locales import _

LEFT_OUT = "left out"  # the edit says itself that it is for other versions


@dataclass(frozen=True)
class Ported:
    """``text`` is the mended recipe. ``complete``: every edit has its place, and the recipe was planned and compiled on the
    tree; ``problem`` is what that said where it failed. ``left_out`` are edits whose own `versions` exclude the tree's;
    ``dropped`` are requirements that do not hold any more; ``examples_to_adapt`` counts the examples left as comments."""

    id: str
    text: str
    found: tuple[Diagnosis, ...]
    left_out: tuple[str, ...]
    dropped: tuple[str, ...]
    examples_to_adapt: int
    complete: bool
    problem: ProbePatchError | None = None


def active(recipe: Recipe, version: Version | None) -> list[Edit]:
    """The edits that are meant for a version; all of them where it is not known."""
    return [e for e in recipe.edits if e.versions is None or version is None or version in e.versions]


def port(recipe: Recipe, view: View, version: Version | None, was: View | None = None) -> Ported:
    """Carry ``recipe`` to the tree in ``view``. ``was`` is a tree on which it fits. Writes nothing to the tree."""
    edits = active(recipe, version)
    found = diagnose_all(recipe, edits, view, was)
    by_id = {one.edit.id: one for one in found}
    left_out = tuple(edit.id for edit in recipe.edits if edit.id not in by_id)
    name = f"{recipe.id}-{version}".lower().replace("+", "-") if version is not None else f"{recipe.id}-port"
    parts = sources(recipe)
    wanted = (item for item in _all(parts, "edits") if item.values["id"] in by_id)
    body = "".join(_written(item, by_id[item.values["id"]]) for item in wanted)
    kept, dropped = _requirements(recipe, view)
    shown = [(item, _still_true(item, by_id)) for item in _all(parts, "examples") if _about(item, by_id)]
    examples = "".join(indented(item.text) if true else commented(_to_adapt(item)) for item, true in shown)
    whole = all(one.stands is not None for one in found)
    head = _head(heading(parts[-1]), name, version, kept)
    text = head + "edits:\n" + body
    if examples:
        text += ("examples:\n" if any(true for _item, true in shown) else "# examples:\n") + examples
    problem = _tried(recipe, text, view, version) if any(one.stands for one in found) else None
    to_adapt = sum(not true for _item, true in shown)
    return Ported(name, text, tuple(found), left_out, dropped, to_adapt, whole and problem is None, problem)


def sources(recipe: Recipe) -> list[str]:
    """The texts of the recipe's fragments, and last its own."""
    own = recipe.path.read_text("utf-8-sig")
    return [*((recipe.path.parent / f"_{name}.yaml").read_text("utf-8-sig") for name in texts(own, "include")), own]


def _all(parts: list[str], key: str) -> Iterator[Item]:
    for text in parts:
        yield from items(text, key)


def _written(item: Item, one: Diagnosis) -> str:
    """The edit as it was, at its new place, or as a comment that says what is missing."""
    if one.state == OK:
        return indented(item.text)
    if one.state == MOVED and one.taken is not None:
        return indented(_moved(item.text, one, one.taken.place))
    return commented("\n".join(_todo(item, one)))


def _moved(text: str, one: Diagnosis, place: Place) -> str:
    """The item with the place's keys; what held for other versions or alternatives is taken out."""
    edit, old = one.edit, one.place
    for key in ("any_of", "versions"):
        text = without_key(text, key)
    lone = len(edit.places) == 1
    if not lone or place.file != old.file:
        text = with_key(text, "file", place.file)
    if place.symbol and (not lone or place.symbol != old.symbol):
        text = with_key(text, "in", place.symbol)
    select = dict(place.select)
    for key, value, usual in (("select", select, {}), ("expect", place.expect, 1), ("nth", place.nth, None)):
        if value in (None, usual):
            text = without_key(text, key)
        elif not lone or value != getattr(old, key):
            text = with_key(text, key, value)
    anchor = edit.verb.name
    if edit.verb.anchor and (not lone or place.fields[anchor] != old.fields[anchor]):
        text = with_key(text, anchor, place.fields[anchor])
    return text


def _todo(item: Item, one: Diagnosis) -> Iterator[str]:
    yield "TODO " + one.edit.id + ": " + (one.finding.what if one.finding is not None else state_text(one))
    for doubt in one.doubts:
        yield f"  {doubt}"
    for number, candidate in enumerate(one.candidates, 1):
        yield f"  {number}. " + candidate_text(candidate)
        for doubt in candidate.doubts if candidate.doubts != one.doubts else ():
            yield f"     {doubt}"
    text = item.text
    if one.candidates:
        yield "  " + _("with the first of them, to be taken by removing the `#`:")
        text = _moved(text, one, one.candidates[0].place)
    else:
        yield "  " + _("as it was:")
    yield from text.rstrip("\n").split("\n")


def state_text(one: Diagnosis) -> str:
    """One word or two on an edit's state."""
    return {
        OK: _("fits as it is"),
        MOVED: _("found again"),
        "unsure": _("not sure"),
        "ambiguous": _("several matches"),
        "upstream": _("already upstream"),
        GONE: _("no candidate"),
    }[one.state]


def candidate_text(one: Candidate) -> str:
    """The candidate on one line: score, what differs, where, and the code there."""
    kinds = ", ".join(one.kinds)
    code = " ".join(one.code.split())[:100]
    return f"{one.score:.2f} ({kinds}) {one.place.file}:{one.line} {one.place.symbol}: {code}"


def _requirements(recipe: Recipe, view: View) -> tuple[list[int], tuple[str, ...]]:
    """Which of the recipe's `requires` hold on the tree, by their number; and the others in words."""
    kept, dropped = [], []
    for number, need in enumerate(recipe.requires):
        if holds(view.bases, need.file, need.symbol, need.has):
            kept.append(number)
        else:
            dropped.append(f"{need.file}: {need.symbol or need.has or _('the file')}")
    return kept, tuple(dropped)


def _head(text: str, name: str, version: Version | None, kept: list[int]) -> str:
    needs = items(text, "requires")
    if len(kept) < len(needs):
        text = without_key(text, "requires")
        if kept:
            text += "requires:\n" + "".join(indented(needs[number].text) for number in kept)
    text = without_key(with_key(text, "recipe", name), "verified")
    return with_key(text, "versions", f"=={version}") if version is not None else text


def _about(item: Item, by_id: Mapping[str, Diagnosis]) -> bool:
    return all(name in by_id for name in item.values["edits"])


def _to_adapt(item: Item) -> str:
    return _("TODO an example of edits that have moved or are missing; as it was:") + "\n" + item.text


def _still_true(item: Item, by_id: Mapping[str, Diagnosis]) -> bool:
    """Whether all edits of an example stand as they were, or only in another file."""
    found = [by_id[name] for name in item.values["edits"]]
    return all(one.stands is not None and replace(one.stands, file=one.place.file) == one.place for one in found)


def _tried(recipe: Recipe, text: str, view: View, version: Version | None) -> ProbePatchError | None:
    """Read the mended recipe, plan it on the tree, compile what comes out; what fails is given back."""
    with tempfile.TemporaryDirectory(prefix="probepatch-") as folder:
        path = Path(folder, "recipe.yaml")
        path.write_text(text, "utf-8")
        beside = recipe.path.parent / "payloads"
        if beside.is_dir() and beside != PAYLOADS:
            Path(folder, "payloads").symlink_to(beside.resolve(), target_is_directory=True)
        try:
            planned = plan_edits([load_recipe(path)], view.bases, version=version)
            files = [(file, view.bases.read(file), edits) for file, edits in planned.items()]
            check([(file, base, render(base or b"", edits)) for file, base, edits in files])
        except ProbePatchError as error:
            return error
    return None
