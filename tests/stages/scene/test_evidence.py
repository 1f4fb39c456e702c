"""What a scene rests on: a changed file sends the card back, our own edits in it do not; and trees that are hard to fetch."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from stages.card.store import read_card
from stages.scene.where import tree_of
from stages.sides import Side
from tests.cli.test_commands import FILES, answer
from tests.cli.test_shell import run
from tests.stages.scene.test_scene import both  # noqa: F401
from tests.stages.task.reach import fakes

WORKER = "tinyrl/trainer/worker.py"


@pytest.fixture
def seen(both):  # noqa: F811
    card, files = both
    answer("scene", "scene", *files, "--task", card)
    return card


def state(card: Path) -> str:
    done = run("task", "status", "--task", card, "--json")
    assert done.returncode in (0, 1)
    return str(json.loads(done.stdout)["stages"][3]["state"])


def test_a_file_that_a_place_is_in(seen, demo_checkout):
    assert str(demo_checkout / WORKER) in read_card(seen).data["stages"]["3"]["files"]
    text = (demo_checkout / WORKER).read_bytes()
    (demo_checkout / WORKER).write_bytes(text + b"# theirs\n")
    assert state(seen) == "stale"
    (demo_checkout / WORKER).write_bytes(text)
    assert state(seen) == "done"
    (demo_checkout / WORKER).unlink()
    assert state(seen) == "stale"


@pytest.mark.parametrize("in_git", [True, False])
def test_our_edits_are_no_change_of_it(seen, demo_checkout, in_git):
    if not in_git:
        shutil.rmtree(demo_checkout / ".git")
    text = (demo_checkout / WORKER).read_bytes()
    answer("apply", "apply", demo_checkout, *FILES, "--task", seen)
    edited = (demo_checkout / WORKER).read_bytes()
    assert edited != text
    assert state(seen) == "done"
    (demo_checkout / WORKER).write_bytes(edited + b"# theirs\n")
    assert state(seen) == "stale"
    (demo_checkout / WORKER).write_bytes(edited)
    answer("receipt", "revert", demo_checkout, "--task", seen)
    assert (demo_checkout / WORKER).read_bytes() == text
    assert state(seen) == "done"


def test_a_scene_over_our_edits_rests_on_the_files_without_them(both, demo_checkout):  # noqa: F811
    card, files = both
    answer("apply", "apply", demo_checkout, *FILES, "--task", card)
    answer("scene", "scene", *files, "--task", card)
    assert state(card) == "done"
    answer("receipt", "revert", demo_checkout, "--task", card)
    assert state(card) == "done"


@pytest.mark.parametrize(
    "reach", ["ssh node7", "docker exec c1", "ssh node7 docker exec -i c1 bash -c", "conda run -n e"]
)
def test_a_side_behind_the_usual_prefixes(both, tmp_path, monkeypatch, reach):  # noqa: F811
    card, files = both
    for name, value in fakes(tmp_path / "fakes").items():
        monkeypatch.setenv(name, value)
    answer("task-set", "task", "set", f"train.prefix={reach}", "--task", card)
    assert answer("scene", "scene", *files, "--task", card)["recorded"]


def test_a_tree_from_before_1980_arrives(demo_checkout, tmp_path):
    """Images that are built reproducibly have such times."""
    for path in demo_checkout.rglob("*.py"):
        os.utime(path, (0, 0))
    reach = tmp_path / "reach"
    copy = demo_checkout.parent / "there"
    script = f'#!/bin/sh\nsed "s#/elsewhere#{demo_checkout}#g" | "$@" | sed "s#{demo_checkout}#/elsewhere#g"\n'
    reach.write_text(script)
    reach.chmod(0o755)
    with tree_of(Side("train", (str(reach),), sys.executable), "/elsewhere", ("tinyrl",)) as tree:
        assert tree.copied
        shutil.copytree(tree.path, copy)
    assert (copy / WORKER).read_bytes() == (demo_checkout / WORKER).read_bytes()
