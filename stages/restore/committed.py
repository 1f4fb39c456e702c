"""Edits of ours that git keeps: committed, they come back with the next checkout; stashed, with the stash."""

from __future__ import annotations

from collections.abc import Collection

from codemods.checkout import Tree
from codemods.gitrepo import GitDir, GitMissing, blobs, in_head, listing
from locales import _
from stages.restore.marks import MARK, Mark

_MOST_STASHES = 20


def committed(tree: Tree, paths: Collection[str]) -> list[Mark]:
    """Of the files that ever held edits (relative to the tree's root), those that still hold them in HEAD."""
    found = []
    for path, data in in_head(tree.git, sorted(paths)).items():
        if (hit := MARK.search(data)) is not None:
            found.append(Mark(tree.root / path, "committed", data.count(b"\n", 0, hit.start()) + 1))
    return found


def stashed(tree: Tree, paths: Collection[str]) -> list[str]:
    """A sentence for each stash that holds one of them with our edits; files that git did not track are in its third parent."""
    if tree.git is None:
        return []
    out = []
    for number in range(_MOST_STASHES):
        name = f"stash@{{{number}}}"
        hold = _holds(tree.git, name, paths)
        if hold is None:
            break
        if hold or _holds(tree.git, f"{name}^3", paths):
            out.append(_("{stash} holds edits of ours, and brings them back when it is taken out").format(stash=name))
    return out


def _holds(repo: GitDir, ref: str, paths: Collection[str]) -> bool | None:
    """None where there is no such commit."""
    try:
        files = listing(repo, ref)
        return any(map(MARK.search, blobs(repo, [files[path] for path in paths if path in files]).values()))
    except GitMissing:
        return None
