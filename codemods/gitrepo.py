"""What git knows about a checkout, asked without changing it and without running anything that its config names.

A checkout may come from a stranger, may belong to another user (a mounted folder in a container) and may be visited
from inside a git hook. So git is always told its folders (no discovery, hence no ownership check and no inherited
``GIT_INDEX_FILE``), takes no optional locks, and gets fsmonitor, hooks, transports and the repository's own filters
switched off.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from locales import _

_LARGEST_INDEX = 1 << 29  # bytes; that of a million files has a quarter of it
_SAFE_CONFIG = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "protocol.allow=never",
    "color.ui=false",
    "diff.autoRefreshIndex=false",  # git diff writes the index anew in spite of GIT_OPTIONAL_LOCKS
)


class GitMissing(Exception):
    """git is not installed, or it cannot read this repository; ``str()`` says which."""


@dataclass(frozen=True, slots=True)
class GitDir:
    """A work tree's top folder and its own git directory (of a linked worktree or a submodule: not the shared one)."""

    top: Path
    git_dir: Path


@dataclass(frozen=True, slots=True)
class GitFacts:
    """What `git status` says; None is unknown (no git, no commit yet, a detached head's branch).

    ``dirty`` counts the tracked paths that differ from the commit.
    """

    commit: str | None = None
    branch: str | None = None
    dirty: int | None = None


def find_git_dir(path: Path) -> GitDir | None:
    """The work tree around ``path``, found by walking up; git itself is not started."""
    for folder in (path, *path.parents):
        dot_git = folder / ".git"
        if dot_git.is_dir():
            if (dot_git / "HEAD").exists():
                return GitDir(folder, Path(os.path.realpath(dot_git)))
        elif dot_git.is_file():
            git_dir = _gitfile_target(dot_git)
            return GitDir(folder, git_dir) if git_dir is not None else None
    return None


def _gitfile_target(dot_git: Path) -> Path | None:
    """Where a ``.git`` file (worktree, submodule) points; None when that is no git directory."""
    try:
        with dot_git.open("rb") as file:
            text = file.read(8192)
    except OSError:
        return None
    if not text.startswith(b"gitdir: "):
        return None
    target = Path(os.path.realpath(dot_git.parent / os.fsdecode(text[8:].rstrip(b"\r\n"))))
    return target if (target / "HEAD").exists() else None


def tracks(repo: GitDir, folder: Path, first: str) -> bool:
    """Whether git tracks anything below ``folder``; ``first`` is a file in it that is most likely tracked.

    The index is read here when it tells at once, which needs no git at all. Raises GitMissing when only git could tell
    and cannot.
    """
    index = repo.git_dir / "index"
    if index.exists() and not (index.is_file() and index.stat().st_size < _LARGEST_INDEX):
        raise GitMissing(_("its index is not a file of a usable size"))
    name = (folder / first).relative_to(repo.top).as_posix()
    if _in_index(index, os.fsencode(name)):
        return True
    return bool(_run(repo, "ls-files", "-z", "--", str(folder)))


def _in_index(index: Path, name: bytes) -> bool:
    """Whether an index of version 2 or 3 holds this path; False also means "cannot tell"."""
    try:
        data = index.read_bytes()
    except OSError:
        return False
    if data[:4] != b"DIRC" or data[4:8] not in (b"\0\0\0\2", b"\0\0\0\3"):
        return False
    length = min(len(name), 0xFFF)
    at = data.find(name + b"\0")
    while at > 0:
        # the 16 bits before the name, or before two more bytes of flags, end in the name's length
        if any(int.from_bytes(data[at - n : at - n + 2], "big") & 0xFFF == length for n in (2, 4)):
            return True
        at = data.find(name + b"\0", at + 1)
    return False


def git_facts(repo: GitDir | None) -> GitFacts:
    """Commit, branch and number of changed tracked paths; every one unknown without git."""
    if repo is None:
        return GitFacts()
    options = ("--porcelain=v2", "--branch", "-z", "--untracked-files=no", "--ignore-submodules=all", "--no-renames")
    try:
        lines = _run(repo, "status", *options).split(b"\0")
    except GitMissing:
        return GitFacts()
    heads = dict(line[2:].split(b" ", 1) for line in lines if line.startswith(b"# "))
    commit = heads.get(b"branch.oid", b"(").decode()
    branch = heads.get(b"branch.head", b"(").decode("utf-8", "replace")
    return GitFacts(
        commit=None if commit.startswith("(") else commit,
        branch=None if branch.startswith("(") else branch,
        dirty=sum(line[:2] in (b"1 ", b"u ") for line in lines),
    )


def diff_digest(repo: GitDir | None, paths: Iterable[str]) -> str | None:
    """SHA-256 of ``git diff HEAD`` of these paths (relative to the work tree's top); None when git cannot tell."""
    wanted = sorted(paths)
    if repo is None or not wanted:
        return None
    options = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--full-index", "--binary")
    try:
        return hashlib.sha256(_run(repo, "diff", *options, "HEAD", "--", *wanted)).hexdigest()
    except GitMissing:
        return None


def in_head(repo: GitDir | None, paths: Iterable[str]) -> dict[str, bytes]:
    """The bytes of these files in HEAD, by path; without those that are not there, and nothing when git cannot tell."""
    asked = [path for path in paths if "\n" not in path]
    if repo is None or not asked:
        return {}
    query = "".join(f"HEAD:{path}\n" for path in asked)
    try:
        answer = _execute(repo, ("cat-file", "--batch"), _SAFE_CONFIG, given=os.fsencode(query))
    except GitMissing:
        return {}
    return _parse_batch(asked, answer)


def _parse_batch(asked: list[str], answer: bytes) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    at = 0
    for path in asked:
        end = answer.find(b"\n", at)
        header = answer[at:end].split(b" ")
        at = end + 1
        if len(header) == 3 and header[1] == b"blob" and header[2].isdigit():
            size = int(header[2])
            found[path] = answer[at : at + size]
            at += size + 1
    return found


def tags(repo: GitDir, pattern: str) -> list[str]:
    """The tags that match the glob, oldest version first. Raises GitMissing."""
    out = _execute(repo, ("tag", "--list", "--no-column", "--sort=version:refname", "--", pattern), _SAFE_CONFIG)
    return [os.fsdecode(line) for line in out.splitlines()]


def listing(repo: GitDir, ref: str) -> dict[str, str]:
    """The ids of all regular files of a commit's tree, by path; links and submodules are left out. Raises GitMissing."""
    out = _execute(repo, ("ls-tree", "-r", "-z", "--full-tree", "--end-of-options", f"{ref}^{{tree}}"), _SAFE_CONFIG)
    entries = (entry.split(b"\t", 1) for entry in out.split(b"\0") if entry)
    return {os.fsdecode(path): head.split(b" ")[2].decode() for head, path in entries if head.startswith(b"100")}


def blobs(repo: GitDir, ids: Iterable[str]) -> dict[str, bytes]:
    """The bytes of blobs, by id. Raises GitMissing; KeyError never: what is not there is an error of git's."""
    asked = list(dict.fromkeys(ids))
    answer = _execute(repo, ("cat-file", "--batch"), _SAFE_CONFIG, given="".join(f"{one}\n" for one in asked).encode())
    found = _parse_batch(asked, answer)
    if len(found) != len(asked):
        raise GitMissing(_("{count} objects are not in the repository").format(count=len(asked) - len(found)))
    return found


def renamed(repo: GitDir, path: str) -> tuple[str, str] | None:
    """Where the last commit that took ``path`` away has moved it, with that commit's id; None when it was not moved, or when
    the history does not reach that far."""
    try:
        commit = _execute(
            repo, ("log", "-1", "--format=%H", "--diff-filter=D", "--no-renames", "--", path), _SAFE_CONFIG
        )
        if not commit.strip():
            return None
        shown = ("show", "--format=", "--name-status", "--diff-filter=R", "-M", "-z", commit.decode().strip())
        fields = os.fsdecode(_execute(repo, shown, _SAFE_CONFIG)).split("\0")
    except GitMissing:
        return None
    moves = dict(zip(fields[1::3], fields[2::3], strict=False))
    return (moves[path], commit.decode()[:10]) if path in moves else None


def _run(repo: GitDir, *args: str) -> bytes:
    """Standard output of a reading git command; raises GitMissing."""
    return _execute(repo, args, (*_SAFE_CONFIG, *_no_local_filters(repo)))


def _no_local_filters(repo: GitDir) -> list[str]:
    """Settings that switch off the clean and process filters which the repository itself defines."""
    pattern = r"^filter\..*\.(clean|smudge|process)$"
    listing = ("config", "--show-scope", "--name-only", "-z", "--get-regexp", pattern)
    fields = os.fsdecode(_execute(repo, listing, _SAFE_CONFIG, ok=(0, 1))).split("\0")
    own = {key for scope, key in zip(fields[::2], fields[1::2], strict=False) if scope in ("local", "worktree")}
    if any("=" in key for key in own):
        raise GitMissing(_("this repository defines a filter that cannot be switched off"))
    required = {key.rpartition(".")[0] + ".required=false" for key in own}
    return [*(key + "=" for key in sorted(own)), *sorted(required)]


def _execute(
    repo: GitDir, args: tuple[str, ...], settings: Iterable[str], ok: tuple[int, ...] = (0,), given: bytes = b""
) -> bytes:
    options = [part for setting in settings for part in ("-c", setting)]
    command = ["git", *options, *args]
    environment = os.environ | _environment(repo)
    try:
        done = subprocess.run(command, input=given, capture_output=True, check=False, cwd=repo.top, env=environment)
    except OSError as error:
        raise GitMissing(_("git is not installed")) from error
    if done.returncode not in ok:
        reason = " ".join(done.stderr.decode("utf-8", "replace").split())
        raise GitMissing(reason[:300] or f"git {args[0]}: {done.returncode}")
    return done.stdout


def _environment(repo: GitDir) -> dict[str, str]:
    return {
        "GIT_DIR": str(repo.git_dir),
        "GIT_WORK_TREE": str(repo.top),
        "GIT_INDEX_FILE": str(repo.git_dir / "index"),
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
