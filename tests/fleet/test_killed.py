"""Nodes and drivers that die midway: every tree ends as before or as after, `status` says which, `revert` ends byte-exact."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.fleet.conftest import BEFORE, FILES, Machines, checked, contents, until

pytestmark = pytest.mark.fleet

STAYS = """
import atexit, os, sys, time

def stay():
    with open("{file}.new", "w") as file:
        file.write(str(os.getpid()))
    os.rename("{file}.new", "{file}")
    time.sleep(600)

if "apply" in sys.orig_argv and sys.orig_argv[1].endswith("probepatch.py"):
    atexit.register(stay)
"""

DIES = """
import os, signal, sys

written = []

def watch(event, arguments):
    if event == "os.link" or (event == "ctypes.dlsym" and arguments[1] == "renameat2"):  # a file takes its place
        written.append(event)
        if len(written) == 2:
            os.kill(int(open("{driver}").read()), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)

if "apply" in sys.orig_argv and sys.orig_argv[1].endswith("probepatch.py"):
    sys.addaudithook(watch)
"""


def _changed(tree: Path) -> bool:
    return any(data != BEFORE.get(name) for name, data in contents(tree).items() if name.startswith("tinyrl/"))


def test_a_node_killed_between_commit_and_report(machines: Machines) -> None:
    committed = machines.base / "committed.pid"
    machines.inject(2, STAYS.format(file=committed))
    with machines.start("apply", *machines.only(0, 1, 2), *FILES) as driver:
        until(committed.exists)
        machines.kill(2)
        os.kill(int(committed.read_text()), signal.SIGKILL)
        committed.unlink()
        out, errors = driver.communicate()
    assert driver.returncode == 1, out + errors
    done = checked("apply", out)
    assert not done["complete"]
    assert list(machines.states(done).values()) == ["taken-back", "taken-back", "lost"]
    assert [_changed(tree) for tree in machines.trees[:3]] == [False, False, True]
    machines.heal(2)

    machines.come_back(2, "node2-back")
    three = machines.only(0, 1, 2)
    found = machines.answer("status", *three, code=1)
    assert machines.states(found) == {machines.names[0]: "clean", machines.names[1]: "clean", "node2-back": "patched"}
    assert machines.answer("revert", *three)["finished"]
    assert [contents(tree) for tree in machines.trees] == [BEFORE] * 8


def test_a_driver_killed_midway(machines: Machines) -> None:
    two = machines.only(0, 1)
    number = machines.base / "driver"
    machines.inject(1, DIES.format(driver=number))
    with machines.start("apply", *two, *FILES) as driver:
        number.write_text(str(driver.pid))
        driver.wait()
    assert driver.returncode == -signal.SIGKILL
    machines.heal(1)

    found = machines.answer("status", *two, code=1)
    first, second = found["trees"]
    assert second["state"] == "interrupted" and second["run"]["node"] == machines.names[1]
    assert first["state"] in ("clean", "patched", "interrupted")
    error = machines.answer("diff", *two, *FILES, code=1)["error"]
    assert any(machines.names[1] in line and "cut off" in line for line in error["details"])

    assert machines.answer("apply", *two, *FILES)["complete"]  # goes on where it was cut off
    assert machines.answer("revert", *two)["finished"]
    assert [contents(tree) for tree in machines.trees] == [BEFORE] * 8
