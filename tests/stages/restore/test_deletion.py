"""What cleaning may never delete, whatever the task card says; and what is checked before anything is reverted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stages.card.card import Card
from stages.restore.deletion import NotOursError, delete, expect_ours
from stages.restore.jobs import running
from tests.cli.test_commands import answer, contents
from tests.stages.restore.test_restore import card, patched, restore  # noqa: F401 - fixtures


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "artifacts"
    (made / "dump/step0").mkdir(parents=True)
    return made


def card_of(root: Path | str, **facts: str) -> Card:
    made = Card.new()
    made.data["facts"]["artifacts"] = str(root)
    made.data["facts"] |= {name.replace("_", "."): value for name, value in facts.items()}
    return made


def test_a_folder_of_the_captures_own_goes(root):
    expect_ours(card_of(root), [root / "dump"])
    assert delete([root / "dump"]) == ([root / "dump"], [])
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["/", "/tmp", "/home", "/home/somebody", "/etc", "/usr/lib", "/mnt/disk", "", "relative"]
)
def test_a_root_that_is_the_systems_or_a_home(name, tmp_path):
    with pytest.raises(NotOursError):
        expect_ours(card_of(name), [tmp_path / "x"])


@pytest.mark.parametrize("above", ["", ".."])
def test_the_home_folder_and_what_is_above_it(root, monkeypatch, above):
    home = root / "dump"
    monkeypatch.setenv("HOME", str(home))
    with pytest.raises(NotOursError):
        expect_ours(card_of(home / above), [home / "step0"])


@pytest.mark.parametrize("place", ["artifacts/checkout", "artifacts", "."])
def test_a_root_that_has_to_do_with_a_checkout(root, tmp_path, place):
    """It contains one, is one, or lies in one."""
    checkout = tmp_path / place
    checkout.mkdir(exist_ok=True)
    for one in (card_of(root, train_checkout=str(checkout)), card_of(root)):
        if one.fact("train.checkout") is None:
            one.data["edits"].append({"checkout": str(checkout), "recipes": [], "at": "2026-11-29T17:00:00Z"})
        with pytest.raises(NotOursError):
            expect_ours(one, [root / "dump"])


def test_a_link_to_a_home_as_root(root, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(root))
    (tmp_path / "link").symlink_to(root)
    with pytest.raises(NotOursError):
        expect_ours(card_of(tmp_path / "link"), [tmp_path / "link/dump"])


def test_a_root_in_a_repository(repo):
    place = repo({"a.py": "1\n"})
    (place / "out/dump").mkdir(parents=True)
    with pytest.raises(NotOursError):
        expect_ours(card_of(place / "out"), [place / "out/dump"])


@pytest.mark.parametrize("held", [".git", ".probepatch"])
def test_what_holds_a_repository_or_a_ledger_stays(root, held):
    (root / "dump/deep/down" / held).mkdir(parents=True)
    with pytest.raises(NotOursError) as raised:
        expect_ours(card_of(root), [root / "dump"])
    assert "deep/down" in str(raised.value.why)


def test_what_holds_the_task_card_the_weights_or_the_current_folder_stays(root, monkeypatch):
    held = card_of(root)
    held.path = root / "dump/task_card.json"
    for one, path in (
        (held, root / "dump"),
        (held, held.path),
        (card_of(root, model_path=str(root / "dump/step0")), root / "dump"),
    ):
        held.path.touch()
        with pytest.raises(NotOursError):
            expect_ours(one, [path])
    monkeypatch.chdir(root / "dump/step0")
    with pytest.raises(NotOursError):
        expect_ours(card_of(root), [root / "dump"])


def test_links_go_and_what_they_lead_to_stays(root, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/kept").touch()
    (root / "link").symlink_to(tmp_path / "mine")
    (root / "dump/inner").symlink_to(tmp_path / "mine")
    expect_ours(card_of(root), [root / "link", root / "dump"])
    assert delete([root / "link", root / "dump"])[1] == []
    assert (tmp_path / "mine/kept").exists()
    (root / "link").symlink_to(tmp_path / "mine")
    for path in (root / "link/kept", root / "link/..", root / "dump/../../mine"):
        with pytest.raises(NotOursError):
            expect_ours(card_of(root), [path])


def test_nothing_is_reverted_when_a_folder_may_not_be_deleted(card, patched, tmp_path):  # noqa: F811
    before = contents(patched)
    for folder in (tmp_path, patched, patched / "tinyrl", tmp_path / "artifacts"):
        answer("error", "restore", "--delete", folder, "--task", card, code=2)
    answer("error", "restore", "--reason", "password=hunter2hunter2", "--task", card, code=2)
    assert contents(patched) == before


def test_a_folder_that_cannot_be_deleted_is_a_fault(card, patched, tmp_path, monkeypatch):  # noqa: F811
    missing = tmp_path / "artifacts/none"
    assert restore(card, "--delete", missing)["deleted"] == [str(missing)]
    (tmp_path / "file").touch()
    monkeypatch.setattr("shutil.rmtree", lambda path: os.rmdir(path))  # as if it were on a disk that is read-only
    (tmp_path / "artifacts/full/x").mkdir(parents=True)
    gone, failed = delete([tmp_path / "artifacts/full"])
    assert gone == []
    assert "cannot be deleted" in failed[0]


def test_a_run_on_the_card_that_is_not_of_its_form_counts_as_running(tmp_path):
    made = Card.new()
    evidence = {"state": "done", "summary": "", "at": "2026-11-29T17:00:00Z", "files": {}, "facts": {}}
    made.data["stages"]["6"] = {**evidence, "result": {"runs": [{"job": 3}, 7, {"ended": {}, "job": {}}]}}
    assert len(running(made)) == 3


def test_what_the_capture_made_goes_from_a_work_folder_with_scripts_too(root, tmp_path, repo):
    """`inputs fix` makes the scripts' folder a tree of the ledger's, and the artefact root often lies in it."""
    below = card_of(root, train_checkout=str(tmp_path))
    expect_ours(below, [root / "dump"], by_name=True)
    with pytest.raises(NotOursError):
        expect_ours(below, [root / "dump"])
    place = repo({"run.sh": "1\n"})
    (place / "out/stub_source_round1").mkdir(parents=True)
    expect_ours(card_of(place / "out"), [place / "out/stub_source_round1"], by_name=True)
    for tree in (root, root / "dump"):  # the root itself, or what it contains
        with pytest.raises(NotOursError):
            expect_ours(card_of(root, train_checkout=str(tree)), [root / "dump/step0"], by_name=True)
