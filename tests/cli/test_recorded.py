"""A ledger is found again, whatever the tree looks like by then."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.cli.test_commands import FILES, WORKER, answer, contents, run
from tests.conftest import FIXTURES, write


def plain(folder: Path) -> Path:
    """The demo's framework below ``folder``, in no git, patched."""
    shutil.copytree(FIXTURES / "checkout/tinyrl", folder / "tinyrl", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
def original() -> dict[str, bytes]:
    return {name: data for name, data in contents(FIXTURES / "checkout").items() if name.startswith("tinyrl/")}


def states(given: Path, **environment: str) -> list[str]:
    return [edit["state"] for edit in answer("status", "status", given, **environment)["edits"]]


@pytest.mark.parametrize("layout", ["", "src", "python"])
@pytest.mark.parametrize("given", ["", "{layout}", "{layout}/tinyrl", "{layout}/tinyrl/trainer"])
def test_a_framework_known_from_a_recipe_file_only(tmp_path, original, layout, given):
    root = plain(tmp_path / "T" / layout)
    answer("apply", "apply", tmp_path / "T", *FILES)
    named = tmp_path / "T" / given.format(layout=layout).lstrip("/")
    assert set(states(named)) == {"applied"}
    assert len(answer("ledger-show", "ledger", "show", named)["transactions"]) == 1
    assert answer("receipt", "revert", named)["proof"]["exact"]
    assert contents(root) == original


def test_a_linked_layout(tmp_path, original):
    plain(tmp_path / "elsewhere")
    (tmp_path / "T").mkdir()
    (tmp_path / "T/src").symlink_to(tmp_path / "elsewhere")
    answer("apply", "apply", tmp_path / "T", *FILES)
    assert set(states(tmp_path / "T")) == {"applied"}
    assert answer("receipt", "revert", tmp_path / "T")["proof"]["exact"]
    assert contents(tmp_path / "elsewhere") == original


def test_a_folder_of_which_nothing_is_recorded(tmp_path):
    answer("apply", "apply", plain(tmp_path), *FILES)
    (tmp_path / "other").mkdir()
    assert states(tmp_path / "other") == []
    assert "nothing to do" in run("revert", tmp_path / "other").stdout
    assert set(states(tmp_path)) == {"applied"}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give the ledger away")
def test_a_stranger_s_ledger_above_is_not_taken(tmp_path):
    answer("apply", "apply", plain(tmp_path), *FILES)
    os.chown(tmp_path / ".probepatch", 12345, 12345)
    assert states(tmp_path / "tinyrl") == []


def test_without_git_the_ledger_in_its_folder_is_found(demo_checkout, tmp_path):
    answer("apply", "apply", demo_checkout, *FILES)
    (tmp_path / "bin").mkdir()
    assert set(states(demo_checkout, PATH=str(tmp_path / "bin"))) == {"applied"}
    assert set(states(demo_checkout / "tinyrl/trainer", PATH=str(tmp_path / "bin"))) == {"applied"}
    assert answer("apply", "apply", demo_checkout, *FILES, PATH=str(tmp_path / "bin"))["receipt"]["txn"] == ""
    assert answer("receipt", "revert", demo_checkout, PATH=str(tmp_path / "bin"))["proof"]["exact"]


def test_a_plain_folder_that_was_put_into_git(tmp_path, git, original):
    root = tmp_path / "T"
    plain(root / "src")
    answer("apply", "apply", root, *FILES)
    git(root, "init", "-q")
    git(root, "add", "src/tinyrl")
    git(root, "commit", "-q", "-m", "first")
    assert answer("apply", "apply", root, *FILES)["receipt"]["txn"] == ""
    assert states(root)
    assert answer("receipt", "revert", root)["proof"]["exact"]
    assert contents(root / "src") == original


def test_the_repository_around_a_venv_has_its_own_ledger(demo_checkout):
    answer("apply", "apply", demo_checkout, *FILES)
    site = demo_checkout / ".venv/lib/site-packages"
    write(site, {"verl/__init__.py": ""})
    assert states(site) == []
    assert states(site / "verl") == []
    before = (demo_checkout / WORKER).read_bytes()
    assert "nothing to do" in run("revert", site).stdout
    assert (demo_checkout / WORKER).read_bytes() == before


def test_two_ledgers_are_both_told(tmp_path):
    root = tmp_path / "T"
    plain(root / "src")
    write(root, {"m.py": "def f(x):\n    return x\n"})
    recipe = 'recipe: r\nframework: mine\nside: train\nversions: ">=0"\nwhy: w\nedits:\n'
    (tmp_path / "r.yaml").write_text(recipe + "  - {id: e, file: m.py, in: f, body_start: print(x)}\n")
    answer("apply", "apply", root, *FILES)
    answer("apply", "apply", root, "--recipe-file", tmp_path / "r.yaml")
    found = answer("status", "status", root)
    assert {edit["recipe"] for edit in found["edits"]} == {"r"}
    assert any(str(root / "src/.probepatch") in note for note in found["notes"])
    assert any(str(root / "src/.probepatch") in note for note in answer("receipt", "revert", root)["notes"])
    assert answer("receipt", "revert", root)["proof"]["exact"]  # now the only one
