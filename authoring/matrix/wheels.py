"""Wheels by name and version: from folders, from a cache, else through pip. They are read in place and never installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from codemods.errors import RefusedError, UsageError
from locales import _

FOLDER = "PROBEPATCH_WHEELS"
_NAMED = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*==\s*(.+)")
_HARMLESS = ("--quiet", "--no-input", "--disable-pip-version-check", "--retries=1", "--no-deps", "--only-binary=:all:")


class NoWheelError(RefusedError):
    """The wheel is in none of the folders and could not be downloaded."""


def cache() -> Path:
    """The folder of downloaded wheels: the one that PROBEPATCH_WHEELS names, else one of the user's caches."""
    own = os.environ.get(FOLDER)
    if own:
        return Path(own)
    apple = Path.home() / "Library" / "Caches" if sys.platform == "darwin" else Path.home() / ".cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or apple) / "probepatch" / "wheels"


def find(wishes: Iterable[str], folders: Sequence[Path]) -> list[Path]:
    """The wheels of ``NAME==VERSION,VERSION`` or of a path. Raises UsageError, NoWheelError."""
    return [path for wish in wishes for path in _found(wish, folders)]


def _found(wish: str, folders: Sequence[Path]) -> Iterator[Path]:
    if wish.endswith(".whl") or os.sep in wish:
        path = Path(os.path.abspath(wish))
        if not path.is_file():
            raise UsageError(_("there is no wheel {path}").format(path=wish))
        yield path
        return
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(_("{path} is no folder").format(path=folder))
    named = _NAMED.fullmatch(wish.strip())
    if named is None:
        raise UsageError(
            _("`{wish}` names no wheels").format(wish=wish),
            todo=_("NAME==VERSION,VERSION, or the path of a .whl file"),
        )
    for text in named.group(2).split(","):
        try:
            version = Version(text.strip().removeprefix("=="))
        except InvalidVersion as error:
            raise UsageError(_("`{value}` is no version").format(value=text.strip())) from error
        yield _one(named.group(1), version, folders)


def _one(name: str, version: Version, folders: Sequence[Path]) -> Path:
    for folder in (*folders, cache()):
        for path in sorted(folder.glob("*.whl")):
            if _is(path, name, version):
                return Path(os.path.abspath(path))
    return _download(name, version, cache())


def _is(path: Path, name: str, version: Version) -> bool:
    try:
        theirs, found, _build, _tags = parse_wheel_filename(path.name)
    except (InvalidWheelFilename, InvalidVersion):
        return False
    return theirs == canonicalize_name(name) and found == version


def _download(name: str, version: Version, into: Path) -> Path:
    """One wheel from wherever pip is set to look; it appears in the cache when it is complete."""
    wanted = f"{name}=={version}"
    try:
        into.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=into, prefix=".download-") as folder:
            command = [sys.executable, "-m", "pip", "download", *_HARMLESS, "--dest", folder, wanted]
            own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
            done = subprocess.run(command, cwd=folder, env=own, capture_output=True, check=False)
            found = sorted(Path(folder).glob("*.whl"))
            if done.returncode or not found:
                said = done.stderr.decode("utf-8", "replace").strip().splitlines()
                raise _no_wheel(wanted, said[-1] if said else None)
            return found[0].replace(into.absolute() / found[0].name)
    except OSError as error:
        raise _no_wheel(wanted, str(error)) from error


def _no_wheel(wanted: str, why: str | None) -> NoWheelError:
    return NoWheelError(
        _("there is no wheel {wanted} here, and pip cannot get one").format(wanted=wanted),
        why=why,
        todo=_("--wheels-dir names a folder that holds it"),
    )
