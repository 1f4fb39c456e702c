"""Recipes by version, from git objects and wheels that are made here: what is said, and that nothing is planned twice."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from authoring.matrix import tasks as matrix_tasks
from authoring.matrix.cells import Matrix, build, histories
from authoring.matrix.releases import NoVersionsError, Release, framework_of, from_tags, from_wheels
from authoring.trees import open_repository
from codemods.errors import UsageError
from codemods.recipe_reader import load_recipe
from tests.authoring.matrix_trees import CODE, WORKER, git, recipe, release, repository, wheel
from tests.conftest import write

MOVED = CODE.replace("out = self.model(batch)", "out = self.forward(batch)")
TWICE = CODE.replace("        return out\n", "        out = self.model(out)\n        return out\n")


def tagged(repo: Path, *recipes: Path, tags: Sequence[str] = ("*",), workers: int = 1, **options: bool) -> Matrix:
    loaded = [load_recipe(path) for path in recipes]
    found = from_tags(open_repository(repo), tags, framework_of(loaded))
    return build(loaded, found, workers=workers, **options)


def wheels(paths: Sequence[Path], *recipes: Path) -> Matrix:
    loaded = [load_recipe(path) for path in recipes]
    return build(loaded, from_wheels(paths, framework_of(loaded)), workers=1)


def states(matrix: Matrix) -> dict[str, str | None]:
    """Of the first recipe, by label."""
    return {release.label: matrix.cell(0, place).state for place, release in enumerate(matrix.releases)}


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The edits that were planned, as they are planned."""
    seen: list[str] = []
    real = matrix_tasks.plan_edits

    def plan(recipes, bases, **options):
        seen.extend(edit.id for one in recipes for edit in one.edits)
        return real(recipes, bases, **options)

    monkeypatch.setattr(matrix_tasks, "plan_edits", plan)
    return seen


# --- what is planned, and what is told of it --------------------------------------------------------------------------


def test_equal_blobs_are_planned_once(tmp_path, planned):
    tags = {"v0.1.0": release(), "v0.2.0": release(**{"toy/other.py": "x = 1\n"}), "v0.3.0": release(TWICE)}
    matrix = tagged(repository(tmp_path / "repo", tags), recipe(tmp_path))
    assert planned == ["capture", "capture"]
    assert (matrix.planned, matrix.asked) == (2, 3)
    assert states(matrix) == {"v0.1.0": "ok", "v0.2.0": "ok", "v0.3.0": "ambiguous"}


def test_equal_members_of_wheels_are_planned_once(tmp_path, planned):
    paths = [wheel(tmp_path, version, release()) for version in ("0.2.0", "0.1.0")]
    matrix = wheels(paths, recipe(tmp_path))
    assert planned == ["capture"]
    assert states(matrix) == {"0.1.0": "ok", "0.2.0": "ok"}  # oldest first


def test_the_tag_that_broke_an_edit_stands_beside_the_last_good_one(tmp_path):
    tags = {"v0.9.0": release(), "v0.10.0": release(), "v0.11.0": release("x = 1\n"), "v0.12.0": release("x = 2\n")}
    matrix = tagged(repository(tmp_path / "repo", tags), recipe(tmp_path))
    (history,) = histories(matrix)
    labels = [one.label for one in matrix.releases]
    assert labels == ["v0.9.0", "v0.10.0", "v0.11.0", "v0.12.0"]
    assert (labels[history.broke], labels[history.last_good or 0]) == ("v0.11.0", "v0.10.0")
    assert (history.verdict.state, history.in_range) == ("gone", True)
    assert not matrix.fits


def test_a_break_in_the_recipes_own_range_is_told_before_one_outside(tmp_path):
    tags = {f"v0.{n}.0": release(code) for n, code in enumerate([CODE, "x = 1\n", CODE, "x = 2\n"], 1)}
    matrix = tagged(repository(tmp_path / "repo", tags), recipe(tmp_path, ">=0.3"))
    (history,) = histories(matrix)
    assert matrix.releases[history.broke].label == "v0.4.0"
    assert [cell.in_range for cell in matrix.cells] == [False, False, True, True]


def test_versions_outside_of_the_range_are_tried_and_fail_nothing(tmp_path):
    repo = repository(tmp_path / "repo", {"v0.1.0": release("x = 1\n"), "v0.2.0": release()})
    path = recipe(tmp_path, ">=0.2")
    assert states(tagged(repo, path)) == {"v0.1.0": "gone", "v0.2.0": "ok"}
    assert tagged(repo, path).fits
    assert states(tagged(repo, path, only_in_range=True)) == {"v0.1.0": None, "v0.2.0": "ok"}


def test_an_edit_that_moved_is_found_where_it_is(tmp_path):
    rest = CODE.partition("\n")[2]
    tags = {
        "v0.1.0": release(),
        "v0.2.0": {"toy/__init__.py": "", "toy/engine/worker.py": f'"""Moved."""\n\n\nclass Worker:\n{rest}'},
    }
    matrix = tagged(repository(tmp_path / "repo", tags), recipe(tmp_path))
    verdict = matrix.cell(0, 1).verdicts[0]
    assert (verdict.state, verdict.file, verdict.symbol) == ("moved", "toy/engine/worker.py", "Worker.run")
    assert verdict.line == 6


NOTED = CODE.replace("out = self.model(batch)", "self.note(batch)")
EDITS = {
    "upstream": ("before: $OUT = self.model($IN)", "insert: self.note(batch)", NOTED),
    "ambiguous": ("before: $OUT = self.model($IN)", "insert: pass", CODE + CODE),
    "refused": ("after: return $OUT", "insert: pass", CODE),
    "gone": ("before: $OUT = self.model($IN)", "insert: pass", MOVED),
    "unreadable": ("before: $OUT = self.model($IN)", "insert: pass", "def broken(:\n"),
}


@pytest.mark.parametrize("state", EDITS)
def test_a_word_for_every_finding(state, tmp_path):
    place, code, text = EDITS[state]
    path = recipe(tmp_path)
    path.write_text(
        path.read_text().replace("before: $OUT = self.model($IN)", place).replace("insert: print($IN)", code)
    )
    assert states(tagged(repository(tmp_path / "repo", {"v1.0": release(text)}), path)) == {"v1.0": state}


def test_fewer_matches_than_expected_are_gone_and_more_are_ambiguous(tmp_path):
    path = recipe(tmp_path, more="    expect: 2\n")
    tags = {"v1.0": release(), "v2.0": release(TWICE), "v3.0": release(TWICE + CODE.replace("Worker", "Other"))}
    assert states(tagged(repository(tmp_path / "repo", tags), path)) == {"v1.0": "gone", "v2.0": "ok", "v3.0": "ok"}
    thrice = TWICE.replace("        return out\n", "        out = self.model(out)\n        return out\n")
    assert states(tagged(repository(tmp_path / "more", {"v4.0": release(thrice)}), path)) == {"v4.0": "ambiguous"}


def test_edits_that_break_the_file_together_are_refused(tmp_path):
    more = "  - id: late\n    file: toy/worker.py\n    in: Worker.run\n    body_start: nonlocal nothing\n"
    matrix = tagged(repository(tmp_path / "repo", {"v1.0": release()}), recipe(tmp_path, more=more))
    assert [verdict.state for verdict in matrix.cell(0, 0).verdicts.values()] == ["refused", "refused"]


def test_what_the_recipe_requires_counts(tmp_path):
    path = recipe(tmp_path)
    path.write_text(path.read_text().replace("edits:", "requires:\n  - {file: toy/worker.py, symbol: Engine}\nedits:"))
    repo = repository(tmp_path / "repo", {"v1.0": release(), "v2.0": release(CODE + "class Engine: pass\n")})
    matrix = tagged(repo, path)
    assert states(matrix) == {"v1.0": "gone", "v2.0": "ok"}
    assert (matrix.cell(0, 0).missing, matrix.cell(0, 0).broken) == ((0,), 0)


# --- the recipe language ----------------------------------------------------------------------------------------------


def test_fragments_alternatives_and_versions_of_edits(tmp_path, planned):
    write(
        tmp_path,
        {"_shared.yaml": "fragment: shared\nedits:\n  - {id: os, file: toy/worker.py, add_import: import os}\n"},
    )
    more = """\
  - id: either
    any_of:
      - {file: toy/worker.py, in: Worker.run, body_start: pass}
      - {file: toy/engine.py, in: Engine.run, body_start: pass}
    file: toy/worker.py
    body_start: pass
  - id: old
    versions: "<0.2"
    file: toy/worker.py
    body_end: OLD = True
"""
    path = recipe(tmp_path, more=more)
    path.write_text(path.read_text().replace("edits:\n", "include: [shared]\nedits:\n", 1))
    renamed = CODE.replace("run", "step")
    engine = {"toy/engine.py": CODE.replace("Worker", "Engine")}
    tags = {"v0.1.0": release(), "v0.2.0": release(), "v0.3.0": release(renamed, **engine)}
    matrix = tagged(repository(tmp_path / "repo", tags), path)
    ids = [edit.id for edit in matrix.recipes[0].edits]
    assert [[ids[edit] for edit in cell.verdicts] for cell in matrix.cells] == [
        ["os", "capture", "either", "old"],
        ["os", "capture", "either"],
        ["os", "capture", "either"],
    ]
    assert states(matrix) == {"v0.1.0": "ok", "v0.2.0": "ok", "v0.3.0": "gone"}
    last = {ids[edit]: (verdict.state, verdict.file) for edit, verdict in matrix.cell(0, 2).verdicts.items()}
    assert last["either"] == ("ok", "toy/engine.py")
    assert last["os"] == ("ok", WORKER)
    assert planned.count("old") == 1  # one plan serves both subsets of the first blob
    assert planned.count("capture") == 2


def test_files_that_a_recipe_adds(tmp_path):
    write(tmp_path / "payloads", {"helper.py": "HELP = True\n"})
    more = "  - {id: helper, file: toy/helper.py, add_file: helper.py}\n"
    tags = {"v1.0": release(), "v2.0": release(**{"toy/helper.py": "mine = 1\n"})}
    matrix = tagged(repository(tmp_path / "repo", tags), recipe(tmp_path, more=more))
    assert [cell.verdicts[1].state for cell in matrix.cells] == ["ok", "upstream"]
    assert states(matrix) == {"v1.0": "ok", "v2.0": "upstream"}
    assert matrix.planned == 3


# --- which versions ---------------------------------------------------------------------------------------------------


def test_what_a_version_is_told_by(tmp_path):
    stated = {"toy/version.txt": "0.5.0\n"}
    tags = {
        "v0.5.0": release(**stated),
        "v0.6.0": release(
            **stated
        ),  # forgotten to be changed: what the tree declares counts, as it does for a checkout
        "v0.7.0": release(**{"toy/version.txt": "0.8.0.dev0"}),
        "v0.4.0": release(),
        "nightly": release(),
    }
    found = tagged(repository(tmp_path / "repo", tags), recipe(tmp_path)).releases
    assert [(one.label, str(one.version), one.told_by) for one in found] == [
        ("v0.4.0", "0.4.0", "name"),
        ("v0.5.0", "0.5.0", "declared"),
        ("v0.6.0", "0.5.0", "declared"),
        ("v0.7.0", "0.7.0", "name"),
        ("nightly", "None", ""),
    ]


def test_a_declared_version_that_the_contents_deny_gives_way_to_the_name(tmp_path):
    path = recipe(tmp_path)
    probes = "probes:\n  - {versions: '>=0.6', file: toy/engine.py}\n"
    with (tmp_path / "framework.yaml").open("a") as file:
        file.write(probes)
    tags = {"v0.6.0": release(**{"toy/version.txt": "0.5.0", "toy/engine.py": ""})}
    (found,) = tagged(repository(tmp_path / "repo", tags), path).releases
    assert (str(found.version), found.told_by) == ("0.6.0", "name")


def test_tags_with_hostile_names_are_names_and_nothing_else(tmp_path):
    repo = repository(tmp_path / "repo", {"v0.1.0": release(), "v0.2.0": release("x = 1\n")})
    old = git(repo, "rev-parse", "v0.1.0").strip()
    names = [
        "-x",
        "--upload-pack=touch",
        "HEAD",
        "$(touch${IFS}pwned)",
        "`id`",
        "a'b\"c",
        "v0.3;rm",
        "ü",
        "f" * 40,
        "main",
    ]
    for name in names:
        git(repo, "update-ref", f"refs/tags/{name}", old)  # of the good commit, unlike HEAD and the branch main
    matrix = tagged(repo, recipe(tmp_path))
    assert {label: state for label, state in states(matrix).items() if label in names} == dict.fromkeys(names, "ok")
    assert sorted(os.listdir(repo)) == [".git", "toy"]


def test_tags_that_are_no_release_do_not_hide_the_others(tmp_path):
    repo = repository(tmp_path / "repo", {"v0.1.0": {"README": "soon"}, "v0.2.0": release()})
    blob = git(repo, "hash-object", "-w", "toy/worker.py").strip()
    git(repo, "update-ref", "refs/tags/v0.3.0", blob)
    matrix = tagged(repo, recipe(tmp_path))
    assert states(matrix) == {"v0.1.0": "gone", "v0.2.0": "ok", "v0.3.0": "unreadable"}
    assert [one.error.what for one in matrix.releases if one.error is not None] == [
        "there is no package `toy`",
        "git cannot list refs/tags/v0.3.0",
    ]
    assert not matrix.fits


def test_nothing_that_matches_is_an_error(tmp_path):
    repo = repository(tmp_path / "repo", {"v0.1.0": {"README": "soon"}})
    with pytest.raises(NoVersionsError, match="no tag matches v9"):
        tagged(repo, recipe(tmp_path), tags=["v9*"])
    with pytest.raises(NoVersionsError, match="holds the package `toy`"):
        tagged(repo, recipe(tmp_path))


def test_a_bare_repository_and_an_import_root_below(tmp_path):
    files = {f"python/{name}": text for name, text in release().items()}
    repo = repository(tmp_path / "repo", {"v0.1.0": files})
    git(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    assert states(tagged(tmp_path / "bare.git", recipe(tmp_path))) == {"v0.1.0": "ok"}


def test_recipes_of_several_frameworks_are_refused(tmp_path):
    other = recipe(tmp_path / "other")
    other.write_text(other.read_text().replace("framework: toy", "framework: other"))
    with pytest.raises(UsageError, match="several frameworks: other, toy"):
        framework_of([load_recipe(recipe(tmp_path)), load_recipe(other)])


def test_a_framework_that_nobody_described_is_known_by_the_edits_paths(tmp_path):
    path = recipe(tmp_path)
    (tmp_path / "framework.yaml").unlink()
    assert framework_of([load_recipe(path)]).package == "toy"
    assert states(tagged(repository(tmp_path / "repo", {"v0.1.0": release()}), path)) == {"v0.1.0": "ok"}


# --- hostile contents -------------------------------------------------------------------------------------------------


def test_blobs_that_are_no_source(tmp_path):
    repo = repository(
        tmp_path / "repo", {"v1.0": release("\0\x01"), "v2.0": release(b"\xff\xfe latin"), "v3.0": release()}
    )
    (repo / WORKER).unlink()
    (repo / WORKER).symlink_to("/etc/passwd")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "a link")
    git(repo, "tag", "v4.0")
    found = states(tagged(repo, recipe(tmp_path)))
    assert found == {"v1.0": "unreadable", "v2.0": "unreadable", "v3.0": "ok", "v4.0": "gone"}


def test_objects_that_are_missing_from_the_repository(tmp_path):
    repo = repository(tmp_path / "repo", {"v1.0": release(), "v2.0": release(TWICE)})
    blob = git(repo, "rev-parse", f"v2.0:{WORKER}").strip()
    (repo / ".git/objects" / blob[:2] / blob[2:]).unlink()
    assert states(tagged(repo, recipe(tmp_path))) == {"v1.0": "ok", "v2.0": "unreadable"}


def broken_wheels(folder: Path) -> list[Path]:
    """A good one, one cut off, one that is no archive, one whose file is damaged."""
    paths = [wheel(folder, f"{number}.0", release()) for number in range(1, 5)]
    paths[1].write_bytes(paths[1].read_bytes()[:200])
    paths[2].write_bytes(b"not a zip file")
    with zipfile.ZipFile(paths[3]) as archive:
        start = archive.getinfo(WORKER).header_offset + 30 + len(WORKER)
    data = bytearray(paths[3].read_bytes())
    data[start : start + 20] = bytes(20)
    paths[3].write_bytes(bytes(data))
    return paths


def test_damaged_wheels_are_unreadable_and_the_others_are_tried(tmp_path):
    matrix = wheels(broken_wheels(tmp_path / "wheels"), recipe(tmp_path))
    assert states(matrix) == {"1.0": "ok", "2.0": "unreadable", "3.0": "unreadable", "4.0": "unreadable"}


def test_a_member_that_unpacks_to_too_much_is_not_unpacked(tmp_path, monkeypatch):
    path = wheel(tmp_path, "1.0", release(" " * (65 << 20)))
    assert path.stat().st_size < 1 << 20
    real = zipfile.ZipFile.read
    monkeypatch.setattr(
        zipfile.ZipFile,
        "read",
        lambda archive, member: pytest.fail("unpacked") if member.file_size > 9999 else real(archive, member),
    )
    matrix = wheels([path, wheel(tmp_path, "2.0", {"toy/__init__.py": ""})], recipe(tmp_path))
    assert states(matrix) == {"1.0": "unreadable", "2.0": "gone"}
    error = matrix.cell(0, 0).verdicts[0].error
    assert error is not None
    assert "larger than" in error.what


def test_wheels_of_one_version_keep_their_names(tmp_path):
    paths = [wheel(tmp_path, "1.0", release()), wheel(tmp_path, "1.0", release(), name="toy_cpu")]
    assert list(states(wheels(paths, recipe(tmp_path)))) == ["toy-1.0-py3-none-any.whl", "toy_cpu-1.0-py3-none-any.whl"]


def test_a_release_is_sorted_by_its_version_and_unknown_ones_come_last():
    releases = [Release("a", ""), Release("b", "")]
    assert sorted(releases, key=lambda one: one.place) == releases
