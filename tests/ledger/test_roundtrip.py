"""Apply, status, revert: what an engineer sees on a tree that nobody else touches."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codemods.errors import FindingError, RefusedError
from codemods.plan import FilePlan, Plan
from patch_ledger.admin import recover, show, verify
from patch_ledger.apply import commit
from patch_ledger.merge import merge, read_base
from patch_ledger.revert import revert
from patch_ledger.status import status
from patch_ledger.store import open_ledger
from tests.ledger.conftest import MODULE
from tests.ledger.trees import PlainTree, after_line, apply, around, git, insertion, sha, snapshot

TAP = b"    tap(x)\n"


def states(tree: PlainTree) -> list[tuple[str, str]]:
    return [(edit.edit, edit.state) for edit in status(tree).edits]


@pytest.fixture(params=["plain", "in_git"])
def tree(request: pytest.FixtureRequest) -> PlainTree:
    found: PlainTree = request.getfixturevalue(request.param)
    return found


def test_apply_twice_and_revert_twice(tree: PlainTree) -> None:
    path = tree.root / "pkg/a.py"
    edits = {"pkg/a.py": [after_line(MODULE, 1, TAP, name="r/e1")]}
    seen = []
    assert apply(tree, edits).txn
    seen.append(sha(path.read_bytes()))
    assert apply(tree, edits).txn == ""
    seen.append(sha(path.read_bytes()))
    assert states(tree) == [("e1", "applied")]
    assert len(show(tree)) == 1
    seen.append(sha(path.read_bytes()))
    receipt = revert(tree)
    assert receipt.proof is not None and receipt.proof.exact
    seen.append(sha(path.read_bytes()))
    again = revert(tree)
    assert again.txn == "" and not again.refused
    seen.append(sha(path.read_bytes()))
    patched, original = sha(MODULE.replace(b":\n", b":\n" + TAP, 1)), sha(MODULE)
    assert seen == [patched, patched, patched, original, original]


def test_a_plain_folder_keeps_nothing_of_ours(plain: PlainTree) -> None:
    before = snapshot(plain.root)
    apply(plain, {"pkg/a.py": [after_line(MODULE, 1, TAP)]})
    assert (plain.root / ".probepatch").is_dir()
    revert(plain)
    assert snapshot(plain.root) == before
    assert sorted(os.listdir(plain.root)) == ["pkg"]


def test_reading_makes_nothing(plain: PlainTree) -> None:
    assert status(plain).place == ""
    assert show(plain) == [] and verify(plain).problems == ()
    assert revert(plain).txn == "" and recover(plain).txn == ""
    assert sorted(os.listdir(plain.root)) == ["pkg"]


def test_two_recipes_come_out_in_any_order(tree: PlainTree) -> None:
    apply(tree, {"pkg/a.py": [after_line(MODULE, 1, b"    one(x)\n", name="one/e", order=(0, 0))]})
    apply(tree, {"pkg/a.py": [after_line(MODULE, 2, b"    two(x)\n", name="two/e", order=(1, 0))]})
    path = tree.root / "pkg/a.py"
    revert(tree, recipe="one")
    assert path.read_bytes() == MODULE.replace(b"y = x + 1\n", b"y = x + 1\n    two(x)\n")
    apply(tree, {"pkg/a.py": [after_line(MODULE, 1, b"    one(x)\n", name="one/e")]})
    revert(tree, edit="two/e")
    assert path.read_bytes() == MODULE.replace(b"(x):\n", b"(x):\n    one(x)\n", 1)
    revert(tree)
    assert path.read_bytes() == MODULE


def test_a_changed_recipe_replaces_its_older_edits(tree: PlainTree) -> None:
    path = tree.root / "pkg/a.py"
    apply(tree, {"pkg/a.py": [after_line(MODULE, 1, TAP)], "pkg/b.py": [after_line(MODULE, 1, TAP)]})
    apply(tree, {"pkg/a.py": [after_line(MODULE, 1, b"    tap(x, tag='b')\n")]})
    assert path.read_bytes().count(b"tap") == 1
    assert (tree.root / "pkg/b.py").read_bytes() == MODULE, "the new version no longer touches it"
    revert(tree)
    assert path.read_bytes() == MODULE


def test_added_file_goes_with_its_bytecode_and_folders(tree: PlainTree) -> None:
    before = snapshot(tree.root)
    apply(tree, {"pkg/deep/er/payload.py": [insertion(0, b"X = 1\n", name="r/file")]})
    command = [sys.executable, "-c", "import pkg.deep.er.payload"]
    subprocess.run(command, cwd=tree.root, check=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""})
    assert list((tree.root / "pkg/deep/er/__pycache__").iterdir())
    receipt = revert(tree)
    assert receipt.proof is not None and receipt.proof.exact and receipt.proof.residue == ()
    after = {path: kind for path, kind in snapshot(tree.root).items() if "pkg/__pycache__" not in path}
    assert after == before


def test_a_shared_payload_stays_until_its_last_recipe_goes(plain: PlainTree) -> None:
    path = plain.root / "pkg/payload.py"
    apply(plain, {"pkg/payload.py": [insertion(0, b"X = 1\n", name="one/file", shared=True)]})
    apply(plain, {"pkg/payload.py": [insertion(0, b"X = 1\n", name="two/file", shared=True)]})
    revert(plain, recipe="one")
    assert path.read_bytes() == b"X = 1\n"
    revert(plain, recipe="two")
    assert not path.exists()


def test_modes_survive(plain: PlainTree) -> None:
    for name, mode in (("a", 0o755), ("b", 0o600)):
        (plain.root / f"pkg/{name}.py").chmod(mode)
    before = snapshot(plain.root)
    edits = {f"pkg/{name}.py": [after_line(MODULE, 1, TAP)] for name in "ab"}
    apply(plain, edits)
    assert [(plain.root / f"pkg/{name}.py").stat().st_mode & 0o777 for name in "ab"] == [0o755, 0o600]
    revert(plain)
    assert snapshot(plain.root) == before


def test_extended_attributes_survive(plain: PlainTree) -> None:
    path = plain.root / "pkg/a.py"
    try:
        os.setxattr(path, "user.note", b"mine")
    except OSError:
        pytest.skip("no extended attributes here")
    apply(plain, {"pkg/a.py": [after_line(MODULE, 1, TAP)]})
    assert os.getxattr(path, "user.note") == b"mine"
    revert(plain)
    assert os.getxattr(path, "user.note") == b"mine"


def test_a_read_only_file_stops_the_whole_set_by_name(plain: PlainTree) -> None:
    (plain.root / "pkg/b.py").chmod(0o444)
    before = snapshot(plain.root)
    with pytest.raises(RefusedError, match=r"pkg/b\.py is read-only.*0444"):
        apply(plain, {f"pkg/{name}.py": [after_line(MODULE, 1, TAP)] for name in "abc"})
    assert snapshot(plain.root) == before
    assert sorted(os.listdir(plain.root)) == ["pkg"]


def test_a_read_only_folder_stops_the_whole_set_by_name(plain: PlainTree) -> None:
    folder = plain.root / "pkg/ro"
    folder.mkdir()
    (folder / "d.py").write_bytes(MODULE)
    folder.chmod(0o555)
    before = snapshot(plain.root)
    try:
        with pytest.raises(RefusedError, match=r"pkg/ro is not writable.*0555"):
            apply(plain, {"pkg/a.py": [after_line(MODULE, 1, TAP)], "pkg/ro/d.py": [after_line(MODULE, 1, TAP)]})
        assert snapshot(plain.root) == before
    finally:
        folder.chmod(0o755)


def test_a_hard_link_elsewhere_keeps_its_bytes(plain: PlainTree, tmp_path: Path) -> None:
    cache = tmp_path / "cache.py"
    os.link(plain.root / "pkg/a.py", cache)
    receipt = apply(plain, {"pkg/a.py": [after_line(MODULE, 1, TAP)]})
    assert cache.read_bytes() == MODULE
    assert "link count was 2" in receipt.files[0].notes[0]
    assert show(plain)[0]["files"][0]["links"] == 2
    revert(plain)
    assert cache.read_bytes() == MODULE == (plain.root / "pkg/a.py").read_bytes()


def test_a_symlink_inside_stays_one_and_its_file_is_patched(plain: PlainTree) -> None:
    link = plain.root / "pkg/link.py"
    link.symlink_to("a.py")
    receipt = apply(plain, {"pkg/link.py": [after_line(MODULE, 1, TAP)]})
    assert link.is_symlink() and receipt.files[0].path == "pkg/a.py"
    assert b"tap(x)" in (plain.root / "pkg/a.py").read_bytes()
    twice = Plan(tuple(FilePlan(name, MODULE, MODULE, ()) for name in ("pkg/a.py", "pkg/link.py")))
    with pytest.raises(RefusedError, match="same file"):
        commit(plain, twice)
    revert(plain)
    assert link.is_symlink() and (plain.root / "pkg/a.py").read_bytes() == MODULE


def test_a_symlink_out_of_the_tree_is_refused(plain: PlainTree, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_bytes(MODULE)
    (plain.root / "pkg/link.py").symlink_to(outside)
    with pytest.raises(RefusedError, match="leads out of the tree"):
        apply(plain, {"pkg/link.py": [after_line(MODULE, 1, TAP)]})
    assert outside.read_bytes() == MODULE


@pytest.mark.parametrize(
    "path", ["../x.py", "/etc/passwd", "pkg/../../x.py", ".git/hooks/post-commit", "", "pkg//a.py"]
)
def test_paths_that_are_none_of_ours_are_refused(plain: PlainTree, path: str) -> None:
    with pytest.raises(RefusedError, match="not a path inside the tree"):
        read_base(open_ledger(plain), path)


def test_a_file_that_changed_since_the_plan_stops_the_set(plain: PlainTree) -> None:
    ledger = open_ledger(plain)
    edits = {f"pkg/{name}.py": [after_line(MODULE, 1, TAP)] for name in "ab"}
    plan = merge(ledger, {path: read_base(ledger, path) for path in edits}, edits, {"r": "d"})
    (plain.root / "pkg/b.py").write_bytes(MODULE + b"# mine\n")
    with pytest.raises(RefusedError, match=r"pkg/b\.py was changed since it was read"):
        commit(plain, plan)
    assert (plain.root / "pkg/a.py").read_bytes() == MODULE


def test_git_state_is_the_same_after_revert(in_git: PlainTree) -> None:
    root = in_git.root
    (root / "pkg/a.py").write_bytes(MODULE + b"# my unstaged note\n")
    (root / "pkg/b.py").write_bytes(MODULE + b"# staged\n")
    git(root, "add", "pkg/b.py")
    (root / "untracked.txt").write_text("scratch")
    questions = (("status", "--porcelain"), ("diff",), ("diff", "--cached"), ("stash", "list"))
    before = [git(root, *question) for question in questions]
    apply(in_git, {"pkg/a.py": [after_line(MODULE, 1, TAP)]}, git_diff="digest")
    receipt = revert(in_git, git_diff=lambda paths: "digest" if paths == ["pkg/a.py"] else None)
    assert receipt.proof is not None and receipt.proof.exact and receipt.proof.git_diff_equal
    assert [git(root, *question) for question in questions] == before


def test_git_clean_does_not_destroy_the_ledger(in_git: PlainTree) -> None:
    apply(in_git, {"pkg/a.py": [after_line(MODULE, 1, TAP)], "pkg/new.py": [insertion(0, b"X = 1\n", name="r/f")]})
    git(in_git.root, "clean", "-fdxq")
    assert states(in_git) == [("e", "applied"), ("f", "gone")]
    revert(in_git)
    assert git(in_git.root, "status", "--porcelain") == ""


def test_a_linked_worktree_has_a_ledger_of_its_own(in_git: PlainTree, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(in_git.root, "worktree", "add", "-q", str(other))
    linked = PlainTree(other.resolve(), Path(git(other, "rev-parse", "--absolute-git-dir").strip()))
    apply(linked, {"pkg/a.py": [after_line(MODULE, 1, TAP)]})
    assert states(in_git) == []
    assert git(in_git.root, "status", "--porcelain") == ""
    revert(linked)
    assert git(other, "status", "--porcelain") == ""


def test_a_tree_that_became_a_repository_keeps_its_ledger(plain: PlainTree) -> None:
    apply(plain, {"pkg/a.py": [after_line(MODULE, 1, TAP)]})
    git(plain.root, "init", "-q")
    tracked = PlainTree(plain.root, plain.root / ".git")
    assert states(tracked) == [("e", "applied")]
    revert(tracked)
    assert (plain.root / "pkg/a.py").read_bytes() == MODULE


def test_a_tree_that_was_moved_is_reverted_at_its_new_place(plain: PlainTree, tmp_path: Path) -> None:
    apply(plain, {"pkg/a.py": [after_line(MODULE, 1, TAP)]})
    moved = PlainTree(plain.root.rename(tmp_path / "moved"))
    revert(moved)
    assert (moved.root / "pkg/a.py").read_bytes() == MODULE


def test_committed_lines_are_named(in_git: PlainTree) -> None:
    apply(in_git, {"pkg/a.py": [after_line(MODULE, 1, TAP)]})
    assert states(in_git) == [("e", "applied")]
    git(in_git.root, "commit", "-qam", "oops")
    assert states(in_git) == [("e", "committed")]
    assert [edit.state for edit in status(in_git, head=False).edits] == ["applied"]
    revert(in_git)
    assert (in_git.root / "pkg/a.py").read_bytes() == MODULE


def test_a_reset_checkout_is_gone_and_can_be_patched_again(in_git: PlainTree) -> None:
    edits = {"pkg/a.py": [after_line(MODULE, 1, TAP)]}
    apply(in_git, edits)
    git(in_git.root, "checkout", "-q", ".")
    assert states(in_git) == [("e", "gone")]
    assert apply(in_git, edits).txn
    git(in_git.root, "checkout", "-q", ".")
    receipt = revert(in_git)
    assert "gone" in receipt.notes[0] and states(in_git) == []
    assert apply(in_git, edits).txn and states(in_git) == [("e", "applied")]


def test_wrapped_twice_and_unwrapped_in_any_order(tree: PlainTree) -> None:
    outer, inner = around(MODULE, 2, 3, "outer/w", (0, 0)), around(MODULE, 2, 2, "inner/w", (1, 0))
    path = tree.root / "pkg/a.py"
    apply(tree, {"pkg/a.py": [outer, inner]})
    both = path.read_bytes()
    compile(both, "a", "exec")
    for recipe in ("outer", "inner"):
        revert(tree, recipe=recipe)
        compile(path.read_bytes(), "a", "exec")
        assert path.read_bytes().count(b"finally") == 1
        apply(tree, {"pkg/a.py": [outer if recipe == "outer" else inner]})
        assert path.read_bytes() == both
    revert(tree)
    assert path.read_bytes() == MODULE


def test_changed_inside_stops_a_plan(plain: PlainTree) -> None:
    path = plain.root / "pkg/a.py"
    apply(plain, {"pkg/a.py": [after_line(MODULE, 1, b"    tap_value(x)\n")]})
    path.write_bytes(path.read_bytes().replace(b"tap_value(x)", b"tap_value(x, 2)"))
    assert states(plain) == [("e", "inside")]
    with pytest.raises(FindingError, match="r/e is changed inside"):
        apply(plain, {"pkg/a.py": [after_line(MODULE, 2, TAP, name="two/e")]})
