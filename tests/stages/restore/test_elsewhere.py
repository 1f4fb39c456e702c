"""Checkouts that are not what they were: replaced, moved, committed, stashed. Nothing is called finished that is not."""

from __future__ import annotations

import shutil

from stages.card.store import read_card
from tests.cli.test_commands import WORKER, contents
from tests.conftest import FIXTURES
from tests.stages.restore.test_restore import card, patched, restore  # noqa: F401 - fixtures


def test_a_fresh_clone_in_its_place_is_not_the_patched_tree(card, patched, tmp_path):  # noqa: F811
    shutil.move(patched, tmp_path / "moved")
    shutil.copytree(FIXTURES / "checkout", patched)
    before = contents(patched)
    for _again in range(2):
        found = restore(card, code=1)
        assert not found["finished"]
        assert "record of this task's edits is not there" in found["checkouts"][0]["error"]["what"]
    assert contents(patched) == before
    shutil.rmtree(patched)
    (patched).symlink_to(tmp_path / "moved")
    assert not restore(card, code=1)["finished"]
    patched.unlink()
    shutil.move(tmp_path / "moved", patched)
    assert restore(card)["finished"]


def test_what_is_in_its_place(card, patched, tmp_path):  # noqa: F811
    shutil.move(patched, tmp_path / "moved")
    patched.write_text("a file")
    assert not restore(card, code=1)["finished"]
    patched.unlink()
    patched.symlink_to(patched)
    assert not restore(card, code=1)["finished"]
    patched.unlink()


def test_a_mark_that_stays_is_found_again(card, patched):  # noqa: F811
    shutil.copy(patched / WORKER, patched / "tinyrl/copied.py")
    for _again in range(2):
        assert not restore(card, code=1)["finished"]
    assert read_card(card).data["edits"]


def test_without_its_ledger_the_marks_are_named(card, patched):  # noqa: F811
    shutil.rmtree(patched / ".git")
    found = restore(card, code=1)["checkouts"][0]
    assert (found["receipt"], bool(found["marks"])) == (None, True)


def test_edits_that_were_committed(card, patched, git):  # noqa: F811
    git(patched, "commit", "-qam", "mine, with the capture's edits in it")
    found = restore(card, code=1)
    assert {one["what"] for one in found["checkouts"][0]["marks"]} == {"committed"}
    git(patched, "commit", "-qam", "as it was")
    assert restore(card)["finished"]


def test_a_stash_is_told(card, patched, git):  # noqa: F811
    git(patched, "stash", "-u")
    found = restore(card)
    assert found["finished"]
    assert any("stash@{0}" in note for note in found["checkouts"][0]["receipt"]["notes"])
