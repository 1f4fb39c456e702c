"""What stands in the ledger's folder, or in place of a target, that is not of our making; and records that were lost."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from codemods.errors import InvalidError, ProbePatchError, RefusedError
from patch_ledger import chain, lock, repair, swap, tree
from patch_ledger.admin import forget, recover, show, verify
from patch_ledger.records import intent_as_json
from patch_ledger.revert import revert
from patch_ledger.status import status
from patch_ledger.store import OBJECTS, SAVED, find_place, open_ledger
from tests.ledger.conftest import MODULE
from tests.ledger.trees import PlainTree, after_line, apply, git, insertion, snapshot

EDITS = {f"pkg/{name}.py": [after_line(MODULE, 1, b"    tap_value(x)\n")] for name in "ab"}
COMMANDS: list[Callable[[PlainTree], object]] = [
    status,
    show,
    revert,
    lambda tree: revert(tree, force=True),
    recover,
    forget,
    lambda tree: apply(tree, EDITS),
]
KINDS = ["plain", "in_git"]


@pytest.fixture(params=KINDS)
def checkout(request: pytest.FixtureRequest) -> PlainTree:
    found: PlainTree = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder of somebody's, with names like ours."""
    folder = tmp_path / "victim"
    folder.mkdir()
    for name in ("0" * 64, "ledger.jsonl", "lock", "precious"):
        (folder / name).write_bytes(b"precious")
    return folder


@pytest.mark.parametrize("name", [OBJECTS, SAVED, chain.NAME, lock.NAME])
@pytest.mark.parametrize("way", ["symbolic", "hard", "pipe", "other"])
def test_nothing_is_reached_through_the_ledgers_folder(checkout: PlainTree, victim: Path, name: str, way: str) -> None:
    apply(checkout, EDITS)
    mine = checkout.root / "pkg/a.py"
    mine.write_bytes(mine.read_bytes().replace(b"tap_value(x)", b"tap_value(x, 1)"))
    path = find_place(checkout) / name
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    if way == "symbolic":
        path.symlink_to(victim / name if (victim / name).exists() else victim)
    elif way == "hard":
        os.link(victim / "lock", path)
    elif way == "pipe":
        os.mkfifo(path)
    elif name in (OBJECTS, SAVED):
        path.write_bytes(b"")
    else:
        path.mkdir()
    before, files = snapshot(victim), snapshot(checkout.root)
    for command in COMMANDS:
        with pytest.raises(InvalidError, match=r"not a (file|folder) of our making"):
            command(checkout)
    assert verify(checkout).problems
    assert snapshot(victim) == before and snapshot(checkout.root) == files


def test_a_linked_folder_of_copies_is_not_written_to(plain: PlainTree, victim: Path) -> None:
    apply(plain, EDITS)
    path = plain.root / "pkg/a.py"
    path.write_bytes(path.read_bytes().replace(b"tap_value(x)", b"tap_value(x, 1)"))
    kept = find_place(plain) / SAVED
    kept.mkdir()
    (kept / str(tree.digest(path.read_bytes()))[:12]).symlink_to(victim)
    before = snapshot(victim)
    with pytest.raises(InvalidError, match="not a folder of our making"):
        revert(plain, force=True)
    assert snapshot(victim) == before and b"(x, 1)" in path.read_bytes()


def test_only_originals_are_removed_with_the_ledger(plain: PlainTree, victim: Path) -> None:
    apply(plain, EDITS)
    folder = find_place(plain) / OBJECTS
    (folder / "notes.txt").write_bytes(b"mine")
    (folder / ("f" * 64 + ".part")).symlink_to(victim / "lock")
    revert(plain)
    assert sorted(os.listdir(folder)) == ["f" * 64 + ".part", "notes.txt"]
    assert (victim / "lock").read_bytes() == b"precious" and status(plain).edits == ()


@pytest.mark.parametrize("way", ["pipe", "symbolic", "hard"])
def test_what_stands_where_an_original_is_written(plain: PlainTree, victim: Path, way: str) -> None:
    folder = plain.root / ".probepatch" / OBJECTS
    folder.mkdir(parents=True)
    part = folder / f"{tree.digest(MODULE)}.part"
    if way == "pipe":
        os.mkfifo(part)
    elif way == "symbolic":
        part.symlink_to(victim / "lock")
    else:
        os.link(victim / "lock", part)
    apply(plain, EDITS)
    assert (victim / "lock").read_bytes() == b"precious"
    revert(plain)
    assert os.listdir(plain.root) == ["pkg"]


@pytest.mark.parametrize("cut", ["emptied", "removed", "torn in the first line", "the last transaction"])
def test_lost_records_are_damage_and_the_originals_stay(checkout: PlainTree, cut: str) -> None:
    apply(checkout, EDITS)
    apply(
        checkout, {"pkg/c.py": [after_line(MODULE + b"# c\n", 1, b"    tap_c(x)\n", name="two/e", order=(1, 0))]}
    ) if ((checkout.root / "pkg/c.py").write_bytes(MODULE + b"# c\n")) else None
    place = find_place(checkout)
    path = place / chain.NAME
    lines = path.read_bytes().splitlines(keepends=True)
    if cut == "removed":
        path.unlink()
    else:
        path.write_bytes({"emptied": b"", "torn in the first line": lines[0][:99]}.get(cut, b"".join(lines[:2])))
    kept, files = snapshot(place / OBJECTS), snapshot(checkout.root)
    for command in (status, show, revert, recover, COMMANDS[-1]):
        with pytest.raises(InvalidError, match="lost records") as caught:
            command(checkout)
        assert str(place / OBJECTS) in str(caught.value.todo)
    assert "lost records" in verify(checkout).problems[0]
    assert snapshot(place / OBJECTS) == kept and snapshot(checkout.root) == files
    forget(checkout)
    assert snapshot(checkout.root) == files and verify(checkout).problems == () and status(checkout).edits == ()
    if place.exists():
        assert [len(list(folder.iterdir())) for folder in place.glob(f"ledger-*.{OBJECTS}")] == [len(kept)]


def test_a_run_that_died_before_its_originals_were_kept(plain: PlainTree, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    before = snapshot(plain.root)
    with monkeypatch.context() as patch:
        patch.setattr("patch_ledger.store.write_durably", full)
        with pytest.raises(RefusedError, match="No space"):
            apply(plain, EDITS)
    assert snapshot(plain.root) == before and os.listdir(plain.root) == ["pkg"]


def test_a_run_that_died_before_it_kept_a_new_base(checkout: PlainTree, monkeypatch: pytest.MonkeyPatch) -> None:
    path = checkout.root / "pkg/a.py"
    apply(checkout, EDITS)
    path.write_bytes(path.read_bytes() + b"# mine\n")

    def die(place: Path, contents: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("patch_ledger.transaction.keep_objects", die)
        patch.setattr("patch_ledger.transaction.Session._abort", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            apply(checkout, {"pkg/a.py": [after_line(MODULE + b"# mine\n", 1, b"    tap_value(x)\n")]})
    assert status(checkout).interrupted is not None
    assert recover(checkout).repaired is not None
    assert {edit.state for edit in status(checkout).edits} == {"nearby", "applied"}
    assert not revert(checkout).refused and path.read_bytes() == MODULE + b"# mine\n"


def block(path: Path, outside: Path, how: str) -> None:
    path.unlink()
    if how == "folder":
        path.mkdir()
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "link out":
        outside.write_bytes(MODULE)
        path.symlink_to(outside)
    elif how == "link to itself":
        path.symlink_to(path.name)
    else:
        with path.open("wb") as file:
            file.truncate(100 << 30)


@pytest.mark.parametrize("how", ["folder", "pipe", "link out", "link to itself", "sparse"])
def test_an_unreadable_target_has_a_state_and_holds_up_no_other(checkout: PlainTree, tmp_path: Path, how: str) -> None:
    apply(checkout, EDITS)
    path = checkout.root / "pkg/a.py"
    block(path, tmp_path / "outside.py", how)
    found = {edit.path: edit for edit in status(checkout).edits}
    assert found["pkg/a.py"].state == "unreadable" and found["pkg/a.py"].todo
    assert found["pkg/b.py"].state == "applied"
    with pytest.raises(RefusedError):
        apply(checkout, EDITS)
    receipt = revert(checkout, force=True)
    assert [(one.path, one.state) for one in receipt.refused] == [("pkg/a.py", "unreadable")]
    assert [one.path for one in receipt.files] == ["pkg/b.py"]
    assert (checkout.root / "pkg/b.py").read_bytes() == MODULE
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    path.write_bytes(MODULE.replace(b":\n", b":\n    tap_value(x)\n", 1))
    assert not revert(checkout).refused and path.read_bytes() == MODULE


def test_a_file_where_our_folder_was_holds_nothing_up(checkout: PlainTree) -> None:
    before = snapshot(checkout.root)
    apply(checkout, {"pkg/extra/payload.py": [insertion(0, b"X = 1\n", name="r/file")], **EDITS})
    shutil.rmtree(checkout.root / "pkg/extra")
    (checkout.root / "pkg/extra").write_bytes(b"mine\n")
    assert {edit.state for edit in status(checkout).edits} == {"gone", "applied"}
    assert recover(checkout).txn == "" and not revert(checkout).refused
    assert (checkout.root / "pkg/extra").read_bytes() == b"mine\n"
    (checkout.root / "pkg/extra").unlink()
    assert snapshot(checkout.root) == before


def forged(tree: PlainTree, **change: object) -> None:
    """An open transaction with good hashes that no run of ours wrote."""
    ledger = open_ledger(tree)
    record = intent_as_json(ledger.history[0][0])
    record["files"][0] |= change
    (ledger.place / chain.NAME).unlink()
    chain.append(ledger.place, chain.Chain(), record)


@pytest.mark.parametrize("path", ["pkg/a.py/x", "a" * 300, "pkg", "pkg/\udc80.py", "pkg/\ud800"])
def test_forget_survives_any_record(checkout: PlainTree, path: str) -> None:
    apply(checkout, EDITS)
    forged(checkout, path=path)
    for command in (status, show, revert, recover):
        try:
            command(checkout)
        except ProbePatchError as error:
            assert error.exit_code in (3, 4)
    assert forget(checkout).command == "forget"
    assert status(checkout).edits == () and verify(checkout).problems == ()


@pytest.mark.parametrize("field", ["recipe", "id", "symbol", "why", "inserted"])
def test_half_a_character_in_a_record_is_damage(checkout: PlainTree, field: str) -> None:
    apply(checkout, EDITS)
    edit = intent_as_json(open_ledger(checkout).history[0][0])["files"][0]["edits"][0]
    (edit["splices"][0] if field == "inserted" else edit)[field] = "\ud800"
    forged(checkout, edits=[edit])
    for command in (status, revert, recover):
        with pytest.raises(InvalidError, match="line 1"):
            command(checkout)
    forget(checkout)
    assert status(checkout).edits == ()


def failing(what: str) -> Callable[..., None]:
    def call(*args: object, **more: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM), what)

    return call


def test_a_system_that_refuses_the_roll_back(checkout: PlainTree, monkeypatch: pytest.MonkeyPatch) -> None:
    before = snapshot(checkout.root)
    with monkeypatch.context() as patch:
        calls = []

        def exchange(beside: swap.Beside) -> None:
            calls.append(beside.target.name)
            if len(calls) > 1:
                raise OSError(errno.EPERM, os.strerror(errno.EPERM), str(beside.target))
            swap.exchange(beside)

        patch.setattr("patch_ledger.transaction.exchange", exchange)
        patch.setattr(repair, "exchange", exchange)
        with pytest.raises(RefusedError, match=r"cannot be rolled back yet: pkg/a\.py") as caught:
            apply(checkout, EDITS)
        assert "ledger recover" in str(caught.value.todo)
        with pytest.raises(RefusedError, match="cannot be rolled back yet"):
            revert(checkout)
    cut = status(checkout).interrupted
    assert cut is not None and (cut.written, cut.total) == (1, 2)
    assert recover(checkout).repaired is not None
    assert snapshot(checkout.root) == before


def test_a_system_that_refuses_the_cleaning(checkout: PlainTree, monkeypatch: pytest.MonkeyPatch) -> None:
    before = snapshot(checkout.root)
    with monkeypatch.context() as patch:
        patch.setattr("patch_ledger.transaction.finish", failing("pkg/.probepatch-1"))
        receipt = apply(checkout, EDITS)
        assert receipt.txn and any("could not be removed" in note for note in receipt.notes)
        assert status(checkout).interrupted is None
        assert any("could not be removed" in note for note in recover(checkout).notes)
    revert(checkout)
    assert snapshot(checkout.root) == before


def test_a_record_that_could_not_be_read_again_is_not_written(
    checkout: PlainTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshot(checkout.root)
    monkeypatch.setattr(chain, "_LONGEST_LINE", 5000)
    with pytest.raises(RefusedError, match="too large for the ledger"):
        apply(checkout, {"pkg/payload.py": [insertion(0, b"X = 1\n" * 1000, name="r/file")]})
    assert snapshot(checkout.root) == before and status(checkout).edits == ()
    assert apply(checkout, EDITS).txn


def test_a_copied_worktree_is_told_whose_ledger_it_sees(in_git: PlainTree, tmp_path: Path) -> None:
    place, copied = tmp_path / "linked", tmp_path / "copy"
    git(in_git.root, "worktree", "add", "-q", str(place))
    git_dir = Path(git(place, "rev-parse", "--absolute-git-dir").strip())
    linked = PlainTree(place.resolve(), git_dir)
    apply(linked, EDITS)
    shutil.copytree(place, copied)
    copy = PlainTree(copied.resolve(), git_dir)
    files = snapshot(copy.root)
    for command in COMMANDS:
        with pytest.raises(RefusedError, match=f"recorded for {linked.root}"):
            command(copy)
    assert snapshot(copy.root) == files
    assert {edit.state for edit in status(linked).edits} == {"applied"}
    revert(linked)
    assert status(copy).edits == () and git(place, "status", "--porcelain") == ""


def test_a_worktree_that_was_moved_keeps_its_ledger(in_git: PlainTree, tmp_path: Path) -> None:
    place = tmp_path / "linked"
    git(in_git.root, "worktree", "add", "-q", str(place))
    linked = PlainTree(place.resolve(), Path(git(place, "rev-parse", "--absolute-git-dir").strip()))
    apply(linked, EDITS)
    moved = PlainTree(place.rename(tmp_path / "moved").resolve(), linked.git_dir)
    revert(moved)
    assert (moved.root / "pkg/a.py").read_bytes() == MODULE


def test_a_ledger_in_git_is_found_without_git(in_git: PlainTree, tmp_path: Path) -> None:
    place = tmp_path / "linked"
    git(in_git.root, "worktree", "add", "-q", str(place))
    for root, git_dir in (
        (in_git.root, in_git.git_dir),
        (place.resolve(), Path(git(place, "rev-parse", "--absolute-git-dir").strip())),
    ):
        apply(PlainTree(root, git_dir), EDITS)
        assert {edit.state for edit in status(PlainTree(root)).edits} == {"applied"}
        revert(PlainTree(root))
        assert (root / "pkg/a.py").read_bytes() == MODULE
