"""Several processes, users and full disks: real ones."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codemods.errors import FindingError, ProbePatchError, RefusedError
from patch_ledger import lock
from patch_ledger.revert import revert
from patch_ledger.status import status
from patch_ledger.transaction import session
from tests.ledger.conftest import MODULE
from tests.ledger.scenario import edits_of
from tests.ledger.test_killed import child, fresh, no_residue, rounds
from tests.ledger.trees import PlainTree, after_line, apply, insertion, snapshot

spawn = multiprocessing.get_context("fork")
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def _apply(tree: PlainTree, recipe: str, order: int) -> None:
    try:
        apply(
            tree,
            {
                "pkg/a.py": [
                    after_line(MODULE, 1, b"    %b(x)\n" % recipe.encode(), name=f"{recipe}/e", order=(order, 0))
                ]
            },
        )
    except (RefusedError, FindingError):
        os._exit(3)


def _revert(tree: PlainTree) -> None:
    try:
        revert(tree)
    except RefusedError:
        os._exit(3)


def together(*calls: tuple[Callable[..., None], tuple[object, ...]]) -> list[int | None]:
    running = [spawn.Process(target=target, args=args) for target, args in calls]
    for process in running:
        process.start()
    for process in running:
        process.join(60)
    return [process.exitcode for process in running]


@pytest.mark.parametrize("kind", ["plain", "git"])
def test_two_processes_fifty_rounds(tmp_path: Path, kind: str) -> None:
    tree = fresh(tmp_path / "t", kind)
    path = tree.root / "pkg/a.py"
    for number in range(50):
        codes = together((_apply, (tree, "one", 0)), (_apply, (tree, "two", 1)))
        assert set(codes) <= {0, 3} and 0 in codes, codes
        codes = together((_revert, (tree,)), (_revert, (tree,)) if number % 2 else (_apply, (tree, "one", 0)))
        assert set(codes) <= {0, 3}, codes
        revert(tree)
        assert path.read_bytes() == MODULE, number
    no_residue(tree)


def test_the_loser_is_told_who_holds_the_lock(plain: PlainTree) -> None:
    with session(plain), pytest.raises(RefusedError, match=rf"locked by pid {os.getpid()} on \S+ since \d{{4}}"):
        apply(plain, {"pkg/a.py": [after_line(MODULE, 1, b"    tap(x)\n")]})
    assert os.listdir(plain.root) == ["pkg"]


def test_a_lock_file_of_a_dead_process_blocks_nobody(plain: PlainTree) -> None:
    (plain.root / ".probepatch").mkdir()
    (plain.root / ".probepatch" / lock.NAME).write_text("999999 host 2024-01-01T00:00:00Z\n")
    assert apply(plain, {"pkg/a.py": [after_line(MODULE, 1, b"    tap(x)\n")]}).txn


def as_nobody(call: Callable[[], None]) -> int:
    """Run ``call`` in a child without root's rights; its exit code (3: refused)."""

    def run() -> None:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        try:
            call()
        except ProbePatchError as error:
            print(error.what, file=sys.stderr, flush=True)
            os._exit(error.exit_code)

    process = spawn.Process(target=run)
    process.start()
    process.join(60)
    assert process.exitcode is not None
    return process.exitcode


@pytest.fixture
def of_nobody() -> Iterator[PlainTree]:
    """A tree that belongs to an ordinary user, at a place that this user can reach."""
    folder = Path(tempfile.mkdtemp(dir="/tmp")).resolve()
    folder.chmod(0o755)
    tree = fresh(folder / "tree", "plain")
    for parent, names, files in os.walk(tree.root):
        for path in (parent, *(os.path.join(parent, name) for name in (*names, *files))):
            os.chown(path, 65534, 65534)
    yield tree
    shutil.rmtree(folder)


@root_only
def test_an_ordinary_user_and_what_the_user_may_not_write(
    of_nobody: PlainTree, capfd: pytest.CaptureFixture[str]
) -> None:
    tree = of_nobody
    edits = {f"pkg/{name}.py": [after_line(MODULE, 1, b"    tap(x)\n")] for name in "abc"}
    before = snapshot(tree.root)
    os.chown(tree.root / "pkg/b.py", 0, 0)
    assert as_nobody(lambda: apply(tree, edits) and None) == 3
    assert "pkg/b.py is read-only (owner root:root, mode 0644)" in capfd.readouterr().err
    (tree.root / "pkg/b.py").chmod(0o666)
    assert as_nobody(lambda: apply(tree, edits) and None) == 3
    assert "would change its owner" in capfd.readouterr().err
    os.chown(tree.root / "pkg/b.py", 65534, 65534)
    (tree.root / "pkg/b.py").chmod(0o644)
    assert snapshot(tree.root) == before
    assert as_nobody(lambda: apply(tree, edits) and None) == 0
    assert as_nobody(lambda: revert(tree) and None) == 0
    assert snapshot(tree.root) == before


@root_only
def test_root_leaves_files_to_their_owner(of_nobody: PlainTree) -> None:
    tree = of_nobody
    apply(tree, edits_of(tree))
    owners = {os.stat(os.path.join(folder, name)).st_uid for folder, _n, files in os.walk(tree.root) for name in files}
    assert owners == {65534}
    assert as_nobody(lambda: revert(tree) and None) == 0
    assert sorted(os.listdir(tree.root)) == ["pkg"]


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    place = tmp_path / "tiny"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("cannot mount")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_changes_nothing(tiny: Path) -> None:
    edits = {f"pkg/{name}.py": [insertion(0, b"# " + b"x" * 60_000 + b"\n")] for name in "abc"}
    refused = 0
    for free_pages in range(0, 140, 5):
        tree = fresh(tiny / "t", "plain")
        before = snapshot(tree.root)
        space = os.statvfs(tiny)
        (tiny / "filler").write_bytes(b"\0" * max(0, (space.f_bavail - free_pages) * space.f_frsize))
        for command in (lambda tree: apply(tree, edits), revert):
            last = snapshot(tree.root)
            try:
                command(tree)
            except RefusedError:
                refused += 1
                assert snapshot(tree.root) == last, free_pages
                no_residue(tree)
        (tiny / "filler").unlink()
        revert(tree)
        assert snapshot(tree.root) == before and os.listdir(tree.root) == ["pkg"], free_pages
        shutil.rmtree(tree.root)
    assert 0 < refused < 56


@root_only
def test_a_read_only_mount_inside_the_tree_is_named(plain: PlainTree) -> None:
    folder = plain.root / "pkg/ro"
    folder.mkdir()
    (folder / "d.py").write_bytes(MODULE)
    mounted = (
        subprocess.run(["mount", "--bind", str(folder), str(folder)], capture_output=True, check=False).returncode == 0
    )
    if (
        not mounted
        or subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], capture_output=True, check=False).returncode
    ):
        pytest.skip("cannot mount")
    try:
        with pytest.raises(RefusedError, match="pkg/ro is not writable"):
            apply(plain, {f"pkg/{name}.py": [after_line(MODULE, 1, b"    tap(x)\n")] for name in ("a", "ro/d")})
        assert (plain.root / "pkg/a.py").read_bytes() == MODULE
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("what", ["apply", "revert"])
def test_without_exchange_hard_links_do(tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGER_TEST_NO_EXCHANGE", "1")
    for tree, number in rounds(tmp_path, "plain", what):
        done = child(tree, what, number, ("KILL", f"append:{tree.root / 'pkg/b.py'}")[number % 2])
        assert done.returncode in (-9, 0, 3)
        mine = b"USER = 1\n" if number % 2 else b""
        receipt = revert(tree)
        assert not receipt.refused and (tree.root / "pkg/b.py").read_bytes() == MODULE + mine, number
        no_residue(tree)
        assert status(tree).edits == ()
