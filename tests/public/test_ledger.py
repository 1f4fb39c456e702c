"""The same recipe again, another version of it, and a checkout with work that is not committed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Git
from tests.public.driver import FUNCTION, PATCHED, case, everything, probepatch, recipes, sha, states

Checkout = Callable[[Path], Path]

# --- 18: apply, apply, status, revert, revert -------------------------------------------------------------------------


def test_18_the_second_time_changes_nothing(checkout: Checkout) -> None:
    root, recipe = checkout(case(18)), recipes(case(18) / "recipe.yaml")
    path, before = root / "input.py", everything(root)
    original = sha(path)

    assert probepatch("apply", root, *recipe)["receipt"]["txn"]
    patched = sha(path)
    assert path.read_bytes() == PATCHED
    again = probepatch("apply", root, *recipe)
    assert (again["changes"], again["receipt"]["txn"], again["receipt"]["files"], sha(path)) == (False, "", [], patched)
    assert len(probepatch("ledger", "show", root)["transactions"]) == 1
    assert states(root) == {"applied"}
    assert sha(path) == patched

    assert probepatch("revert", root)["proof"]["exact"]
    assert sha(path) == original
    second = probepatch("revert", root)
    assert second["txn"] == ""
    assert "nothing to do" in second["notes"][0]
    assert everything(root) == before


def test_18_text_that_looks_like_ours_is_not_ours(checkout: Checkout) -> None:
    root, recipe = checkout(case(18)), recipes(case(18) / "recipe.yaml")
    path = root / "input.py"
    path.write_bytes(PATCHED)  # the user's own call
    assert states(root) == set()
    for _again in range(2):
        probepatch("apply", root, *recipe)
        assert path.read_bytes().count(b"tap(x)") == 2
    for _again in range(2):
        probepatch("revert", root)
        assert path.read_bytes() == PATCHED


# --- 19: another version of the recipe --------------------------------------------------------------------------------


def test_19_the_new_version_stands_on_the_original(checkout: Checkout) -> None:
    root, folder = checkout(case(19)), case(19)
    path, before = root / "input.py", everything(root)
    named = FUNCTION.replace(b"    return", b"    tap(x, tag='b')\n    return")
    probepatch("apply", root, *recipes(folder / "recipe.yaml"))
    assert path.read_bytes() == PATCHED
    for version, wanted in (("v2.yaml", named), ("recipe.yaml", PATCHED), ("v2.yaml", named)):
        assert probepatch("apply", root, *recipes(folder / version))["receipt"]["txn"]
        assert path.read_bytes() == wanted
        assert states(root) == {"applied"}
        assert len(probepatch("status", root)["edits"]) == 1
    assert probepatch("revert", root)["proof"]["exact"]
    assert path.read_bytes() == FUNCTION
    assert everything(root) == before


def test_19_the_diff_is_against_what_is_there(checkout: Checkout) -> None:
    root, folder = checkout(case(19)), case(19)
    probepatch("apply", root, *recipes(folder / "recipe.yaml"))
    (file,) = probepatch("diff", root, *recipes(folder / "v2.yaml"))["files"]
    assert file["sha256_before"] == sha(root / "input.py")
    assert file["sha256_base"] == sha(folder / "input.py")


# --- 26: work that is not committed -----------------------------------------------------------------------------------

QUESTIONS = (
    ("status", "--porcelain=v2", "--branch"),
    ("diff",),
    ("diff", "--cached"),
    ("stash", "list"),
    ("ls-files", "--stage", "--debug"),
    ("log", "--all", "--oneline"),
)


def git_state(root: Path, git: Git) -> list[str]:
    """What git says of a checkout; ``ls-files`` refreshes nothing, so it comes with the index as it is."""
    return [git(root, *question) for question in QUESTIONS]


def without_times(state: list[str]) -> list[str]:
    """The same without the times and inodes in which git caches what it saw of a file."""
    lines = [line for line in state[4].split("\n") if not line.startswith("  ")]
    return [*state[:4], "\n".join(lines), *state[5:]]


@pytest.fixture
def dirty(in_git: Checkout, git: Git) -> Path:
    root = in_git(case(26))
    (root / "m.py").write_bytes(FUNCTION + b"# my unstaged note\n")
    (root / "n.py").write_bytes(FUNCTION + b"# staged\n")
    git(root, "add", "n.py")
    (root / "untracked.txt").write_text("scratch\n")
    return root


@pytest.mark.parametrize("target", ["m.py", "n.py"])
def test_26_afterwards_git_sees_what_it_saw_before(dirty: Path, git: Git, tmp_path: Path, target: str) -> None:
    recipe = tmp_path / "r.yaml"
    recipe.write_text((case(26) / "recipe.yaml").read_text().replace("m.py", target))
    before, files, index = git_state(dirty, git), everything(dirty), (dirty / ".git/index").read_bytes()
    probepatch("apply", dirty, *recipes(recipe))
    assert (dirty / ".git/index").read_bytes() == index
    assert (dirty / target).read_bytes().count(b"    tap(x)\n") == 1
    assert git(dirty, "stash", "list") == ""
    assert git(dirty, "diff", "--cached") == before[2]
    proof = probepatch("revert", dirty)["proof"]
    assert proof["exact"]
    assert proof["git_diff_equal"] is True
    assert (dirty / ".git/index").read_bytes() == index
    assert everything(dirty) == files
    assert without_times(git_state(dirty, git)) == without_times(before)


def test_26_in_the_middle_of_a_rebase(in_git: Checkout, git: Git) -> None:
    root = in_git(case(26))
    git(root, "checkout", "-q", "-b", "topic")
    (root / "n.py").write_bytes(b"def f(x):\n    return x + 1\n")
    git(root, "commit", "-q", "-am", "topic")
    git(root, "checkout", "-q", "main")
    (root / "n.py").write_bytes(b"def f(x):\n    return x + 2\n")
    git(root, "commit", "-q", "-am", "main")
    git(root, "checkout", "-q", "topic")
    stopped = subprocess.run(["git", "rebase", "main"], cwd=root, capture_output=True, check=False)
    assert stopped.returncode != 0
    assert b"<<<<<<<" in (root / "n.py").read_bytes()
    (root / "m.py").write_bytes(FUNCTION + b"# my unstaged note\n")

    before, files = git_state(root, git), everything(root)
    rebase = {path: path.read_bytes() for path in (root / ".git/rebase-merge").rglob("*") if path.is_file()}
    probepatch("apply", root, *recipes(case(26) / "recipe.yaml"))
    assert git(root, "diff", "--name-only").split() == ["m.py", "n.py", "n.py"]
    assert probepatch("revert", root)["proof"]["git_diff_equal"] is True
    assert everything(root) == files
    assert without_times(git_state(root, git)) == without_times(before)
    assert {path: path.read_bytes() for path in rebase} == rebase

    (root / "n.py").write_bytes(b"def f(x):\n    return x + 3\n")
    git(root, "add", "n.py")
    git(root, "checkout", "-q", "m.py")
    git(root, "-c", "core.editor=true", "rebase", "--continue")
    assert git(root, "status", "--porcelain") == ""
