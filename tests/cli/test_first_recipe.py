"""A first recipe for a framework that nobody described, on the right folder and on wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_commands import answer, contents
from tests.conftest import write

HEAD = 'recipe: r\nframework: newrl\nside: train\nversions: "{versions}"\nwhy: w\nedits:\n'
PAYLOAD = "  - {id: helpers, file: newrl/newrl_probe.py, add_file: newrl_probe.py}\n"
IMPORT = "  - {id: import, file: newrl/train.py, add_import: from newrl import newrl_probe}\n"
TAP = "  - {id: tap, file: newrl/train.py, in: step, body_start: newrl_probe.tap(batch)}\n"
TREE = {"newrl/__init__.py": "", "newrl/train.py": "import os\n\n\ndef step(batch):\n    return batch\n"}
FRAMEWORK = "framework: newrl\npackage: newrl\nversion_files: []\n"


@pytest.fixture
def recipe(tmp_path):
    def made(edits: str = PAYLOAD + IMPORT + TAP, versions: str = ">=0", described: bool = False):
        write(tmp_path / "own", {"payloads/newrl_probe.py": "def tap(batch):\n    print(batch)\n"})
        (tmp_path / "own/r.yaml").write_text(HEAD.format(versions=versions) + edits)
        if described:
            (tmp_path / "own/framework.yaml").write_text(FRAMEWORK)
        return tmp_path / "own/r.yaml"

    return made


@pytest.mark.parametrize("described", [True, False])
@pytest.mark.parametrize("edits", [PAYLOAD, PAYLOAD + IMPORT + TAP])
def test_a_folder_without_the_package_is_one_finding_and_nothing_is_written(tmp_path, recipe, edits, described):
    write(tmp_path / "wrong", {"other/__init__.py": ""})
    for command in ("diff", "apply"):
        own = ("--recipe-file", recipe(edits, described=described))
        error = answer("error", command, tmp_path / "wrong", *own, code=1)["error"]
        assert (error["kind"], "findings" in error) == ("no-framework", False)
        assert "`newrl`" in error["what"]
        assert str(tmp_path / "wrong") in error["what"]
    assert contents(tmp_path / "wrong") == {"other/__init__.py": b""}


@pytest.mark.parametrize("layout", ["", "src/", "newrl-1.0.data/purelib/"])
@pytest.mark.parametrize("described", [True, False])
def test_the_package_is_found_where_a_tree_may_hold_it(tmp_path, recipe, layout, described):
    write(tmp_path / "tree", {layout + name: text for name, text in TREE.items()})
    before = contents(tmp_path / "tree")
    done = answer("apply", "apply", tmp_path / "tree", "--recipe-file", recipe(described=described))
    assert done["checkout"]["import_root"] == str(tmp_path / "tree" / layout).rstrip("/")
    edits = answer("status", "status", tmp_path / "tree")["edits"]
    lines = (tmp_path / "tree" / layout / "newrl/train.py").read_text().splitlines()
    wanted = {"import": "import newrl_probe", "tap": "    newrl_probe.tap"}
    places = {name: next(n for n, line in enumerate(lines, 1) if text in line) for name, text in wanted.items()}
    assert {edit["edit"]: edit["line"] for edit in edits} == {"helpers": 1, **places}
    assert answer("receipt", "revert", tmp_path / "tree")["proof"]["exact"]
    kept = {name: data for name, data in contents(tmp_path / "tree").items() if ".probepatch" not in name}
    assert kept == before


def test_another_version_points_to_port(tmp_path, recipe):
    write(tmp_path / "tree", {**TREE, "newrl-1.0.dist-info/METADATA": "Name: newrl\nVersion: 1.0\n"})
    own = ("--recipe-file", recipe(versions="==0.9", described=True))
    error = answer("error", "diff", tmp_path / "tree", *own, code=1)["error"]
    assert error["kind"] == "not-fitting"
    assert "probepatch recipe port" in error["todo"]


def test_an_unknown_package_points_to_a_recipe_of_ones_own(tmp_path):
    write(tmp_path / "tree", TREE)
    error = answer("error", "diff", tmp_path / "tree", code=1)["error"]
    assert "--recipe-file" in error["todo"]
    assert "recipe new" in error["todo"]


def test_a_file_of_that_name_says_what_to_do(tmp_path, recipe):
    write(tmp_path / "tree", {**TREE, "newrl/newrl_probe.py": "mine = 1\n"})
    error = answer("error", "apply", tmp_path / "tree", "--recipe-file", recipe(), code=1)["error"]
    assert error["findings"][0]["kind"] == "name-taken"
    assert "move it away" in error["findings"][0]["todo"]


def test_a_wrong_file_name_gets_the_right_one(tmp_path, recipe):
    write(tmp_path / "tree", TREE)
    own = ("--recipe-file", recipe(TAP.replace("train.py", "trian.py")))
    error = answer("error", "diff", tmp_path / "tree", *own, code=1)["error"]
    assert error["findings"][0]["todo"] == "did you mean `newrl/train.py`?"


def test_an_added_file_that_was_changed_is_no_dead_end(tmp_path, recipe):
    write(tmp_path / "tree", TREE)
    before, own = contents(tmp_path / "tree"), ("--recipe-file", recipe())
    answer("apply", "apply", tmp_path / "tree", *own)
    added = tmp_path / "tree/newrl/newrl_probe.py"
    added.write_text(added.read_text() + "x = 1\n")
    mine = added.read_bytes()
    receipt = answer("receipt", "revert", tmp_path / "tree", code=1)
    assert [refusal["edit"] for refusal in receipt["refused"]] == ["r/helpers"]
    assert added.read_bytes() == mine
    error = answer("error", "apply", tmp_path / "tree", *own, code=1)["error"]
    assert "changed inside" in error["what"]
    assert "--force" in error["todo"]
    receipt = answer("receipt", "revert", tmp_path / "tree", "--force")
    assert [Path(path).read_bytes() for path in receipt["saved"]] == [mine]
    kept = {name: data for name, data in contents(tmp_path / "tree").items() if ".probepatch" not in name}
    assert kept == before


def test_what_a_changed_edit_needs_stays_with_it(tmp_path, recipe):
    write(tmp_path / "tree", TREE)
    answer("apply", "apply", tmp_path / "tree", "--recipe-file", recipe())
    file = tmp_path / "tree/newrl/train.py"
    file.write_text(file.read_text().replace("tap(batch)", "tap(batch[0])"))
    receipt = answer("receipt", "revert", tmp_path / "tree", code=1)
    assert {refusal["edit"]: refusal["state"] for refusal in receipt["refused"]} == {
        "r/tap": "inside",
        "r/import": "needed",
        "r/helpers": "needed",
    }
    assert "import newrl_probe" in file.read_text()
    assert (tmp_path / "tree/newrl/newrl_probe.py").exists()
    receipt = answer("receipt", "revert", tmp_path / "tree", "--edit", "helpers")
    assert any("will not run" in note for note in receipt["notes"])
