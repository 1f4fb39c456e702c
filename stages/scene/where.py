"""A side's tree: on this file system, or fetched as a copy of its sources through the side's prefix.

Whether it is the same file system is not told by the prefix (``conda run`` stays here, ``docker exec`` does not): the package's
own file is looked at from both sides.
"""

from __future__ import annotations

import base64
import io
import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from codemods.checkout import LAYOUTS
from codemods.errors import FindingError, RefusedError
from locales import _
from stages.sides import Side

_LARGEST = 512 << 20  # bytes of a copy, unpacked
_SENDING = 900.0  # seconds for a copy to arrive
_FIND = """
import importlib.util, os, sys
sys.path[:] = [entry for entry in sys.path if entry]  # the folder that we happen to be in is not the workers'
def root_of(folder, name):
    folder = os.path.realpath(folder)
    parts = folder.split(os.sep)
    if name in parts and os.path.isfile(os.path.join(folder, "__init__.py")):
        return os.sep.join(parts[:parts.index(name)]) or os.sep
    for layout in GIVEN["layouts"]:
        if os.path.isfile(os.path.join(folder, layout, name, "__init__.py")):
            return os.path.realpath(os.path.join(folder, layout))
def mark(root, name):
    found = os.stat(os.path.join(root, name, "__init__.py"))
    return [found.st_ino, found.st_size, found.st_mtime_ns]
def packages_in(folder):
    found = {}
    for layout in GIVEN["layouts"]:
        place = os.path.join(os.path.realpath(folder), layout)
        for name in sorted(os.listdir(place)) if os.path.isdir(place) else ():
            if os.path.isfile(os.path.join(place, name, "__init__.py")) and name not in ("tests", "docs", "examples"):
                inside = os.walk(os.path.join(place, name))
                found[name] = sum(file.endswith(".py") for _f, _n, files in inside for file in files)
    return sorted(found, key=found.get, reverse=True)
out = None
for name in GIVEN["packages"] or packages_in(GIVEN["checkout"]):
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    imported = os.path.dirname(os.path.dirname(os.path.realpath(spec.origin))) if spec and spec.origin else None
    root = root_of(GIVEN["checkout"], name) if GIVEN["checkout"] else imported
    if root:
        out = {"root": root, "package": name, "imported": imported, "mark": mark(root, name)}
        break
answer(out)
"""
_SEND = """
import base64, io, os, zipfile
root, package, held = GIVEN["root"], GIVEN["package"], io.BytesIO()
with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
    for folder, names, files in os.walk(os.path.join(root, package)):
        names[:] = sorted(n for n in names if n not in ("__pycache__", ".git", "node_modules"))
        for name in sorted(files):
            path = os.path.join(folder, name)
            if (name.endswith((".py", ".yaml", ".yml")) or name == "version") and os.path.isfile(path):
                archive.write(path, os.path.relpath(path, root))
    for name in sorted(os.listdir(root)):
        if name.startswith(package + "-") and name.endswith(".dist-info"):
            archive.writestr(name + "/METADATA", "")
answer(base64.b64encode(held.getvalue()).decode())
"""


class NoTreeError(FindingError):
    """The side has no tree of the framework where it was looked for."""


@dataclass(frozen=True)
class Tree:
    """``path`` is the import root here (a copy's own when ``copied``), ``seen`` the one that the side sees; ``imported`` the import
    root from which the side's interpreter would import the package, None when it would not."""

    path: Path
    seen: str
    package: str
    imported: str | None
    copied: bool

    @property
    def notes(self) -> tuple[str, ...]:
        out = []
        if self.imported is None:
            out.append(
                _("the side's interpreter does not find {package}: what it runs is set up elsewhere").format(
                    package=self.package
                )
            )
        elif self.imported != self.seen:
            text = _("the side's interpreter would import {package} from {theirs}, not from {ours}")
            out.append(text.format(package=self.package, theirs=self.imported, ours=self.seen))
        if self.copied:
            out.append(_("read through the side's prefix, as it is now; edits that stand there are among its lines"))
        return tuple(out)


@contextmanager
def tree_of(side: Side, checkout: str | None, packages: Sequence[str]) -> Iterator[Tree]:
    """The tree at ``checkout`` as the side sees it; without one the copy that its interpreter would import. With no ``packages``
    the largest one in the checkout. Raises NoTreeError, SideError."""
    told = side.ask(_FIND, {"checkout": checkout, "packages": list(packages), "layouts": list(LAYOUTS)})
    if told is None:
        raise NoTreeError(
            _("the {side} side has none of {packages} in {place}").format(
                side=side.name,
                packages=", ".join(packages) or _("no package"),
                place=checkout or _("its interpreter's path"),
            ),
            todo=_("`probepatch task set {side}.checkout=…` names the folder, as seen behind the prefix").format(
                side=side.name
            ),
        )
    if _same(told):
        yield Tree(Path(told["root"]), told["root"], told["package"], told["imported"], copied=False)
        return
    with TemporaryDirectory(prefix="probepatch-scene-") as folder:
        _unpack(side.ask(_SEND, told, limit=_SENDING), Path(folder))
        yield Tree(Path(folder), told["root"], told["package"], told["imported"], copied=True)


def _same(told: dict[str, Any]) -> bool:
    try:
        here = os.stat(Path(told["root"]) / told["package"] / "__init__.py")
    except (OSError, ValueError):
        return False
    return bool([here.st_ino, here.st_size, here.st_mtime_ns] == told["mark"])


def _unpack(sent: Any, folder: Path) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(base64.b64decode(sent))) as archive:
            if sum(one.file_size for one in archive.infolist()) > _LARGEST:
                raise RefusedError(_("the side's tree is larger than {size} bytes").format(size=_LARGEST))
            archive.extractall(folder)
    except (OSError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise RefusedError(_("the side's tree did not arrive whole"), why=str(error)[:200]) from error
