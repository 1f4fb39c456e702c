"""``recipe test``: what an example proves, what it finds, and how it says so."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from authoring.examples import run as engine
from authoring.examples.run import run_examples, without_markers
from authoring.examples.variants import NotApplicable, variants
from codemods.catalogue import catalogue
from codemods.recipe_reader import load_recipe
from tests.cli.test_commands import answer, run

HEAD = 'recipe: r\nframework: mine\nside: train\nversions: ">=0"\nwhy: w\nedits:\n'
NOTE = "- {id: note, file: m.py, in: run, body_start: probe.note()}\n"
GUARD = """\
- id: guard
  file: m.py
  in: run
  around: $OUT = model($IN)
  enter: |
    if on:
        probe.start($IN)
  finally: probe.stop()
"""
NOTED = """\
- edits: [note]
  before: |
    def run():
        return 1
  after: |
    def run():
        probe.note()
        return 1
"""


@pytest.fixture
def recipe(tmp_path: Path):
    def build(edits: str, examples: str = "", name: str = "r.yaml") -> Path:
        text = HEAD + textwrap.indent(edits, "  ")
        text += ("examples:\n" + textwrap.indent(examples, "  ")) if examples else ""
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return build


def results(path: Path) -> list[dict[str, str]]:
    """The results of each example's checks, by name."""
    return [{one.name: one.result for one in ran.checks} for ran in run_examples(load_recipe(path)).runs]


ALL = ("after", "apply", "idempotent", "revert", "compile", "crlf", "bom", "tabs", "no-final-newline")


def test_everything_is_tried_of_an_example(recipe):
    path = recipe(NOTE, NOTED)
    assert results(path) == [dict.fromkeys(ALL, "ok")]
    shown = run("recipe", "test", path)
    assert shown.returncode == 0, shown.stdout
    assert "after, apply, idempotent, revert, compiles, CR LF, byte-order mark, tabs, no final newline" in shown.stdout
    assert shown.stdout.endswith("1 of 1 example holds\n")
    found = answer("recipe-test", "recipe", "test", path)
    assert found["ok"]
    assert found["recipes"][0]["examples"][0]["where"] == f"{path}:9"


def test_the_sum_says_what_the_exit_code_says(recipe, tmp_path):
    fine, bare = recipe(NOTE, NOTED), recipe(NOTE, name="bare.yaml")
    (tmp_path / "broken.yaml").write_text("recipe: x\nedits:\n")
    done = run("recipe", "test", fine, bare)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "1 of 1 example holds; 1 recipe has no example")
    done = run("recipe", "test", tmp_path / "broken.yaml")
    assert (done.returncode, done.stdout) == (4, "1 recipe could not be read\n")
    done = run("recipe", "test", fine, tmp_path / "broken.yaml", bare)
    last = "1 of 1 example holds; 1 recipe has no example; 1 recipe could not be read"
    assert (done.returncode, done.stdout.splitlines()[-1]) == (4, last)


def test_markers_may_be_shown_or_left_out(recipe):
    shown = NOTED.replace("probe.note()\n", "probe.note()  # probepatch: r/note\n")
    assert results(recipe(NOTE, shown)) == results(recipe(NOTE, NOTED))
    assert without_markers("a  # b  # probepatch: r/e\r\n    # probepatch: r/e\nc\n") == "a  # b\r\nc\n"


def test_an_example_that_fails_shows_what_came_out(recipe):
    path = recipe(NOTE, NOTED.replace("probe.note()", "probe.nope()"))
    found = answer("recipe-test", "recipe", "test", path, code=1)
    first = found["recipes"][0]["examples"][0]["checks"][0]
    assert (first["check"], first["result"]) == ("after", "failed")
    assert "-    probe.nope()" in first["diff"]
    assert "+    probe.note()" in first["diff"]
    shown = run("recipe", "test", path)
    assert shown.returncode == 1
    assert f"FAILED  {path}:9: note" in shown.stdout
    assert "            +    probe.note()\n" in shown.stdout


def test_a_place_that_is_not_found_fails_with_the_finding(recipe):
    path = recipe(NOTE, NOTED.replace("def run", "def ran"))
    (checks,) = results(path)
    assert checks == {"after": "failed"}
    assert "`run` is not in the file" in run("recipe", "test", path).stdout


def test_unchanged_by_version(recipe):
    edits = NOTE.replace("note()}", 'note(), versions: ">=2"}')
    example = '- edits: [note]\n  version: "{}"\n  unchanged: |\n    def run():\n        return 1\n'
    assert results(recipe(edits, example.format("1.9"))) == [{"unchanged": "ok"}]
    assert results(recipe(edits, example.format("2.0"))) == [{"unchanged": "failed"}]
    assert results(recipe(edits, NOTED + '  version: "2.1"\n')) == [dict.fromkeys(ALL, "ok")]


def test_no_match_and_its_message(recipe):
    example = "- edits: [note]\n  no_match: |\n    {}\n  message: {}\n"
    good = '"`run` is not in the file"'
    assert results(recipe(NOTE, example.format("x = 1", good))) == [{"no-match": "ok"}]
    assert results(recipe(NOTE, example.format("x = 1", "something else"))) == [{"no-match": "failed"}]
    assert results(recipe(NOTE, example.format("def run(): pass", good))) == [{"no-match": "failed"}]


def test_zero_examples_is_a_failure(recipe):
    path = recipe(NOTE)
    found = answer("recipe-test", "recipe", "test", path, code=1)
    assert found["recipes"][0]["no_example"] == ["note"]
    assert "zero examples prove nothing" in run("recipe", "test", path).stdout


def test_edits_without_an_example_are_named(recipe):
    path = recipe(NOTE + GUARD, NOTED)
    assert run_examples(load_recipe(path)).without == ("guard",)
    shown = run("recipe", "test", path)
    assert (shown.returncode, "no example: guard" in shown.stdout) == (0, True)


def test_code_of_several_lines_that_an_edit_copies(recipe):
    example = """\
- edits: [guard]
  before: |
    def run():
        \"\"\"Runs.
          Keeps these blanks.
        \"\"\"
        out = model([
            1,
              2])
        return out
  after: |
    def run():
        \"\"\"Runs.
          Keeps these blanks.
        \"\"\"
        if on:
            probe.start([
            1,
              2])
        try:
            out = model([
                1,
                  2])
        finally:
            probe.stop()
        return out
"""
    (checks,) = results(recipe(GUARD, example))
    assert set(checks.values()) <= {"ok", "not-applicable"}
    assert [name for name, result in checks.items() if result == "not-applicable"] in ([], ["tabs"])


@pytest.mark.parametrize(
    ("before", "missing"),
    [
        ("x = 1", {"crlf", "tabs", "no-final-newline"}),
        ("x = 1\n", {"tabs"}),
        ("x = 1\r\n", {"crlf", "tabs", "no-final-newline"}),
        ("# coding: latin-1\nif x:\n    y\n", {"bom"}),
        ("\ufeffif x:\n    y\n", {"bom"}),
        ("if x:\n\ty\n", {"tabs"}),
        ("if x:\n    if y:\n       z\n", {"tabs"}),
        ("if x:\n  y\n\n", {"no-final-newline"}),
    ],
)
def test_a_variant_that_cannot_be_written_says_so(before, missing):
    said = set()
    for variant in variants(before):
        try:
            assert variant.dress(before) != before
        except NotApplicable as error:
            assert str(error)
            said.add(variant.name)
    assert said == missing


def test_tabs_leave_strings_alone():
    text = 'def f():\n    """a\n    b"""\n    g(1,\n      2)\n'
    (tabs,) = (variant for variant in variants(text) if variant.name == "tabs")
    assert tabs.dress(text) == 'def f():\n\t"""a\n    b"""\n\tg(1,\n\t  2)\n'


def test_what_cannot_compile_here_is_not_blamed_on_the_edit(recipe):
    example = NOTED.replace("return 1", "return 1 1")
    found = run_examples(load_recipe(recipe(NOTE, example)))
    assert "cannot be parsed" in found.runs[0].checks[0].why
    broken = NOTE.replace("probe.note()", "nonlocal anything")  # parses by itself, and compiles nowhere at the top
    (checks,) = results(recipe(broken, NOTED))
    assert "failed" in checks.values()


def test_a_revert_or_a_second_apply_that_fails_is_seen(recipe, monkeypatch):
    path = recipe(NOTE, NOTED)
    real = engine.run_round

    def broken(*arguments):
        done = real(*arguments)
        return type(done)(done.applied, done.applied + b"again\n", b"rest of it\n")

    monkeypatch.setattr(engine, "run_round", broken)
    (checks,) = results(path)
    assert [name for name, result in checks.items() if result == "failed"] == ["idempotent", "revert"]


@pytest.mark.parametrize("file", [".git/m.py", f"{'x' * 300}.py", "a/" * 2000 + "m.py"])
def test_a_file_that_no_checkout_can_hold(recipe, file):
    (checks,) = results(recipe(NOTE.replace("m.py", file), NOTED))
    assert (checks["after"], checks["apply"]) == ("ok", "failed")


def test_files_that_are_no_recipes(recipe, tmp_path):
    good = recipe(NOTE, NOTED)
    bad = tmp_path / "bad.yaml"
    bad.write_text("recipe: [")
    found = answer("recipe-test", "recipe", "test", bad, good, tmp_path / "none.yaml", code=4)
    assert [one["ok"] for one in found["recipes"]] == [False, True, False]
    (unknown,) = answer("recipe-test", "recipe", "test", "verl-engine-fsdpp", code=2)["recipes"]
    assert unknown["error"]["todo"] == "did you mean `verl-engine-fsdp`?"
    assert answer("error", "recipe", "test", "", code=2)
    hostile = recipe(NOTE, '- edits: [note]\n  before: "def run(): pass # \\uD800"\n  after: "x"\n', "hostile.yaml")
    shown = run("recipe", "test", hostile)
    assert shown.returncode in (1, 4)
    assert "Traceback" not in shown.stderr


@pytest.mark.parametrize("heading", catalogue(), ids=lambda heading: heading.id)
def test_the_catalogue_s_examples_hold(heading):
    ran = run_examples(load_recipe(heading.path))
    assert ran.runs, "the recipe has no example"
    assert [
        (example.example.where, check.name, check.why, *check.diff)
        for example in ran.runs
        for check in example.checks
        if check.result == "failed"
    ] == []


def test_the_examples_in_the_documentation_hold(tmp_path):
    page = Path(__file__).parents[2].joinpath("docs", "recipes.md").read_text(encoding="utf-8")
    head, examples = (
        page.partition(f"\n## {title}\n")[2].partition("```yaml\n")[2].partition("```")[0]
        for title in ("A whole recipe", "Examples")
    )
    path = tmp_path / "r.yaml"
    path.write_text(head + examples, encoding="utf-8")
    assert results(path) == [dict.fromkeys(ALL, "ok"), {"no-match": "ok"}]
