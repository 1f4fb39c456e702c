"""Apply, verify, revert on eight nodes: all of them or none."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.conftest import BEFORE, FILES, ROOT, Machines, checked, contents

pytestmark = pytest.mark.fleet


@contextmanager
def read_only(tree: Path) -> Iterator[None]:
    """Nobody may write into the tree: not even root, where the file system knows that; else its lock is held."""
    if os.geteuid() != 0:
        folders = [tree, *(path for path in tree.rglob("*") if path.is_dir())]
        for folder in folders:
            folder.chmod(0o555)
        yield
        for folder in folders:
            folder.chmod(0o755)
    elif subprocess.run(["chattr", "-R", "+i", str(tree)], capture_output=True).returncode == 0:
        yield
        subprocess.run(["chattr", "-R", "-i", str(tree)], check=True)
    else:
        with locked(tree):
            yield


@contextmanager
def locked(tree: Path) -> Iterator[None]:
    """As an apply on this machine does it."""
    place = tree / ".probepatch"
    place.mkdir(exist_ok=True)
    with (place / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    (place / "lock").unlink()
    place.rmdir()


def alone(command: str, tree: Path, *words: str) -> None:
    """probepatch on one machine, without a fleet."""
    entry = [sys.executable, str(ROOT / "probepatch.py"), command, str(tree)]
    subprocess.run([*entry, *words], check=True, capture_output=True)


def away(answer: dict[str, Any]) -> list[str]:
    """Ray takes some seconds to say that a node is gone; until then the node has no answer."""
    return [*answer["absent"], *(one["node"] for one in answer["troubles"])]


def test_eight_nodes(machines: Machines) -> None:
    trees, names = machines.trees, machines.names
    drifted = trees[2] / "tinyrl/trainer/worker.py"
    drifted.write_bytes(drifted.read_bytes().replace(b"def ", b"def new_"))
    alone("apply", trees[7], *FILES)
    patched = contents(trees[7])

    # one drifted: nothing is written anywhere, and it is named
    error = machines.answer("apply", *FILES, code=1)["error"]
    assert error["what"] == "nothing was written: 1 of 8 nodes cannot take part"
    (detail,) = error["details"]
    assert detail.startswith(f"{names[2]}: tinyrl/trainer/worker.py")
    assert all(contents(tree) == BEFORE for number, tree in enumerate(trees) if number not in (2, 7))

    # one cannot be written: what the others wrote is taken back
    drifted.write_bytes(BEFORE["tinyrl/trainer/worker.py"])
    with read_only(trees[5]):
        done = machines.answer("apply", *FILES, code=1)
        assert not done["complete"]
        expected = dict.fromkeys(names, "taken-back") | {names[5]: "refused", names[7]: "already"}
        assert machines.states(done) == expected
        assert next(tree["why"] for tree in done["trees"] if tree["nodes"] == [names[5]])
    assert all(contents(tree) == BEFORE for tree in trees[:7])
    assert contents(trees[7]) == patched

    # all can: a half run is completed
    done = machines.answer("apply", *FILES)
    assert machines.states(done) == dict.fromkeys(names, "written") | {names[7]: "already"}
    assert [{k: v for k, v in contents(tree).items() if k in BEFORE} for tree in trees] == [
        {k: v for k, v in patched.items() if k in BEFORE}
    ] * 8
    shown = machines.run("status")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines()[-1] == "every tree is alike"

    # a node goes: status names it, and revert goes on for the others
    machines.kill(6)
    found = machines.answer("status", code=1)
    assert (found["even"], away(found), len(found["trees"])) == (False, [names[6]], 7)
    out = machines.answer("revert", code=1)
    assert (out["finished"], away(out)) == (False, [names[6]])
    assert all(tree["exact"] for tree in out["trees"])
    assert all(contents(tree) == BEFORE for number, tree in enumerate(trees) if number != 6)

    # it comes back, under another name, with its tree as it was
    old = names[6]
    machines.come_back(6, "node6-again")
    found = machines.answer("status", code=1)
    states = dict.fromkeys(names, "clean") | {"node6-again": "patched"}
    assert (machines.states(found), found["absent"]) == (states, [])
    assert found["last"]["node"] == old
    out = machines.answer("restore")
    assert out["finished"]
    assert all(contents(tree) == BEFORE for tree in trees)


WAITS = """
import os, sys, time
if "apply" in sys.orig_argv and sys.orig_argv[1].endswith("probepatch.py"):
    open("{ready}", "w").close()
    while not os.path.exists("{go}"):
        time.sleep(0.05)
"""


def test_a_held_lock_and_a_second_fleet(machines: Machines) -> None:
    only = machines.only(0, 1)
    with locked(machines.trees[1]):
        done = machines.answer("apply", *only, *FILES, code=1)
        assert list(machines.states(done).values()) == ["taken-back", "refused"]
        assert "locked by" in done["trees"][1]["why"]
    assert [contents(tree) for tree in machines.trees[:2]] == [BEFORE, BEFORE]

    ready, go = machines.base / "ready", machines.base / "go"
    machines.inject(1, WAITS.format(ready=ready, go=go))
    with machines.start("apply", *only, *FILES) as first:
        while not ready.exists():
            assert first.poll() is None
        machines.heal(1)
        error = machines.answer("apply", *machines.only(1, 3), *FILES, code=3)["error"]
        assert error["kind"] == "busy"
        go.touch()
        out, errors = first.communicate()
    assert first.returncode == 0, errors
    assert checked("apply", out)["complete"]
    assert contents(machines.trees[3]) == BEFORE
    assert machines.answer("revert", *machines.only(0, 1, 3))["finished"]
    assert [contents(tree) for tree in machines.trees[:4]] == [BEFORE] * 4
    ready.unlink()
    go.unlink()


def test_the_same_tree_on_many_nodes_is_patched_once(machines: Machines) -> None:
    place = ["--path", str(machines.trees[0]), *machines.only(0, 1, 2)]
    (tree,) = machines.answer("apply", *place, *FILES)["trees"]
    assert (tree["nodes"], tree["state"]) == (machines.names[:3], "written")
    (tree,) = machines.answer("restore", *place)["trees"]
    assert (tree["nodes"], tree["exact"], tree["marks"]) == (machines.names[:3], True, [])
    assert contents(machines.trees[0]) == BEFORE
