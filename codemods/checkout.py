"""The tree that is patched: which folder it is, who owns it, and where the framework's package stands in it.

A checkout is a git work tree (a linked worktree or a submodule too), a folder below one, an unpacked sdist or wheel,
site-packages, or the package folder itself. Everything here reads; git is started only when its index cannot be read
directly.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from codemods.errors import FindingError, RefusedError, UsageError
from codemods.gitrepo import GitDir, GitMissing, find_git_dir, tracks
from locales import _

PACKAGES = ("verl", "slime", "vime", "vllm", "vllm_ascend", "sglang")
"""Top-level packages of the frameworks that people patch."""

LAYOUTS = ("", "src", "python")
"""Where a checkout's import root may be."""
WHEEL_LAYOUTS = ("*.data/purelib", "*.data/platlib")
"""Where it may be in an unpacked wheel, besides."""
INSTALLED = ("site-packages", "dist-packages")


class NoCheckoutError(UsageError):
    """The path is missing, is a file, or cannot be read as a folder."""


class NoFrameworkError(FindingError):
    """A folder without a known framework package."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A checkout. All paths are real (symlinks resolved).

    ``root``: ledger paths are relative to it.
    ``git_dir``: git's own folder of this work tree when git tracks the package, else None.
    ``import_root``: the folder that holds the framework's package, at or below ``root``; recipe paths start there.
    ``prefix``: ``import_root`` relative to ``root``, with ``/``; "" when they are equal.
    ``given``: what the user typed.
    ``packages``: the framework packages found in ``import_root``.
    ``notes``: sentences that the user should see.
    """

    root: Path
    git_dir: Path | None
    import_root: Path
    prefix: str
    given: str
    packages: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def git(self) -> GitDir | None:
        """The work tree, for questions to git; None when git does not own the checkout."""
        return GitDir(self.root, self.git_dir) if self.git_dir is not None else None

    def path(self, recipe_path: str) -> str:
        """A recipe's path (``verl/workers/x.py``) relative to ``root``."""
        return f"{self.prefix}/{recipe_path}" if self.prefix else recipe_path


def open_tree(path: Path, packages: Iterable[str] = PACKAGES) -> Tree:
    """The checkout at ``path``.

    ``packages`` are the top-level packages to look for; none at all means that any folder will do and is its own import
    root. Raises NoCheckoutError, NoFrameworkError, or RefusedError for a folder without read permission.
    """
    folder = _real_folder(path)
    wanted = tuple(packages)
    import_root, found = _find_packages(folder, wanted) if wanted else (folder, ())
    owner, notes = _owner(import_root, found)
    root = owner.top if owner is not None else import_root
    prefix = import_root.relative_to(root).as_posix()
    git_dir = owner.git_dir if owner is not None else None
    return Tree(root, git_dir, import_root, "" if prefix == "." else prefix, str(path), found, notes)


def _real_folder(path: Path) -> Path:
    try:
        real = path.resolve(strict=True)
        if not real.is_dir():
            raise NoCheckoutError(
                _("{path} is a file, not a folder").format(path=path),
                todo=_("name the checkout: the folder that holds the framework's package"),
            )
        os.scandir(real).close()
    except FileNotFoundError as error:
        raise NoCheckoutError(_("{path} does not exist").format(path=path)) from error
    except PermissionError as error:
        raise RefusedError(_("{path} cannot be read").format(path=path), why=error.strerror) from error
    except (OSError, RuntimeError, ValueError) as error:  # a loop of symlinks, a name too long, a NUL
        raise NoCheckoutError(_("{path} is not a usable path").format(path=repr(str(path))), why=str(error)) from error
    return real


def _find_packages(folder: Path, wanted: tuple[str, ...]) -> tuple[Path, tuple[str, ...]]:
    """The import root for ``folder`` and the wanted packages in it."""
    inside = _outermost_package(folder, wanted)
    if inside is not None:
        return inside.parent, (inside.name,)
    repo = find_git_dir(folder)
    limit = repo.top if repo is not None and folder.name not in INSTALLED else folder
    for base in (folder, *folder.parents):
        for root in import_roots(base):
            found = tuple(name for name in wanted if _is_package(root / name))
            if found:
                return _through_symlink(root, found), found
        if base == limit:
            break
    raise NoFrameworkError(
        _("no framework package in {path}").format(path=folder),
        why=_("looked for {names} in it, in src/ and in python/").format(names=", ".join(wanted)),
        todo=_(
            "name the folder that holds the package, or the package folder itself; for another framework `probepatch recipe"
            " new` begins a recipe, and --recipe-file takes it"
        ),
    )


def import_roots(folder: Path) -> Iterator[Path]:
    """Where the import root of the checkout ``folder`` may be; not all of them are there."""
    for layout in LAYOUTS:
        yield folder / layout
    for layout in WHEEL_LAYOUTS:
        yield from sorted(folder.glob(layout))


def python_files(root: Path) -> list[str]:
    """Every ``.py`` file below ``root``, with ``/``; no symbolic link is followed."""
    found = []
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if not name.startswith(".") and name != "__pycache__")
        inner = Path(folder).relative_to(root)
        found += [(inner / name).as_posix() for name in sorted(files) if name.endswith(".py")]
    return found


def _outermost_package(folder: Path, wanted: tuple[str, ...]) -> Path | None:
    """The package that ``folder`` is, or lies in."""
    for path in (*reversed(folder.parents), folder):
        if path.name in wanted and _is_package(path) and not _is_package(path / path.name):
            return path
    return None


def _is_package(folder: Path) -> bool:
    return (folder / "__init__.py").is_file()


def _through_symlink(import_root: Path, found: tuple[str, ...]) -> Path:
    """The folder in which the packages really stand: a package linked into site-packages is patched where it lives."""
    real = {(import_root / name).resolve().parent for name in found if (import_root / name).resolve().name == name}
    return real.pop() if len(real) == 1 else import_root


def _owner(import_root: Path, found: tuple[str, ...]) -> tuple[GitDir | None, tuple[str, ...]]:
    """The work tree when git tracks the packages, and what to tell the user when git was needed and could not
    answer."""
    repo = find_git_dir(import_root)
    if repo is None:
        return None, ()
    try:
        owned = any(tracks(repo, import_root / name, "__init__.py") for name in found or (".",))
    except GitMissing as error:
        note = _("{path} has a git directory, but git could not be asked ({reason}); taken as a plain folder")
        return None, (note.format(path=repo.top, reason=error),)
    return (repo if owned else None), ()
