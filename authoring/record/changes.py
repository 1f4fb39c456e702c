"""What was changed by hand: a work tree against its HEAD, or a folder against a pristine copy. Reads, never writes."""

from __future__ import annotations

import ast
import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from authoring.trees import LARGEST, FolderTree, SourceTree, TreeError, WheelTree
from codemods.checkout import Tree, open_tree
from codemods.errors import FindingError, ProbePatchError, UsageError
from codemods.gitrepo import GitDir, GitMissing, blobs, diff_digest, listing
from codemods.nesting import syntax
from codemods.source import read_source
from locales import _, ngettext

_SKIPPED = {".git", ".probepatch", "__pycache__", "node_modules", ".venv"}
_NOTHING = hashlib.sha256().hexdigest()
_SHOWN = 5
_AT_ONCE = 500  # paths on one command line of git


class UnrecordableError(FindingError):
    """A change that no recipe can make."""


@dataclass(frozen=True)
class Changed:
    """``file`` is the path from the import root, as recipes write it; ``path`` the one in the tree, as people are told it."""

    file: str
    path: str
    base: bytes
    edited: bytes


@dataclass(frozen=True)
class Changes:
    """``added`` are new files by path; ``left`` new Python files that nobody imports or names."""

    changed: tuple[Changed, ...] = ()
    added: Mapping[str, bytes] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    findings: tuple[ProbePatchError, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """``only``: paths outside of which nothing is looked at; ``add``: new files to take along."""

    only: tuple[str, ...] = ()
    add: tuple[str, ...] = ()

    def check(self, paths: Iterable[str]) -> None:
        """Raises UsageError for a path below which there is nothing."""
        known = set(paths)
        for one in self.only:
            if one not in known and not any(path.startswith(f"{one}/") for path in known):
                raise UsageError(
                    _("there is nothing at {path} in the checkout").format(path=one),
                    todo=_("paths are relative to the checkout, with `/`"),
                )

    def holds(self, path: str) -> bool:
        return not self.only or any(path == one or path.startswith(f"{one}/") for one in self.only)


def against_head(tree: Tree, wanted: Wanted) -> Changes:
    """The work tree against HEAD. Raises UsageError without a repository, TreeError where git cannot tell."""
    repo = tree.git
    if repo is None:
        raise UsageError(
            _("{path} is not in git, so what was changed is not known").format(path=tree.given),
            todo=_("name a pristine copy with --base: a folder, or the wheel that it was installed from"),
        )
    try:
        ids = listing(repo, "HEAD")
        return _WorkTree(tree, repo, ids, wanted).changes()
    except GitMissing as error:
        raise TreeError(
            _("git cannot list {ref}").format(ref="HEAD"), where=str(repo.git_dir), why=str(error)
        ) from error


def against_base(tree: Tree, base: SourceTree, wanted: Wanted) -> Changes:
    """The Python files of the tree's packages against those of a pristine copy."""
    ours = FolderTree(tree.import_root, tree.given)
    wanted.check((*ours.files(), *base.files()))
    mine, theirs = (tuple(_of_packages(one.files(), tree.packages, wanted)) for one in (ours, base))
    changed: list[Changed] = []
    findings: list[ProbePatchError] = []
    for file in theirs:
        try:
            before, after = base.read(file), ours.read(file)
        except TreeError as error:
            findings.append(error)
            continue
        if after is None:
            findings.append(_deleted(tree.path(file)))
        elif before is not None and before != after:
            changed.append(Changed(file, tree.path(file), before, after))
    new = [file for file in mine if file not in set(theirs)]
    if not set(mine) & set(theirs):
        raise UsageError(
            _("{base} holds none of the files of {path}").format(base=base.label, path=tree.given),
            todo=_("name the folder that holds the package, or its wheel"),
        )
    added, left = _new_files(ours.read, changed, new, (), wanted)
    return Changes(tuple(changed), added, left, tuple(findings))


def _of_packages(files: Iterable[str], packages: Collection[str], wanted: Wanted) -> Iterator[str]:
    for file in files:
        if (not packages or file.partition("/")[0] in packages) and wanted.holds(file):
            yield file


def _deleted(path: str) -> UnrecordableError:
    return UnrecordableError(
        _("{path} was deleted or renamed").format(path=path), where=path, why=_("a recipe deletes no file")
    )


class _WorkTree:
    """One comparison of a work tree with HEAD. Paths are from the repository's top."""

    def __init__(self, tree: Tree, repo: GitDir, ids: Mapping[str, str], wanted: Wanted) -> None:
        self.tree, self.repo, self.ids, self.wanted = tree, repo, ids, wanted
        self.findings: list[ProbePatchError] = []
        self.notes: list[str] = []

    def changes(self) -> Changes:
        new, nested = self._walk()
        self.wanted.check([*self.ids, *(self._inner(path) for path in self.ids), *new, *map(self._inner, new)])
        suspects = [path for path, blob in self.ids.items() if self._wanted(path) and not self._same(path, blob)]
        moved = [path for path in nested if self._wanted(path)]
        odd = [path for path in suspects if self._is_odd(path)]  # git itself cannot compare a pipe
        real = {*odd, *_changed_for_git(self.repo, [*(path for path in suspects if path not in set(odd)), *moved])}
        for path in sorted(real & set(moved)):
            self.findings.append(
                UnrecordableError(
                    _("the submodule {path} was changed").format(path=path),
                    where=path,
                    todo=_("record it by itself: `probepatch recipe record {path}`").format(path=path),
                )
            )
        changed = [one for path in suspects if path in real for one in self._changed(path)]
        staged = set(_changed_for_git(self.repo, new))
        inner = {self._inner(path): path for path in new}
        named = tuple(file for file, path in inner.items() if path in staged)
        added, left = _new_files(lambda file: self._read(inner[file]), changed, list(inner), named, self.wanted)
        if (self.repo.git_dir / "MERGE_HEAD").exists():
            self.notes.append(_("a merge is under way: what it brings counts as edited by hand"))
        return Changes(tuple(changed), added, left, tuple(self.findings), tuple(self.notes))

    def _inner(self, path: str) -> str:
        return path.removeprefix(f"{self.tree.prefix}/") if self.tree.prefix else path

    def _wanted(self, path: str) -> bool:
        return self.wanted.holds(path) or self.wanted.holds(self._inner(path))

    def _walk(self) -> tuple[list[str], list[str]]:
        """New Python files of the packages, and other repositories in the tree."""
        new, nested = [], []
        top = self.repo.top
        heads = tuple(f"{self.tree.path(package)}/" for package in self.tree.packages) or (
            f"{self.tree.prefix}/" if self.tree.prefix else "",
        )
        for folder, names, files in os.walk(top):
            inner = Path(folder).relative_to(top).as_posix()
            inner = "" if inner == "." else f"{inner}/"
            nested += [f"{inner}{name}" for name in names if os.path.lexists(Path(folder, name, ".git"))]
            names[:] = sorted(name for name in names if name not in _SKIPPED and f"{inner}{name}" not in nested)
            paths = (f"{inner}{name}" for name in files if name.endswith(".py"))
            new += [path for path in paths if path.startswith(heads) and path not in self.ids and self._wanted(path)]
        named = [self.tree.path(file) for file in self.wanted.add]
        return sorted({*new, *(path for path in named if path not in self.ids)}), nested

    def _is_odd(self, path: str) -> bool:
        """Whether something else than a file stands there."""
        try:
            return not stat.S_ISREG((self.repo.top / path).lstat().st_mode)
        except OSError:
            return False

    def _same(self, path: str, blob: str) -> bool:
        file = self.repo.top / path
        try:
            found = file.lstat()
            if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
                return False
            data = file.read_bytes()
        except (OSError, ValueError):
            return False
        digest = hashlib.new("sha1" if len(blob) == 40 else "sha256", b"blob %d\0" % len(data), usedforsecurity=False)
        digest.update(data)
        return digest.hexdigest() == blob

    def _read(self, path: str) -> bytes | None:
        return FolderTree(self.repo.top, "").read(path)

    def _changed(self, path: str) -> Iterator[Changed]:
        try:
            if not os.path.lexists(self.repo.top / path):
                raise _deleted(path)
            data = None if (self.repo.top / path).is_symlink() else self._read(path)
            if data is None:
                raise UnrecordableError(_("{path} is no regular file any more").format(path=path), where=path)
            if not path.endswith(".py"):
                raise UnrecordableError(
                    _("{path} was changed, and is no Python source").format(path=path),
                    where=path,
                    todo=_("leave it out with --only, which names the paths to record"),
                )
            if self.tree.prefix and not path.startswith(f"{self.tree.prefix}/"):
                raise UnrecordableError(
                    _("{path} lies outside of {root}, where recipes begin").format(path=path, root=self.tree.prefix),
                    where=path,
                    todo=_("leave it out with --only, which names the paths to record"),
                )
        except ProbePatchError as error:
            self.findings.append(error)
            return
        yield Changed(self._inner(path), path, self._base(path, data), data)

    def _base(self, path: str, edited: bytes) -> bytes:
        """HEAD's bytes, with the line ending that git gave them in the work tree."""
        base = blobs(self.repo, [self.ids[path]])[self.ids[path]]
        if b"\r" in base or b"\r\n" not in edited or edited.count(b"\n") != edited.count(b"\r\n"):
            return base
        self.notes.append(
            _("{path}: HEAD has LF, the work tree CR LF; the whole file is taken as CR LF").format(path=path)
        )
        return base.replace(b"\n", b"\r\n")


def _changed_for_git(repo: GitDir, paths: Sequence[str]) -> Iterator[str]:
    """Those of the paths that differ from HEAD in git's own eyes (filters, line endings, sparse checkouts, the index)."""
    if not paths:
        return
    if len(paths) <= _AT_ONCE:
        digest = diff_digest(repo, paths)
        if digest is None:
            raise GitMissing(_("git cannot compare the work tree with HEAD"))
        if digest == _NOTHING:
            return
    if len(paths) == 1:
        yield paths[0]
        return
    middle = len(paths) // 2
    yield from _changed_for_git(repo, paths[:middle])
    yield from _changed_for_git(repo, paths[middle:])


# --- new files --------------------------------------------------------------------------------------------------------


def _new_files(
    read: Callable[[str], bytes | None],
    changed: Sequence[Changed],
    new: Sequence[str],
    named: Sequence[str],
    wanted: Wanted,
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The new files that the edits import, that git was told of or that were named; and those left."""
    found: dict[str, bytes] = {}
    asked = set()
    for one in changed:
        asked |= imported(one.edited, one.file) - imported(one.base, one.file)
    todo = list(dict.fromkeys([*wanted.add, *named]))
    for file in wanted.add:
        if file not in new:
            raise UsageError(_("there is no new file {path}").format(path=file))
    while True:
        todo += [file for file in new if file not in found and file not in todo and module_of(file) in asked]
        if not todo:
            break
        file = todo.pop(0)
        data = read(file)
        if data is None:
            raise UsageError(_("{path} cannot be read").format(path=file))
        found[file] = data
        asked |= imported(data, file)
        outer = module_of(file)
        while outer:
            outer = outer.rpartition(".")[0]
            asked.add(outer)
    return dict(sorted(found.items())), tuple(file for file in new if file not in found)


def module_of(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported(data: bytes, file: str) -> set[str]:
    """The modules that the file may import, by their full names; none when it is no Python."""
    try:
        tree = syntax(read_source(file, data).text.decode("utf-8"))
    except (ProbePatchError, SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    package = module_of(file).split(".")
    package = package if file.endswith("/__init__.py") else package[:-1]
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                parts = alias.name.split(".")
                found |= {".".join(parts[: n + 1]) for n in range(len(parts))}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return found


def left_note(left: Sequence[str]) -> str:
    shown = ", ".join(left[:_SHOWN]) + (", …" if len(left) > _SHOWN else "")
    text = ngettext(
        "{n} new Python file is left out, for no edit imports it (--add takes one): {files}",
        "{n} new Python files are left out, for no edit imports them (--add takes one): {files}",
        len(left),
    )
    return text.format(n=len(left), files=shown)


def base_tree(path: Path, packages: Collection[str]) -> SourceTree:
    """A pristine copy: a folder that holds the package, or a wheel. Raises UsageError and what opening it raises."""
    if path.is_file():
        return WheelTree(path, path.name)
    tree = open_tree(path, packages)
    return FolderTree(tree.import_root, str(path))
