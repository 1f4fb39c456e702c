"""``recipe check``: recipes, the framework.yaml beside them, and whether the two go together."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_commands import answer, run
from tests.conftest import FIXTURES, write

RECIPE = """\
recipe: mine
framework: lab
side: train
versions: ">=1"
why: a test
edits:
  - {id: note, file: lab/worker.py, in: run, body_start: pass}
"""
DESCRIBED = "framework: lab\npackage: lab\nversion_files:\n  - {file: lab/version.py}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, {"mine.yaml": RECIPE, "framework.yaml": DESCRIBED})
    return tmp_path


def test_a_framework_s_description_is_checked_as_one(folder):
    (folder / "other-name.yaml").write_text(DESCRIBED)
    for name in ("framework.yaml", "other-name.yaml"):
        (found,) = answer("recipe-check", "recipe", "check", folder / name)["files"]
        assert (found["valid"], found["recipe"], found["framework"], found["notes"]) == (True, None, "lab", [])
    shown = run("recipe", "check", folder / "framework.yaml").stdout
    assert shown.endswith(
        "framework.yaml: describes the framework lab: package lab, its version from lab/version.py, 0 probes\n"
    )
    (folder / "framework.yaml").write_text("framework: lab\npackage: lab\nversion_files: []\n")
    assert "its version from no file, 0 probes" in run("recipe", "check", folder / "framework.yaml").stdout
    assert run("recipe", "check", FIXTURES / "recipes/tinyrl/framework.yaml").stdout.endswith(
        "tinyrl/__init__.py, 1 probe\n"
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (DESCRIBED + "recipe: x\n", "unknown key `recipe`"),
        ("framework: lab\nversion_files: []\n", "the key `package` is missing"),
        ("framework: lab\npackage: lab\nversion_files:\n", "there is no entry below `version_files` yet"),
        (DESCRIBED + "probes: [{versions: '1..2', file: lab/x.py}]\n", "`1..2` is no version range"),
        (
            DESCRIBED + "probes: [{versions: '>=1', file: ../x.py}]\n",
            "the path '../x.py' does not stay inside the checkout",
        ),
        (DESCRIBED + "probes: [{versions: '>=1', file: lab/x.py, has: 'x = = 1'}]\n", "pattern"),
        ("", "the file is empty"),
    ],
)
def test_what_is_wrong_with_a_description(folder, text, what):
    (folder / "framework.yaml").write_text(text)
    (found,) = answer("recipe-check", "recipe", "check", folder / "framework.yaml", code=4)["files"]
    assert what in found["error"]["what"]
    assert not found["valid"]


def notes(folder: Path) -> list[str]:
    (found,) = answer("recipe-check", "recipe", "check", folder / "mine.yaml")["files"]
    assert all(note in run("recipe", "check", folder / "mine.yaml").stdout for note in found["notes"])
    return found["notes"]


def test_a_recipe_and_its_neighbour(folder):
    assert notes(folder) == []
    (folder / "framework.yaml").write_text(DESCRIBED.replace("framework: lab", "framework: other"))
    (note,) = notes(folder)
    assert "describes the framework `other`, this recipe is for `lab`" in note
    (folder / "framework.yaml").write_text(DESCRIBED.replace("package: lab", "package: labs"))
    (note,) = notes(folder)
    assert "names the package `labs`, and no edit is in it: lab/worker.py" in note
    (folder / "framework.yaml").write_text("package: lab\n")
    (note,) = notes(folder)
    assert "beside it is not valid: " in note
    (folder / "framework.yaml").unlink()
    assert notes(folder) == []
