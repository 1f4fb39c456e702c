"""``probepatch recipe check FILE…``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codemods.errors import ProbePatchError
from commands.arguments import file_path
from commands.output import json_option, print_error, print_json, say
from locales import _, ngettext

if TYPE_CHECKING:
    from codemods.catalogue import Framework
    from codemods.recipe import Recipe

FRAMEWORK = "framework.yaml"
_LOOKED_AT = 1_000_000  # bytes: no recipe is larger
_TOP_KEY = re.compile(r"^(recipe|edits|fragment|version_files)[ \t]*:", re.MULTILINE)


@dataclass(frozen=True)
class _Checked:
    """A valid file: a recipe, or a framework's description; ``notes`` are what does not go together with its neighbour."""

    recipe: Recipe | None = None
    framework: Framework | None = None
    notes: tuple[str, ...] = ()


@click.command(help=_("Check recipe files, and framework.yaml: keys, patterns, code, payloads. Every file is checked."))
@click.argument("files", nargs=-1, required=True, type=file_path)
@json_option
def command(files: tuple[Path, ...], as_json: bool) -> int:
    """Exit code 4 when one of the files is not valid."""
    results, worst = [], 0
    for path in files:
        try:
            checked = _check(path)
        except ProbePatchError as error:
            worst = max(worst, error.exit_code)
            results.append(_as_json(path, _Checked(), error))
            if not as_json:
                print_error(error)
            continue
        results.append(_as_json(path, checked, None))
        if not as_json:
            say(_sentence(path, checked), "good")
            for note in checked.notes:
                say(f"  {note}", "note")
    if as_json:
        print_json({"files": results})
    return worst


def _check(path: Path) -> _Checked:
    """Raises RecipeError."""
    if _describes_framework(path):
        return _Checked(framework=_framework(path))
    from codemods.recipe_reader import load_recipe

    recipe = load_recipe(path)
    return _Checked(recipe=recipe, notes=tuple(_against_neighbour(recipe, path.parent / FRAMEWORK)))


def _describes_framework(path: Path) -> bool:
    """By its name, or by its keys where the name is another one."""
    if path.name == FRAMEWORK:
        return True
    if not path.is_file():
        return False  # the recipe's reader tells what is wrong with it
    try:
        with path.open("rb") as file:
            keys = set(_TOP_KEY.findall(file.read(_LOOKED_AT).decode("utf-8", "replace")))
    except (OSError, ValueError):
        return False
    return keys == {"version_files"}


def _framework(path: Path) -> Framework:
    """The description with its probes' patterns tried, too. Raises RecipeError."""
    from codemods.catalogue import load_framework
    from codemods.errors import InvalidError
    from codemods.pattern import compile_statements
    from codemods.yamlfile import RecipeError

    framework = load_framework(path)
    for probe in framework.probes:
        try:
            compile_statements(probe.has or "pass")
        except InvalidError as error:
            raise RecipeError(error.what, where=f"{path}: {probe.file}", why=error.why, todo=error.todo) from error
    return framework


def _against_neighbour(recipe: Recipe, beside: Path) -> list[str]:
    """What the framework.yaml beside a recipe says otherwise than the recipe."""
    if not beside.is_file():
        return []
    try:
        framework = _framework(beside)
    except ProbePatchError as error:
        text = _("{path} beside it is not valid: {what}")
        return [text.format(path=beside, what=error.what)]
    if framework.name != recipe.framework:
        text = _(
            "{path} describes the framework `{theirs}`, this recipe is for `{ours}`: on a tree with `{package}` it is refused"
        )
        return [text.format(path=beside, theirs=framework.name, ours=recipe.framework, package=framework.package)]
    files = [place.file for edit in recipe.edits for place in edit.places]
    if not any(file.startswith(f"{framework.package}/") for file in files):
        text = _(
            "{path} names the package `{package}`, and no edit is in it: {file}, say, is looked for beside the package"
        )
        return [text.format(path=beside, package=framework.package, file=files[0])]
    return []


def _sentence(path: Path, checked: _Checked) -> str:
    if checked.recipe is not None:
        text = _("{path}: {recipe} is valid, edits: {count}")
        return text.format(path=path, recipe=checked.recipe.id, count=len(checked.recipe.edits))
    framework = checked.framework
    assert framework is not None
    stated = ", ".join(framework.version_files) or _("no file")
    probes = ngettext("{n} probe", "{n} probes", len(framework.probes)).format(n=len(framework.probes))
    text = _("{path}: describes the framework {name}: package {package}, its version from {stated}, {probes}")
    return text.format(path=path, name=framework.name, package=framework.package, stated=stated, probes=probes)


def _as_json(path: Path, checked: _Checked, error: ProbePatchError | None) -> dict[str, Any]:
    recipe, framework = checked.recipe, checked.framework
    return {
        "path": str(path),
        "valid": error is None,
        "recipe": recipe.id if recipe is not None else None,
        "edits": len(recipe.edits) if recipe is not None else None,
        "framework": framework.name if framework is not None else None,
        "notes": list(checked.notes),
        "error": error.as_json() if error is not None else None,
    }
