"""The mended recipe: its text keeps what its author wrote, it claims what was tried, and it says what is left to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.version import Version

from authoring.drift.port import Ported, port
from authoring.drift.view import View
from authoring.yamltext import LayoutError
from codemods.recipe import Recipe
from codemods.recipe_reader import load_recipe
from tests.authoring.small import EDIT, IMPORT, WORKER, Small, recipe, tree
from tests.cli.test_commands import answer, run
from tests.conftest import Git

OLD = tree(worker=WORKER)
NEW = Version("2.0")
FRAMEWORK = "framework: lab\npackage: lab\nversion_files:\n  - file: lab/version.txt\n"


def ported(one: Recipe, new: Small, old: Small | None = OLD) -> Ported:
    return port(one, View(new), NEW, View(old) if old is not None else None)


def read(text: str, folder: Path) -> Recipe:
    path = folder / "again.yaml"
    path.write_text(text)
    return load_recipe(path)


def test_a_mended_recipe_is_complete_and_keeps_its_comments(tmp_path: Path) -> None:
    result = ported(recipe(tmp_path), tree(engine=WORKER.replace("class Worker", "class Engine")))
    assert result.complete
    again = read(result.text, tmp_path)
    assert [(edit.id, edit.places[0].file, edit.places[0].symbol) for edit in again.edits] == [
        ("import", "lab/engine.py", ""),
        ("dump", "lab/engine.py", "Engine.compute_log_prob"),
    ]
    assert "# who wrote this" in result.text
    assert "# a comment of the author's" in result.text


def test_it_claims_the_version_that_it_was_tried_on_and_no_other(tmp_path: Path) -> None:
    again = read(ported(recipe(tmp_path), OLD).text, tmp_path)
    assert str(again.versions) == "==2.0"
    assert again.verified == (), "it was planned and compiled there, and not run"
    assert again.id == "lab-2.0"


def test_what_was_not_found_again_is_a_comment_with_its_candidate(tmp_path: Path) -> None:
    result = ported(recipe(tmp_path), tree(worker=WORKER.replace("infer(data)", "infer(data, packed=True)")))
    assert not result.complete
    again = read(result.text, tmp_path)
    assert [edit.id for edit in again.edits] == ["import"]
    assert again.verified == ()
    block = [line.removeprefix("  # ") for line in result.text.splitlines() if line.startswith("  #")]
    start = next(n for n, line in enumerate(block) if line.startswith("- id: dump"))
    taken = result.text + "".join(f"  {line}\n" for line in block[start:])
    assert read(taken, tmp_path).edits[-1].places[0].fields["before"] == "$OUT = self.model.infer(data, ...)"


def test_edits_that_are_for_other_versions_by_their_own_word_are_left_out(tmp_path: Path) -> None:
    one = recipe(tmp_path, IMPORT + EDIT.replace("    why", "    versions: '<2'\n    why"))
    result = ported(one, OLD)
    assert result.left_out == ("dump",)
    assert "dump" not in result.text


def test_a_fragment_is_written_out(tmp_path: Path) -> None:
    (tmp_path / "_shared.yaml").write_text("fragment: shared\nedits:\n" + IMPORT.strip("\n") + "\n")
    result = ported(recipe(tmp_path, EDIT, "include: [shared]\n"), OLD)
    assert result.complete
    assert [edit.id for edit in read(result.text, tmp_path / "..").edits] == ["import", "dump"]


def test_a_requirement_that_does_not_hold_is_taken_out_and_named(tmp_path: Path) -> None:
    needs = "requires:\n  - {file: lab/worker.py, symbol: Worker}\n  - {file: lab/gone.py}\n"
    result = ported(recipe(tmp_path, IMPORT + EDIT, needs), OLD)
    assert result.dropped == ("lab/gone.py: the file",)
    assert [need.file for need in read(result.text, tmp_path).requires] == ["lab/worker.py"]


def test_an_edit_without_a_candidate_is_kept_as_a_comment(tmp_path: Path) -> None:
    gone = WORKER.replace("            output = self.model.infer(data)\n", "            output = data\n")
    text = ported(recipe(tmp_path), tree(worker=gone)).text
    assert "  # - id: dump\n" in text
    assert "  #   insert: probe.start(data)\n" in text


def test_a_key_that_stays_keeps_its_quotes(tmp_path: Path) -> None:
    edit = EDIT.replace("before: $OUT = self.model.infer(data)", 'before: "$OUT = self.model.infer(data)"')
    text = ported(recipe(tmp_path, IMPORT + edit), tree(engine=WORKER)).text
    assert 'before: "$OUT = self.model.infer(data)"' in text
    assert text.index("framework: lab") < text.index("versions: '==2.0'")


def test_examples_of_edits_that_moved_are_comments(tmp_path: Path) -> None:
    examples = "examples:\n  - edits: [dump]\n    unchanged: x = 1\n  - edits: [import]\n    unchanged: x = 1\n"
    one = recipe(tmp_path, IMPORT + EDIT, examples)
    same, moved = ported(one, OLD), ported(one, tree(worker=WORKER.replace("class Worker", "class Engine")))
    assert len(read(same.text, tmp_path).examples) == 2
    assert [example.edits for example in read(moved.text, tmp_path).examples] == [("import",)]
    assert moved.examples_to_adapt == 1
    assert "  # - edits: [dump]\n" in moved.text


def test_a_plan_that_fails_is_no_success(tmp_path: Path) -> None:
    """The places are there, but the code that the edit inserts is legal elsewhere and breaks the file."""
    one = recipe(tmp_path, EDIT.replace("probe.start(data)", "nonlocal nowhere"))
    result = ported(one, OLD)
    assert not result.complete
    assert result.problem is not None


@pytest.fixture
def checkout(tmp_path: Path, git: Git) -> Path:
    """A repository with two tagged versions; the second renames the class and moves its file."""
    folder = tmp_path / "lab-repo"
    (folder / "lab").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    for name, text in {"__init__.py": "", "probe.py": "", "worker.py": WORKER, "version.txt": "1.0\n"}.items():
        (folder / "lab" / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    git(folder, "tag", "v1.0")
    git(folder, "mv", "lab/worker.py", "lab/engine.py")
    (folder / "lab" / "engine.py").write_text(WORKER.replace("class Worker", "class Engine"))
    (folder / "lab" / "version.txt").write_text("2.0\n")
    git(folder, "commit", "-qam", "two")
    return folder


def own_recipe(folder: Path) -> Path:
    folder.mkdir()
    (folder / "framework.yaml").write_text(FRAMEWORK)
    return recipe(folder, IMPORT + EDIT, "verified: ['1.0']\n").path


def test_the_older_tree_is_taken_from_the_repositorys_tags(tmp_path: Path, checkout: Path, git: Git) -> None:
    path = own_recipe(tmp_path / "mine")
    found = answer("recipe-port", "recipe", "port", path, checkout, "--out", tmp_path / "new.yaml")
    assert (found["complete"], found["base"], found["recipe"]) == (True, "v1.0", "lab-2.0")
    assert found["counts"] == {"ok": 0, "moved": 2, "unsure": 0, "ambiguous": 0, "upstream": 0, "gone": 0}
    assert git(checkout, "status", "--porcelain") == ""


def test_doctor_shows_the_keys_to_paste(tmp_path: Path, checkout: Path) -> None:
    path = own_recipe(tmp_path / "mine")
    done = run("recipe", "doctor", path, checkout)
    assert done.returncode == 1
    assert "in: Engine.compute_log_prob" in done.stdout
    assert "file: lab/engine.py" in done.stdout
    assert "git renamed the file in" in done.stdout


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path, checkout: Path) -> None:
    path = own_recipe(tmp_path / "mine")
    (tmp_path / "new.yaml").write_text("mine")
    done = run("recipe", "port", path, checkout, "--out", tmp_path / "new.yaml")
    assert done.returncode == 3
    assert (tmp_path / "new.yaml").read_text() == "mine"


def test_doctors_json_holds_the_keys_of_the_place(tmp_path: Path, checkout: Path) -> None:
    found = answer("recipe-doctor", "recipe", "doctor", own_recipe(tmp_path / "mine"), checkout, code=1)
    dump = found["edits"][1]
    assert (dump["state"], dump["taken"]) == ("moved", 0)
    assert dump["candidates"][0]["keys"] == {"file": "lab/engine.py", "in": "Engine.compute_log_prob"}


@pytest.mark.parametrize("base", ["/nowhere", "v9", "--upload-pack=x", ""])
def test_a_base_that_is_none_is_a_usage_error(tmp_path: Path, checkout: Path, base: str) -> None:
    path = own_recipe(tmp_path / "mine")
    done = run("recipe", "doctor", path, checkout, f"--base={base}")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_comment_at_the_margin_behind_the_last_edit(tmp_path: Path) -> None:
    text = ported(recipe(tmp_path, IMPORT + EDIT + "# the end"), tree(engine=WORKER)).text
    assert [edit.id for edit in read(text, tmp_path).edits] == ["import", "dump"]
    assert "# the end" in text


@pytest.mark.parametrize(
    "edits",
    [
        "[{id: a, file: lab/worker.py, add_import: import os}]",
        "\n  - {id: a, file: lab/worker.py, in: Worker.update, before: $L = self.model.train(data), insert: pass}",
    ],
)
def test_a_layout_that_cannot_be_kept_is_refused_by_name(tmp_path: Path, edits: str) -> None:
    path = recipe(tmp_path).path
    path.write_text(path.read_text().partition("edits:")[0] + f"edits: {edits}\n")
    with pytest.raises(LayoutError):
        ported(load_recipe(path), tree(engine=WORKER))
