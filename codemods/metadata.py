"""What the metadata beside a package says of its version: ``*.dist-info``, ``*.egg-info``, the ``PKG-INFO`` of an sdist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from packaging.utils import canonicalize_name

_MOST_BYTES = 1 << 20
_FIELD = re.compile(rb"^(Name|Version):[ \t]*([^\r\n]{1,200})", re.MULTILINE)
_UNSET = "0.0.0"  # what build tools write where nobody stated a version


def stated_versions(import_root: Path, package: str) -> Iterator[tuple[str, str]]:
    """Versions (not yet checked) with the file that states each, those of the package's own name first.

    A distribution counts when it has the package's name or lists it; the ``PKG-INFO`` beside (or, in a layout with ``src/``,
    above) the package is its sdist's.
    """
    found = [item for folder in _folders(import_root) for item in _distributions(folder, package)]
    yield from [item[:2] for item in sorted(found, key=lambda item: not item[2])]
    for folder in (import_root, import_root.parent):
        version = _fields(folder / "PKG-INFO").get("Version", _UNSET)
        if version != _UNSET:
            yield version, "PKG-INFO"


def _folders(import_root: Path) -> tuple[Path, ...]:
    """Where metadata may be: beside the package; for an unpacked wheel's ``NAME.data/purelib`` beside the ``NAME.data``."""
    unpacked = import_root.parent.suffix == ".data"
    return (import_root, import_root.parent.parent) if unpacked else (import_root,)


def _distributions(folder: Path, package: str) -> Iterator[tuple[str, str, bool]]:
    """(version, file, whether the distribution has the package's name) of those that hold the package."""
    for info in sorted((*folder.glob("*.dist-info"), *folder.glob("*.egg-info"))):
        name, version, file = _read(info)
        named = canonicalize_name(name or info.stem.partition("-")[0]) == canonicalize_name(package)
        if version not in ("", _UNSET) and (named or _lists(info, package)):
            yield version, file, named


def _read(info: Path) -> tuple[str, str, str]:
    """Name, version and the file that says so; a folder without a readable file says it by its own name."""
    for inner in ("METADATA", "PKG-INFO") if info.is_dir() else ("",):
        fields = _fields(info / inner)
        if "Version" in fields:
            return fields.get("Name", ""), fields["Version"], f"{info.name}/{inner}".rstrip("/")
    return "", info.stem.partition("-")[2] if info.suffix == ".dist-info" else "", info.name


def _fields(path: Path) -> dict[str, str]:
    """The headers Name and Version, each as it stands first; a description below may hold such lines, too."""
    found: dict[str, str] = {}
    for key, value in _FIELD.findall(_head(path)):
        found.setdefault(key.decode(), value.decode("utf-8", "replace").strip())
    return found


def _lists(info: Path, package: str) -> bool:
    if package.encode() in _head(info / "top_level.txt").split():
        return True
    listed = rb"^(?:[^/,\n]+\.data/(?:pure|plat)lib/)?%b/__init__\.py," % re.escape(package.encode())
    return re.search(listed, _head(info / "RECORD"), re.MULTILINE) is not None


def _head(path: Path) -> bytes:
    """The beginning of a regular file; nothing where there is none that can be read."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as opened:
            return opened.read(_MOST_BYTES)
    except OSError:
        return b""
