"""Trees to read from: a folder, a commit's git objects, a wheel. None of them is unpacked or written."""

from __future__ import annotations

import hashlib
import lzma
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

from codemods.checkout import LAYOUTS
from codemods.errors import FindingError, UsageError
from codemods.gitrepo import GitDir, GitMissing, blobs, find_git_dir, listing
from locales import _

LARGEST = 64 << 20  # bytes of one source file
_SKIPPED = {".git", "node_modules", "__pycache__"}
_INSTALLED = re.compile(r"^[^/]+\.data/(purelib|platlib)/")  # a wheel's folders that go where its other files go
_BROKEN_ZIP = (
    OSError,
    ValueError,  # a name that is no UTF-8
    RuntimeError,  # encrypted
    EOFError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)
"""What ``zipfile`` raises for files that were truncated, damaged or made to be so."""


class TreeError(FindingError):
    """The tree cannot be read."""


class SourceTree(Protocol):
    """Python files by their path from the import root, with ``/``."""

    @property
    def label(self) -> str:
        """What people call it: a version, a tag, a folder."""

    def files(self) -> tuple[str, ...]:
        """Every ``.py`` file, sorted."""

    def read(self, file: str) -> bytes | None:
        """A file's bytes (not only of ``.py`` files); None when it is not there."""

    def key(self, file: str) -> str | None:
        """Equal for equal bytes, within trees of one kind; None when the file is not there. Raises TreeError."""


@dataclass(frozen=True)
class FolderTree:
    """The import root of a checkout; symbolic links that lead out of it are not followed."""

    root: Path
    label: str

    @cached_property
    def _files(self) -> tuple[str, ...]:
        found = []
        for folder, names, files in os.walk(self.root):
            names[:] = sorted(name for name in names if name not in _SKIPPED)
            inner = Path(folder).relative_to(self.root)
            found += [(inner / name).as_posix() for name in files if name.endswith(".py")]
        return tuple(sorted(found))

    def files(self) -> tuple[str, ...]:
        return self._files

    def read(self, file: str) -> bytes | None:
        path = self.root / file
        try:
            if not path.resolve().is_relative_to(self.root.resolve()) or not path.is_file():
                return None
            _check_size(path.stat().st_size, file)
            return path.read_bytes()
        except (OSError, ValueError) as error:
            raise TreeError(_("{file} cannot be read").format(file=file), where=str(path), why=str(error)) from error

    def key(self, file: str) -> str | None:
        data = self.read(file)
        return None if data is None else hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class GitTree:
    """A commit's tree, read from git's objects; ``blob`` ids by path from the import root."""

    repo: GitDir
    label: str
    ids: Mapping[str, str]
    known: dict[str, bytes] = field(default_factory=dict, compare=False)

    def files(self) -> tuple[str, ...]:
        return tuple(sorted(file for file in self.ids if file.endswith(".py")))

    def read(self, file: str) -> bytes | None:
        blob = self.ids.get(file)
        if blob is None:
            return None
        self.load([file])
        _check_size(len(self.known[blob]), file)
        return self.known[blob]

    def load(self, files: Sequence[str]) -> None:
        """Read many files with one question to git. Raises TreeError."""
        wanted = [self.ids[file] for file in files if file in self.ids and self.ids[file] not in self.known]
        try:
            self.known.update(blobs(self.repo, wanted) if wanted else {})
        except GitMissing as error:
            what = _("{file} cannot be read").format(file=next(iter(files), ""))
            raise TreeError(what, where=self.label, why=str(error)) from error

    def key(self, file: str) -> str | None:
        return self.ids.get(file)


@dataclass(frozen=True)
class WheelTree:
    """A wheel (or another zip file), read in place."""

    path: Path
    label: str

    @cached_property
    def _zip(self) -> zipfile.ZipFile:
        if not self.path.is_file():
            raise TreeError(_("{path} is no regular file").format(path=self.path))
        try:
            return zipfile.ZipFile(self.path)
        except _BROKEN_ZIP as error:
            raise TreeError(_("{path} is no readable wheel").format(path=self.path), why=str(error)) from error

    @cached_property
    def _members(self) -> Mapping[str, zipfile.ZipInfo]:
        return {_INSTALLED.sub("", item.filename, 1): item for item in self._zip.infolist() if not item.is_dir()}

    def files(self) -> tuple[str, ...]:
        return tuple(sorted(name for name in self._members if name.endswith(".py")))

    def read(self, file: str) -> bytes | None:
        member = self._members.get(file)
        if member is None:
            return None
        try:
            _check_size(member.file_size, file)
            return self._zip.read(member)
        except _BROKEN_ZIP as error:
            raise TreeError(
                _("{file} cannot be read").format(file=file), where=str(self.path), why=str(error)
            ) from error

    def key(self, file: str) -> str | None:
        data = self.read(file)  # what the archive says of its own bytes proves nothing
        return None if data is None else hashlib.sha256(data).hexdigest()


def _check_size(size: int, file: str) -> None:
    if size > LARGEST:
        raise TreeError(_("{file} is larger than {size} bytes").format(file=file, size=LARGEST))


def open_repository(path: Path) -> GitDir:
    """The repository at ``path``: a work tree, or a bare one. Raises UsageError."""
    real = Path(os.path.realpath(path))
    if (real / "HEAD").is_file() and (real / "objects").is_dir():
        return GitDir(real, real)
    found = find_git_dir(real) if real.is_dir() else None
    if found is None:
        raise UsageError(_("{path} is no git repository").format(path=path))
    return found


def git_tree(repo: GitDir, ref: str, package: str, label: str = "") -> GitTree | None:
    """The tree of ``ref`` from the folder that holds ``package`` on; None where there is none. Raises TreeError."""
    try:
        ids = listing(repo, ref)
    except GitMissing as error:
        raise TreeError(_("git cannot list {ref}").format(ref=ref), where=str(repo.git_dir), why=str(error)) from error
    for layout in LAYOUTS:
        head = f"{layout}/" if layout else ""
        if f"{head}{package}/__init__.py" in ids:
            inner = {path.removeprefix(head): blob for path, blob in ids.items() if path.startswith(head)}
            return GitTree(repo, label or ref, inner)
    return None


def wheel_tree(path: Path, package: str, label: str = "") -> WheelTree | None:
    """The wheel at ``path``; None where ``package`` is not in it. Raises TreeError."""
    tree = WheelTree(path, label or path.name)
    return tree if f"{package}/__init__.py" in tree.files() else None
