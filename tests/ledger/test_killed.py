"""Killed, or met by somebody else, at every write boundary of apply and of revert."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from patch_ledger.admin import recover
from patch_ledger.revert import revert
from patch_ledger.status import status
from patch_ledger.store import SAVED
from tests.ledger.conftest import MODULE
from tests.ledger.scenario import PAYLOAD, edits_of
from tests.ledger.trees import PlainTree, apply, git, snapshot, write

REPO = Path(__file__).resolve().parents[2]


def child(tree: PlainTree, what: str, number: int, deed: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "tests.ledger.crasher",
        str(tree.root),
        str(tree.git_dir or "-"),
        what,
        str(number),
        deed,
    ]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=REPO, env=env, capture_output=True, text=True, check=False, timeout=60)


def fresh(path: Path, kind: str) -> PlainTree:
    root = path.resolve()
    write(root, {"pkg/a.py": MODULE, "pkg/b.py": MODULE, "pkg/c.py": MODULE})
    if kind == "plain":
        return PlainTree(root)
    git(root, "init", "-q", "-b", "main")
    return PlainTree(root, root / ".git")


def boundaries(path: Path, kind: str, what: str) -> int:
    tree = fresh(path, kind)
    if what == "revert":
        apply(tree, edits_of(tree))
    done = child(tree, what, 0, "none")
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def rounds(tmp_path: Path, kind: str, what: str, step: int = 1) -> Iterator[tuple[PlainTree, int]]:
    """A fresh tree for every boundary, patched already when the command is a revert."""
    count = boundaries(tmp_path / "count", kind, what)
    assert count > 20
    for number in range(1, count + 1, step):
        tree = fresh(tmp_path / str(number), kind)
        if what == "revert":
            apply(tree, edits_of(tree))
        yield tree, number


def no_residue(tree: PlainTree) -> None:
    names = [name for _folder, names, files in os.walk(tree.root / "pkg") for name in (*names, *files)]
    assert not [name for name in names if "probepatch" in name], names


@pytest.mark.parametrize(
    ("kind", "what"), [("plain", "apply"), ("git", "apply"), ("plain", "revert"), ("git", "revert")]
)
def test_kill_9_at_every_boundary(tmp_path: Path, kind: str, what: str) -> None:
    outcomes = set()
    for tree, number in rounds(tmp_path, kind, what):
        plain_before = snapshot(fresh(tmp_path / "o", kind).root)
        patched = fresh(tmp_path / f"p{number}", kind)
        apply(patched, edits_of(patched))
        after = snapshot(patched.root)
        done = child(tree, what, number, "KILL")
        assert done.returncode == -9, (number, done.stderr)
        interrupted = status(tree).interrupted
        repaired = (recover, revert)[number % 2](tree)
        no_residue(tree)
        found = snapshot(tree.root)
        assert found in (plain_before, after), number
        assert status(tree).interrupted is None
        outcomes.add((interrupted is not None, found == after))
        assert repaired.command in ("recover", "revert")
        revert(tree)
        assert snapshot(tree.root) == plain_before, number
        no_residue(tree)
        assert kind == "git" or os.listdir(tree.root) == ["pkg"]
    assert len(outcomes) > 1


@pytest.mark.parametrize("deed", ["INT", "TERM"])
@pytest.mark.parametrize("what", ["apply", "revert"])
def test_the_softer_signals_behave_the_same(tmp_path: Path, what: str, deed: str) -> None:
    for tree, number in rounds(tmp_path, "plain", what, step=3):
        done = child(tree, what, number, deed)
        assert done.returncode != 0, number
        revert(tree)
        no_residue(tree)
        assert snapshot(tree.root) == snapshot(fresh(tmp_path / "o", "plain").root), number


@pytest.mark.parametrize("verb", ["append", "rename"])
@pytest.mark.parametrize("what", ["apply", "revert"])
def test_a_foreign_write_at_any_boundary_is_never_lost(tmp_path: Path, what: str, verb: str) -> None:
    aborted = 0
    for tree, number in rounds(tmp_path, "plain", what):
        path = tree.root / "pkg/b.py"
        done = child(tree, what, number, f"{verb}:{path}")
        assert done.returncode in (0, 3), (number, done.stderr)
        aborted += done.returncode == 3
        kept = [copy.read_bytes() for copy in (tree.root / ".probepatch" / SAVED).glob("*/*")]
        assert path.read_bytes().count(b"USER = 1\n") == 1 or any(b"USER = 1" in data for data in kept), number
        no_residue(tree)
        if done.returncode == 3:
            others = {name: (tree.root / name).read_bytes() for name in ("pkg/a.py", "pkg/c.py")}
            assert (b"tap_a" in others["pkg/a.py"]) == (what == "revert"), number
            assert (tree.root / PAYLOAD).exists() == (what == "revert")
        receipt = revert(tree)
        assert not receipt.refused, (number, receipt.refused)
        assert path.read_bytes() == MODULE + b"USER = 1\n", number
    assert aborted


def test_status_counts_what_is_written(tmp_path: Path) -> None:
    seen = set()
    for tree, number in rounds(tmp_path, "plain", "apply"):
        child(tree, "apply", number, "KILL")
        found = status(tree).interrupted
        seen.add((found.written, found.total) if found else None)
    assert {(1, 3), (2, 3)} <= seen
