"""Dying in the middle, at every write: killed, terminated, interrupted."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.public.driver import FUNCTION, Forks, case, everything, probepatch, recipes, refusal

READY = b"READY = 1\n"
EDIT = "  - {{id: e{n}, file: m{n}.py, body_end: READY = 1, marker: false}}\n"
NEXT = (("status",), ("apply",), ("revert",), ("ledger", "recover"))


def fresh(root: Path, count: int) -> dict[str, bytes]:
    """A folder of modules, as they are before any patch."""
    files = {f"m{n}.py": FUNCTION.replace(b"def f", b"def f%d" % n) for n in range(1, count + 1)}
    root.mkdir(exist_ok=True)
    for name, data in files.items():
        (root / name).write_bytes(data)
    return files


def on_disk(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.glob("m*.py")}


def patched(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data + READY for name, data in files.items()}


def leftovers(root: Path) -> list[str]:
    """What is beside the modules, the ledger's own folder excepted."""
    return [path.name for path in root.iterdir() if path.suffix != ".py" and path.name != ".probepatch"]


def kept(root: Path) -> set[str]:
    """The digests of the originals that the ledger holds, and that are whole."""
    objects = root / ".probepatch/objects"
    whole = {path.name for path in objects.glob("*") if hashlib.sha256(path.read_bytes()).hexdigest() == path.name}
    return whole if (root / ".probepatch/ledger.jsonl").exists() else set()


def check_the_moment(forked: Forks, root: Path, files: dict[str, bytes], ready: dict[str, bytes]) -> int:
    """Right after the end of a process: nothing is torn, every original is kept, and status counts what is written."""
    now = on_disk(root)
    assert now.keys() == files.keys()
    assert all(now[name] in (files[name], ready[name]) for name in files)
    written = [name for name in files if now[name] == ready[name]]
    assert {hashlib.sha256(files[name]).hexdigest() for name in written} <= kept(root)
    found = forked.run("status", root)["answer"]
    if found["interrupted"] is not None:
        assert found["interrupted"]["total"] == len(files)
        return int(found["interrupted"]["written"])
    assert len(written) in (0, len(files))
    assert len(found["edits"]) == len(written)
    return -1


def dying(forked: Forks, root: Path, deed: str, *command: str | Path, step: int = 1) -> Iterator[int]:
    """A command that dies before its first write, its second, and so on, until it gets to its end."""
    for number in itertools.count(1, step):
        done = forked.run(*command, at=number, deed=deed)
        if not done["hit"]:
            assert number > 30
            assert done["code"] == 0, done
            return
        assert done["code"] == {"KILL": -9, "TERM": -15, "INT": 130}[deed], done
        yield number


@pytest.mark.parametrize("deed", ["KILL", "TERM", "INT"])
def test_20_apply_dies_at_every_write(tmp_path: Path, forked: Forks, deed: str) -> None:
    root = tmp_path / "work"
    recipe = recipes(case(20) / "recipe.yaml")
    files = fresh(root, 3)
    before, ready, seen = everything(root), patched(files), set()
    for number in dying(forked, root, deed, "apply", root, *recipe):
        seen.add(check_the_moment(forked, root, files, ready))
        command = NEXT[number % 4]
        again = forked.run(*command, root, *(recipe if command == ("apply",) else ()))
        assert again["code"] in (0, 1) if command == ("status",) else again["code"] == 0, again
        if command != ("status",):
            assert on_disk(root) in (files, ready)
            assert leftovers(root) == []
        if command == ("apply",):
            assert on_disk(root) == ready
        assert forked.run("revert", root)["code"] == 0
        assert everything(root) == before, number
    if deed == "INT":
        assert seen <= {-1}, "from the keyboard there is time to put everything back"
    else:
        assert {0, 1, 2, 3} <= seen


@pytest.mark.parametrize("deed", ["KILL", "TERM", "INT"])
def test_20_revert_dies_at_every_write(tmp_path: Path, forked: Forks, deed: str) -> None:
    root = tmp_path / "work"
    recipe = recipes(case(20) / "recipe.yaml")
    files = fresh(root, 3)
    before, ready = everything(root), patched(files)
    assert forked.run("apply", root, *recipe)["code"] == 0
    for number in dying(forked, root, deed, "revert", root, step=1 if deed == "KILL" else 3):
        now = on_disk(root)
        assert all(now[name] in (files[name], ready[name]) for name in files)
        command = NEXT[number % 4]
        again = forked.run(*command, root, *(recipe if command == ("apply",) else ()))
        assert again["code"] in (0, 1) if command == ("status",) else again["code"] == 0, again
        assert forked.run("revert", root)["code"] == 0
        assert everything(root) == before, number
        assert forked.run("apply", root, *recipe)["code"] == 0
        assert on_disk(root) == ready
    assert everything(root) == before


def test_20_forty_files(tmp_path: Path, forked: Forks) -> None:
    root, recipe = tmp_path / "work", tmp_path / "forty.yaml"
    head = (case(20) / "recipe.yaml").read_text().partition("edits:\n")[0]
    recipe.write_text(f"{head}edits:\n" + "".join(EDIT.format(n=n) for n in range(1, 41)))
    files = fresh(root, 40)
    before, ready, seen = everything(root), patched(files), set()
    for number in dying(forked, root, "KILL", "apply", root, *recipes(recipe), step=11):
        seen.add(check_the_moment(forked, root, files, ready))
        assert forked.run("revert", root)["code"] == 0
        assert everything(root) == before, number
    assert len([written for written in seen if 0 < written < 40]) > 1


def test_20_what_people_are_told(tmp_path: Path, forked: Forks) -> None:
    """The commands of a terminal, after a kill between the first file and the second."""
    root, recipe = tmp_path / "work", recipes(case(20) / "recipe.yaml")
    files = fresh(root, 3)
    for number in itertools.count(1):
        assert forked.run("apply", root, *recipe, at=number, deed="KILL")["code"] == -9
        cut = forked.run("status", root)["answer"]["interrupted"]
        if cut is not None and cut["written"] == 1:
            break
        assert forked.run("revert", root)["code"] == 0
    status = probepatch("status", root, code=1)["interrupted"]
    assert (status["command"], status["written"], status["total"]) == ("apply", 1, 3)
    said = refusal("diff", root, *recipe, code=3, kind="refused")
    assert "an earlier apply was interrupted, 1 of 3 files written" in said
    assert "`probepatch ledger recover`" in said
    repaired = probepatch("revert", root)["repaired"]
    assert (repaired["outcome"], len(repaired["put_back"])) == ("abort", 1)
    assert on_disk(root) == files
    assert sorted(os.listdir(root)) == sorted(files)
