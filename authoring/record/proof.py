"""The proof of a recorded recipe: it is read from its YAML, planned on the pristine bytes, and compared byte for byte."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.version import Version

from authoring.record.markers import without_markers
from authoring.record.parameters import Parametrised
from codemods.errors import ProbePatchError, RefusedError
from codemods.planner import plan_edits
from codemods.recipe import Recipe
from codemods.recipe_reader import load_recipe
from codemods.splice import render
from codemods.target import Bases
from locales import _

EQUAL, BUT_MARKERS, BUT_PARAMETERS, DIFFERENT = "equal", "equal-but-markers", "equal-but-parameters", "different"


@dataclass(frozen=True)
class Proof:
    """``made`` are the bytes that the recipe gives, by file; ``verdicts`` how they compare with the hand-edited ones."""

    recipe: Recipe
    made: Mapping[str, bytes]
    verdicts: Mapping[str, str]


def read_recipe(yaml: str, payloads: Mapping[str, bytes]) -> Recipe:
    """The recipe as the reader reads it. Raises RecipeError, and RefusedError when there is no room for a temporary folder."""
    try:
        folder = tempfile.TemporaryDirectory(prefix="probepatch-record-")
    except OSError as error:
        raise RefusedError(_("no temporary folder can be made"), why=str(error)) from error
    with folder as name:
        path = Path(name, "recorded.yaml")
        path.write_bytes(yaml.encode("utf-8"))
        for payload, data in payloads.items():
            file = Path(name, "payloads", payload)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        return load_recipe(path)


def made_by(recipe: Recipe, bases: Mapping[str, bytes], version: Version | None) -> dict[str, bytes]:
    """What the recipe makes of the pristine files. Raises PlanError."""
    planned = plan_edits([recipe], Bases(bases.get), version=version)
    return {file: render(bases.get(file, b""), edits) for file, edits in planned.items()}


def prove(
    recipe: Recipe,
    bases: Mapping[str, bytes],
    edited: Mapping[str, bytes],
    version: Version | None,
    asking: Parametrised | None = None,
) -> Proof:
    """``edited`` are the files as they stand in the tree, new ones included; ``asking`` what was made parameters."""
    made = _made(recipe, bases, version)
    verdicts = {file: _verdict(made.get(file), data, bases.get(file, b"")) for file, data in edited.items()}
    if asking is not None and asking.values:
        plain = replace(recipe, edits=tuple(edit for edit in recipe.edits if edit.id not in asking.added))
        literal = {file: asking.with_literals(data) for file, data in _made(plain, bases, version).items()}
        for file in (file for file in edited if verdicts[file] == DIFFERENT and file in made):
            if _verdict(literal.get(file), edited[file], bases.get(file, b"")) != DIFFERENT:
                verdicts[file] = BUT_PARAMETERS
    return Proof(recipe, made, verdicts)


def _made(recipe: Recipe, bases: Mapping[str, bytes], version: Version | None) -> Mapping[str, bytes]:
    try:
        return made_by(recipe, bases, version)
    except ProbePatchError:
        return {}


def _verdict(made: bytes | None, wanted: bytes, base: bytes) -> str:
    if made is None:
        return DIFFERENT
    if made == wanted:
        return EQUAL
    return BUT_MARKERS if without_markers(made, base) == without_markers(wanted, base) else DIFFERENT
