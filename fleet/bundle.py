"""probepatch with all that it imports, as one archive: what a node gets, so that nothing has to be installed there."""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from codemods.errors import UsageError
from fleet.node import MARK, abi
from locales import _

_ROOT = Path(__file__).resolve().parent.parent
_OWN = ("commands", "fleet", "stages", "authoring", "codemods", "patch_ledger", "recipes", "locales")
_FILES = ("probepatch.py", "cli.py")
_LEFT_OUT = ("__pycache__", ".pyc", ".pot", ".po", "/tests/", "/test/")
_FOR_SCREENS = {"rich", "pygments", "markdown-it-py", "mdurl"}
"""What draws on a terminal; a node answers in JSON."""


def own_path(number: int, recipe: Path) -> str:
    """Where the recipe file of this number lies on a node."""
    return f"own/{number}/{recipe.name}"


def make_bundle(recipes: Sequence[Path] = ()) -> bytes:
    """The archive, as bytes of a zip file, with recipe files of one's own and what lies beside them. Raises UsageError."""
    files = dict(_everything())
    for number, recipe in enumerate(recipes):
        for path in (*recipe.parent.glob("*.yaml"), *recipe.parent.glob("payloads/**/*.py")):
            files[f"own/{number}/{path.relative_to(recipe.parent).as_posix()}"] = path
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, path in sorted(files.items()):
            archive.write(path, name)
        if not (_ROOT / MARK).is_file():  # else it came from an unpacked bundle, which this is a copy of
            archive.writestr(MARK, abi())
    return held.getvalue()


def _everything() -> Iterator[tuple[str, Path]]:
    if (_ROOT / MARK).is_file():
        yield from _below(_ROOT, _ROOT)
        return
    for name in _FILES:
        yield name, _ROOT / name
    for room in _OWN:
        yield from _below(_ROOT / room, _ROOT)
    for needed in _needed("probepatch"):
        yield from _files_of(needed)


def _below(folder: Path, root: Path) -> Iterator[tuple[str, Path]]:
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            path = Path(where, name)
            inside = path.relative_to(root).as_posix()
            if not any(part in f"/{inside}" for part in _LEFT_OUT):
                yield inside, path


def _needed(name: str) -> list[Distribution]:
    """The distributions that ``name`` needs, without extras, each once. Raises UsageError where it was not installed."""
    from packaging.requirements import Requirement

    try:
        todo = list(distribution(name).requires or ())
    except PackageNotFoundError as error:
        raise UsageError(
            _("probepatch was not installed through pip, so what it needs on a node is not known"),
            todo=_("`pip install 'probepatch[ray]'`, or `pip install -e '.[ray]'` in its checkout"),
        ) from error
    found: dict[str, Distribution] = {}
    while todo:
        wanted = Requirement(todo.pop())
        key = re.sub(r"[-_.]+", "-", wanted.name).lower()
        if (
            key in found
            or key in _FOR_SCREENS
            or (wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}))
        ):
            continue
        found[key] = _installed(wanted.name)
        todo += found[key].requires or ()
    return list(found.values())


def _installed(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError as error:
        raise UsageError(
            _("{name}, which probepatch needs, is not installed here").format(name=name),
            todo=_("`pip install {name}`").format(name=name),
        ) from error


def _files_of(needed: Distribution) -> Iterator[tuple[str, Path]]:
    for file in needed.files or ():
        name, path = file.as_posix(), Path(str(needed.locate_file(file)))
        if not name.startswith(("..", "/")) and not any(part in f"/{name}" for part in _LEFT_OUT) and path.is_file():
            yield name, path
