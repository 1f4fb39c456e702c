"""27: two runs on one tree, and somebody else's write in the middle of one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.public.driver import FUNCTION, PATCHED, Forks, case, end, everything, recipes, start

Checkout = Callable[[Path], Path]
ONE, TWO = recipes(case(27) / "recipe.yaml"), recipes(case(27) / "two.yaml")
SECOND = FUNCTION.replace(b"    return", b"    tap(x, 2)\n    return")
BOTH = PATCHED.replace(b"    return", b"    tap(x, 2)\n    return")
MINE = b"USER = 1\n"
LOSER = ("locked by", "changed", "interrupted", "out of date")


def together(*commands: list[str | Path]) -> list[int]:
    """Processes that start at the same time; each has to end well, or be refused with a reason."""
    codes = []
    for process in [start(*command) for command in commands]:
        code, answer = end(process)
        codes.append(code)
        if code:
            error = answer["error"]
            said = str([error, *error.get("findings", ())])
            assert code == 3, answer
            assert any(word in said for word in LOSER), answer
    assert 0 in codes, codes
    return codes


@pytest.mark.parametrize("kind", ["plain", "git"])
def test_27_side_by_side(checkout: Checkout, in_git: Checkout, tmp_path: Path, kind: str) -> None:
    root = (in_git if kind == "git" else checkout)(case(27))
    link = tmp_path / "link"
    link.symlink_to(root)
    path, before = root / "m.py", everything(root)
    for number in range(6):
        other = (root, link)[number % 2]
        together(["apply", root, *ONE], ["apply", other, *TWO])
        assert path.read_bytes() in (PATCHED, SECOND, BOTH), number
        together(["revert", root], ["revert", other] if number % 3 else ["apply", other, *ONE])
        together(["revert", root])
        assert everything(root) == before, f"round {number}: the original was lost"


# --- one held at each of its writes, the other on its way ---------------------------------------------------------------


def other_root(kind: str, root: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Two paths to one tree."""
    if kind == "same":
        return root, root
    if kind == "linked-root":
        (tmp_path / "link").symlink_to(root)
        return root, tmp_path / "link"
    sites = []
    (root / "__init__.py").touch()
    for environment in ("one", "two"):
        site = tmp_path / environment / "site-packages"
        site.mkdir(parents=True)
        sites.append(site)
    root.rename(sites[0] / "verl")
    (sites[1] / "verl").symlink_to(sites[0] / "verl")
    return sites[0], sites[1]


@pytest.mark.parametrize("kind", ["same", "linked-root", "linked-package"])
def test_27_one_lock_for_one_tree(checkout: Checkout, tmp_path: Path, forked: Forks, kind: str) -> None:
    root, other = other_root(kind, checkout(case(27)), tmp_path)
    first = recipes(case(27) / "verl.yaml") if kind == "linked-package" else ONE
    rivals: list[list[str | Path]] = [["apply", other, *first], ["revert", other]]
    rivals += [["ledger", "recover", other], ["ledger", "forget", other]]
    before, refused, unnamed = everything(root), list[object](), set[int]()
    for number in itertools.count(1):
        held = forked.run("apply", root, *first, at=number, deed="STOP")
        if not held["hit"]:
            break
        during = everything(root)
        for rival in rivals:
            reply = forked.run(*rival)
            assert reply["code"] in (0, 3), reply
            if reply["code"] == 3:
                assert everything(root) == during
                refused.append(rival[0])
                if "locked by another process" in reply["out"]:
                    unnamed.add(number)
                else:
                    assert f"locked by pid {held['pid']} " in reply["out"] or "was interrupted" in reply["out"], reply
        assert forked.go_on(held)["code"] in (0, 3)
        assert forked.run("revert", other)["code"] == 0
        assert everything(root) == before, number
    assert min(refused.count(command) for command in ("apply", "revert", "ledger")) > 10
    assert len(unnamed) <= 1, "the winner of the lock writes its name at once"


def test_27_a_dead_process_holds_no_lock(checkout: Checkout, forked: Forks) -> None:
    root = checkout(case(27))
    before, refused = everything(root), 0
    for number in itertools.count(1):
        dead = forked.run("apply", root, *ONE, at=8, deed="KILL")
        held = forked.run("apply", root, *ONE, at=number, deed="STOP")
        if not held["hit"]:
            break
        rival = forked.run("revert", root)
        assert rival["code"] in (0, 3)
        assert f"pid {dead['pid']} " not in rival["out"]
        refused += rival["code"] == 3
        assert forked.go_on(held, "KILL")["code"] == -9
        assert forked.run("apply", root, *TWO)["code"] == 0
        assert (root / "m.py").read_bytes() in (SECOND, BOTH)
        assert forked.run("revert", root)["code"] == 0
        assert everything(root) == before, number
    assert refused > 10


@pytest.mark.parametrize("verb", ["append", "rename"])
@pytest.mark.parametrize("what", ["apply", "revert"])
def test_27_a_write_by_somebody_else_is_never_lost(checkout: Checkout, forked: Forks, what: str, verb: str) -> None:
    root = checkout(case(27))
    path, aborted = root / "m.py", 0
    command: list[str | Path] = ["apply", root, *ONE] if what == "apply" else ["revert", root]
    for number in itertools.count(1):
        path.write_bytes(FUNCTION)
        if what == "revert":
            assert forked.run("apply", root, *ONE)["code"] == 0
        done = forked.run(*command, at=number, deed=f"{verb}:{path}")
        if not done["hit"]:
            break
        assert done["code"] in (0, 3), done
        aborted += done["code"] == 3
        saved = [copy.read_bytes() for copy in (root / ".probepatch/saved").glob("*/*")]
        assert path.read_bytes().count(MINE) == 1 or any(MINE in data for data in saved), number
        assert forked.run("revert", root)["code"] == 0
        assert path.read_bytes() == FUNCTION + MINE, number
        assert all(MINE in copy for copy in saved)
    assert aborted
    assert forked.run("revert", root)["code"] == 0
    assert path.read_bytes() == FUNCTION
    assert {entry.name for entry in root.rglob("*") if entry.is_file()} - {"m.py"} <= {"saved"}


@pytest.mark.parametrize("kind", ["plain", "git"])
@pytest.mark.parametrize("rival", ["apply", "revert"])
def test_27_a_patched_file_is_never_taken_for_the_original(
    checkout: Checkout, in_git: Checkout, forked: Forks, kind: str, rival: str
) -> None:
    """One run is held at each file that it opens, for reading too, while another goes all the way."""
    root = (in_git if kind == "git" else checkout)(case(27))
    before, refused = everything(root), 0
    for number in itertools.count(1):
        if rival == "revert":
            assert forked.run("apply", root, *TWO)["code"] == 0
        held = forked.run("apply", root, *ONE, at=number, deed="STOP", below=root)
        if not held["hit"]:
            break
        went = forked.run(rival, root, *(TWO if rival == "apply" else ()))["code"]
        done = forked.go_on(held)
        assert done["code"] in (0, 3), done
        refused += done["code"] == 3
        recorded = {edit["recipe"] for edit in forked.run("status", root)["answer"]["edits"]}
        wanted = {
            frozenset(): FUNCTION,
            frozenset({"one"}): PATCHED,
            frozenset({"two"}): SECOND,
            frozenset({"one", "two"}): BOTH,
        }
        assert (root / "m.py").read_bytes() == wanted[frozenset(recorded)], (number, went)
        assert forked.run("revert", root)["code"] == 0
        assert everything(root) == before, number
    assert refused
    assert number > 10


@pytest.mark.parametrize("command", ["status", "diff", "show", "verify"])
def test_27_reading_beside_a_revert(checkout: Checkout, forked: Forks, command: str) -> None:
    """What takes no lock tells the state before, the state after, or that it has to be asked again."""
    root = checkout(case(27))
    asked = ["ledger", command] if command in ("show", "verify") else [command]
    for number in itertools.count(1):
        assert forked.run("apply", root, *TWO)["code"] == 0
        held = forked.run(*asked, root, *(ONE if command == "diff" else ()), at=number, deed="STOP", below=root)
        assert forked.run("revert", root)["code"] == 0
        if not held["hit"]:
            break
        done = forked.go_on(held)
        assert done["code"] in (0, 3), done
    assert number > 1
