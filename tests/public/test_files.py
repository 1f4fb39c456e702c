"""Modes, owners, links, and files that may not be written."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Git
from tests.public.driver import (
    FUNCTION,
    PATCHED,
    Forks,
    case,
    everything,
    probepatch,
    recipes,
    refusal,
    sha,
    states,
)

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
NOBODY = 65534

# --- 22: modes --------------------------------------------------------------------------------------------------------

MODES = {"m755.py": 0o755, "m600.py": 0o600, "m444.py": 0o444}
JANUARY = 1_704_164_645.0


@pytest.fixture
def modes(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    for name, mode in MODES.items():
        (root / name).write_bytes(FUNCTION)
        (root / name).chmod(mode)
    os.utime(root / "m755.py", (JANUARY, JANUARY))
    return root


@pytest.fixture
def writable_only(modes: Path, tmp_path: Path) -> list[str]:
    """The recipe without the file that is read-only."""
    recipe = tmp_path / "writable.yaml"
    lines = (case(22) / "recipe.yaml").read_text().splitlines(keepends=True)
    recipe.write_text("".join(line for line in lines if "m444" not in line))
    return recipes(recipe)


def described(root: Path) -> dict[str, tuple[object, ...]]:
    """Mode, owner and attributes of each file."""
    found: dict[str, tuple[object, ...]] = {}
    for path in root.glob("*.py"):
        info = path.lstat()
        names = os.listxattr(path) if hasattr(os, "listxattr") else []
        attributes = {name: os.getxattr(path, name) for name in names}
        found[path.name] = (stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid, attributes)
    return found


def test_22_a_read_only_file_is_refused_by_name(modes: Path) -> None:
    before, times = everything(modes), {path: path.stat().st_mtime_ns for path in modes.iterdir()}
    said = refusal("apply", modes, *recipes(case(22) / "recipe.yaml"), code=3, kind="refused")
    assert "m444.py is read-only" in said
    assert "mode 0444" in said
    assert "m755.py" not in said
    assert everything(modes) == before
    assert {path: path.stat().st_mtime_ns for path in modes.iterdir()} == times


def test_22_modes_are_the_same_at_all_three_points(modes: Path, writable_only: list[str]) -> None:
    files, before = everything(modes), described(modes)
    assert {name: facts[0] for name, facts in before.items()} == MODES
    probepatch("apply", modes, *writable_only)
    assert (modes / "m755.py").read_bytes() == (modes / "m600.py").read_bytes() == PATCHED
    assert described(modes) == before
    probepatch("revert", modes)
    assert described(modes) == before
    assert everything(modes) == files


def test_22_git_sees_no_change_of_mode(modes: Path, writable_only: list[str], git: Git) -> None:
    git(modes, "init", "-q")
    git(modes, "add", "-A")
    git(modes, "commit", "-q", "-m", "as it was")
    probepatch("apply", modes, *writable_only)
    assert git(modes, "diff", "--name-only").split() == ["m600.py", "m755.py"]
    assert git(modes, "diff", "--summary") == ""
    probepatch("revert", modes)
    assert git(modes, "status", "--porcelain") == ""


@root_only
def test_22_owner_and_attributes_stay(modes: Path, writable_only: list[str]) -> None:
    os.chown(modes / "m600.py", NOBODY, NOBODY)
    try:
        os.setxattr(modes / "m755.py", "user.note", b"kept")
    except OSError:
        pytest.skip("no extended attributes on this file system")
    before = described(modes)
    probepatch("apply", modes, *writable_only)
    assert described(modes) == before
    probepatch("revert", modes)
    assert described(modes) == before


# --- 23: links --------------------------------------------------------------------------------------------------------

READY = b"READY = 1\n"
OTHER = b"def g(x):\n    return x\n"


@pytest.fixture
def links(tmp_path: Path) -> Path:
    root, cache = tmp_path / "work", tmp_path / "cache"
    root.mkdir()
    cache.mkdir()
    (root / "real.py").write_bytes(FUNCTION)
    (root / "link.py").symlink_to("real.py")
    (cache / "shared.py").write_bytes(OTHER)
    (root / "shared.py").hardlink_to(cache / "shared.py")
    return root


def test_23_a_link_stays_a_link_and_the_other_name_its_bytes(links: Path) -> None:
    before, elsewhere = everything(links), links.parent / "cache/shared.py"
    done = probepatch("apply", links, *recipes(case(23) / "recipe.yaml"))["receipt"]
    assert os.readlink(links / "link.py") == "real.py"
    assert (links / "real.py").read_bytes() == FUNCTION + READY
    assert (links / "shared.py").read_bytes() == OTHER + READY
    assert elsewhere.read_bytes() == OTHER
    assert (elsewhere.stat().st_nlink, (links / "shared.py").stat().st_nlink) == (1, 1)

    notes = {file["path"]: " ".join(file["notes"]) for file in done["files"]}
    assert "link.py is a symbolic link" in notes["real.py"]
    assert "link count was 2" in notes["shared.py"]
    (transaction,) = probepatch("ledger", "show", links)["transactions"]
    recorded = {file["path"]: file for file in transaction["files"]}
    assert (recorded["real.py"]["links"], recorded["real.py"]["via"]) == (1, "link.py")
    assert recorded["shared.py"]["links"] == 2
    assert states(links) == {"applied"}

    assert probepatch("revert", links)["proof"]["exact"]
    assert everything(links) == before
    assert elsewhere.read_bytes() == OTHER


def test_23_a_link_that_leads_out_is_refused(links: Path) -> None:
    outside = links.parent / "cache/shared.py"
    (links / "link.py").unlink()
    (links / "link.py").symlink_to(outside)
    before = everything(links)
    said = refusal("apply", links, *recipes(case(23) / "recipe.yaml"), code=3, kind="refused")
    assert "link.py leads out of the tree" in said
    assert str(outside) in said
    assert everything(links) == before
    assert outside.read_bytes() == OTHER


def test_23_at_all_times(links: Path, forked: Forks) -> None:
    before, elsewhere = everything(links), links.parent / "cache/shared.py"
    for number in itertools.count(1):
        elsewhere.unlink()
        elsewhere.hardlink_to(links / "shared.py")
        done = forked.run("apply", links, *recipes(case(23) / "recipe.yaml"), at=number, deed="KILL")
        assert os.readlink(links / "link.py") == "real.py"
        assert elsewhere.read_bytes() == OTHER
        assert forked.run("revert", links)["code"] == 0
        assert everything(links) == before
        if not done["hit"]:
            break
    assert number > 20


# --- 28: one file of the set may not be written -----------------------------------------------------------------------


@pytest.fixture
def closed(open_folder: Path) -> Iterator[Path]:
    """Three modules, the second in a folder without write permission; all of an ordinary user."""
    root = open_folder / "s"
    (root / "ro").mkdir(parents=True)
    for name in ("a.py", "ro/b.py", "c.py"):
        (root / name).write_bytes(FUNCTION)
    if os.geteuid() == 0:
        for path in (root, *root.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    (root / "ro").chmod(0o555)
    yield root
    (root / "ro").chmod(0o755)


@pytest.fixture
def recipe(open_folder: Path) -> list[str]:
    """The recipe where an ordinary user can read it."""
    copy = open_folder / "recipe.yaml"
    copy.write_bytes((case(28) / "recipe.yaml").read_bytes())
    copy.chmod(0o644)
    return recipes(copy)


def as_user(forked: Forks, *arguments: str | Path, code: int) -> dict[str, Any]:
    """The answer to a user who is not root."""
    reply = forked.run(*arguments, user=NOBODY if os.geteuid() == 0 else None)
    assert reply["code"] == code, reply
    answer: dict[str, Any] = reply["answer"]
    return answer


@pytest.mark.parametrize("ordinary", [True, False], ids=["ordinary-user", "whoever-runs-this"])
def test_28_a_folder_that_is_closed_stops_the_whole_set(
    closed: Path, recipe: list[str], forked: Forks, ordinary: bool
) -> None:
    before = everything(closed)
    if ordinary:
        error = as_user(forked, "apply", closed, *recipe, code=3)["error"]
    else:
        error = probepatch("apply", closed, *recipe, code=3)["error"]
    owner = "nobody" if os.geteuid() == 0 else (closed / "ro").owner()
    assert error["what"].startswith("the folder ro is not writable")
    assert f"owner {owner}" in error["what"]
    assert "mode 0555" in error["what"]
    assert "nothing was written" in error["why"]
    assert everything(closed) == before


@pytest.mark.parametrize("ordinary", [True, False], ids=["ordinary-user", "whoever-runs-this"])
def test_28_a_file_that_is_read_only_does_the_same(
    closed: Path, recipe: list[str], forked: Forks, ordinary: bool
) -> None:
    (closed / "ro").chmod(0o755)
    (closed / "c.py").chmod(0o444)
    before = everything(closed)
    if ordinary:
        error = as_user(forked, "apply", closed, *recipe, code=3)["error"]
    else:
        error = probepatch("apply", closed, *recipe, code=3)["error"]
    assert error["what"].startswith("c.py is read-only")
    assert "mode 0444" in error["what"]
    assert everything(closed) == before


@root_only
def test_28_files_of_root_are_not_an_ordinary_users(closed: Path, recipe: list[str], forked: Forks) -> None:
    (closed / "ro").chmod(0o755)
    for path in (closed / "ro", closed / "ro/b.py"):
        os.chown(path, 0, 0)
    before = everything(closed)
    error = as_user(forked, "apply", closed, *recipe, code=3)["error"]
    assert "owner root:root, mode 0755" in error["what"]
    assert everything(closed) == before


def test_28_opened_again_the_set_goes_through(closed: Path, recipe: list[str], forked: Forks) -> None:
    (closed / "ro").chmod(0o755)
    before = everything(closed)
    as_user(forked, "apply", closed, *recipe, code=0)
    assert {sha(path) for path in closed.rglob("*.py")} == {sha(closed / "a.py")}
    assert (closed / "a.py").read_bytes() == PATCHED
    (closed / "ro").chmod(0o555)
    patched = everything(closed)
    assert "ro is not writable" in as_user(forked, "revert", closed, code=3)["error"]["what"]
    assert everything(closed) == patched
    (closed / "ro").chmod(0o755)
    as_user(forked, "revert", closed, code=0)
    assert everything(closed) == before
