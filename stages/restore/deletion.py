"""Deleting in the artefact root, and nowhere else: what may go is checked before anything of the restoring is done.

A root that is a user's folder, or has to do with a checkout, is no folder of the capture's own, whatever the card says; and
whatever a folder holds that is not the capture's (a repository, a ledger, the task card, another file system) stays.
"""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from codemods.errors import UsageError
from codemods.gitrepo import find_git_dir
from locales import _
from patch_ledger.tree import DOT_FOLDER
from stages.card.card import Card
from stages.card.evidence import evidence
from stages.card.order import INSTRUMENT

_SYSTEM = ("bin", "boot", "dev", "home", "lib", "lib32", "lib64", "opt", "root", "run", "sbin", "srv", "tmp")
_SHARED = ("/home", "/Users", "/media", "/mnt", "/usr", "/var", "/run/media", "/proc", "/sys", "/dev", "/etc")
"""Folders whose own folders are somebody's home, a disk, or the system's."""
_KEPT = (".git", DOT_FOLDER)


class NotOursError(UsageError):
    """It may not be this capture's own, and is not deleted."""


def expect_ours(card: Card, paths: Sequence[Path], *, by_name: bool = False) -> None:
    """Whether all of them may be deleted. What the capture made is known ``by_name``, and may lie below a checkout or in a
    repository (a work folder with its scripts, say), which a folder that somebody named may not. Raises NotOursError before
    anything is deleted."""
    if not paths:
        return
    named = card.fact("artifacts")
    root = _root(card, named, by_name)
    for path in paths:
        real = Path(os.path.realpath(path.parent)) / path.name
        if root not in real.parents or path.name in ("", ".", ".."):
            raise NotOursError(
                _("{path} is not in the artefact root of this task, and is not deleted").format(path=path),
                todo=_("only folders below {root} are this capture's own").format(root=named),
            )
        if why := _foreign(real, card):
            raise NotOursError(_("{path} is not deleted").format(path=path), why=why, todo=_("delete it by hand"))


def _root(card: Card, named: str | None, by_name: bool) -> Path:
    """The artefact root, where it can be one."""
    if not named or not named.startswith("/") or "\0" in named:
        raise NotOursError(
            _("the artefact root of this task is unknown, and nothing is deleted"),
            todo=_("`probepatch task set artifacts=/…` with a folder of its own"),
        )
    root = Path(os.path.realpath(named))
    if why := _no_root(root, card, by_name):
        raise NotOursError(
            _("{root} is no folder of this capture's own, and nothing in it is deleted").format(root=named),
            why=why,
            todo=_("delete what is left by hand, or `probepatch task set artifacts=/…` with a folder of its own"),
        )
    return root


def _no_root(root: Path, card: Card, by_name: bool) -> str:
    """Why it cannot be one; empty where it can."""
    system = {Path("/"), *(Path("/") / name for name in _SYSTEM), *map(Path, _SHARED)}
    if root in system or str(root.parent) in _SHARED or any(root == home or root in home.parents for home in _homes()):
        return _("it is a folder of the system, or somebody's home")
    model = _local(card.fact("model.path"))
    if model is not None and (root == model or model in root.parents):
        return _("it is in the folder of the weights, {place}").format(place=model)
    for tree in _trees(card):
        if root == tree or root in tree.parents or (tree in root.parents and not by_name):
            return _("{tree} has to do with it, which the capture works with").format(tree=tree)
    repo = find_git_dir(root) if not by_name else None
    return _("it is in the repository {place}").format(place=repo.top) if repo is not None else ""


def _homes() -> Iterator[Path]:
    for name in (os.environ.get("HOME"), os.environ.get("SUDO_USER") and f"/home/{os.environ['SUDO_USER']}"):
        if name:
            yield Path(os.path.realpath(name))
    with suppress(KeyError):
        yield Path(os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir))


def _trees(card: Card) -> Iterator[Path]:
    """Checkouts, as far as they are on this machine."""
    names = [card.fact(name) for name in ("train.checkout", "infer.checkout")]
    names += [one["checkout"] for one in card.data["edits"]]
    made = evidence(card, INSTRUMENT)
    sides = made.result.get("sides") if made is not None else None
    for side in sides.values() if isinstance(sides, dict) else ():
        names.append(side.get("checkout") if isinstance(side, dict) else None)
    yield from filter(None, map(_local, names))


def _local(name: object) -> Path | None:
    fit = isinstance(name, str) and name.startswith("/") and "\0" not in name and os.path.lexists(name)
    return Path(os.path.realpath(str(name))) if fit else None


def _foreign(path: Path, card: Card) -> str:
    """What in it is not the capture's own; empty where all is. Links are not followed: a link goes, what it leads to stays."""
    if path.is_symlink() or not path.is_dir():
        return _("it is the task card") if card.path is not None and path == _real(card.path) else ""
    held = {_real(card.path): _("the task card")} if card.path is not None else {}
    if (model := _local(card.fact("model.path"))) is not None:
        held[model] = _("the folder of the weights")
    held[_real(Path.cwd())] = _("the folder that this command was called in")
    for place, what in held.items():
        if path == place or path in place.parents:
            return _("{what} is in it").format(what=what)
    device = path.lstat().st_dev
    for folder, folders, names in os.walk(path):
        for name in (*folders, *names):
            if name in _KEPT:
                return _("{place} is a repository, or has a ledger").format(place=folder)
        if os.lstat(folder).st_dev != device or os.path.ismount(folder):
            return _("{place} is on another file system").format(place=folder)
    return ""


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def delete(paths: Iterable[Path]) -> tuple[list[Path], list[str]]:
    """Of what `expect_ours` let through: what is gone, and what could not be deleted, and why."""
    gone, failed = [], []
    for path in paths:
        try:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif os.path.lexists(path):
                path.unlink()
        except OSError as error:
            failed.append(_("{path} cannot be deleted: {why}").format(path=error.filename or path, why=error.strerror))
        else:
            gone.append(path)
    return gone, failed
