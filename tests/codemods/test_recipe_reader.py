"""Recipes are hostile input: what is wrong is said in one line with file, line and column, and nothing runs or explodes."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from codemods.catalogue import catalogue, frameworks
from codemods.recipe_reader import RECIPES, load_heading, load_recipe
from codemods.schema import recipe_schema
from codemods.snippets import check_snippet
from codemods.yamlfile import RecipeError

GOOD = """\
recipe: good
framework: example
side: train
versions: ">=0.7,<0.10"
why: an example
edits:
  - {id: a, file: m.py, in: f, before: "go($X)", insert: "tap($X)"}
notes: [after the edits]
"""


def loaded(tmp_path: Path, text: str | bytes) -> None:
    path = tmp_path / "r.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    load_recipe(path)


def refusal(tmp_path: Path, text: str | bytes) -> RecipeError:
    with pytest.raises(RecipeError) as caught:
        loaded(tmp_path, text)
    assert caught.value.exit_code == 4
    assert "\n" not in caught.value.what
    assert str(tmp_path) in (caught.value.where or "")
    return caught.value


def test_a_good_recipe_and_its_heading_say_the_same(tmp_path: Path) -> None:
    loaded(tmp_path, GOOD)
    recipe, heading = load_recipe(tmp_path / "r.yaml"), load_heading(tmp_path / "r.yaml")
    assert (heading.id, heading.versions, heading.notes) == (recipe.id, recipe.versions, recipe.notes)
    assert recipe.notes == ("after the edits",)


def test_the_digest_follows_the_file(tmp_path: Path) -> None:
    loaded(tmp_path, GOOD)
    first = load_recipe(tmp_path / "r.yaml").digest
    loaded(tmp_path, GOOD.replace("tap", "top"))
    assert load_recipe(tmp_path / "r.yaml").digest != first


EDIT = GOOD.splitlines()[6]
WRONG = {
    "unquoted-version": (GOOD.replace('">=0.7,<0.10"', "0.10"), ":4:11", "0.10", "quotes"),
    "bad-range": (GOOD.replace('">=0.7,<0.10"', '"newer"'), ":4", "no version range"),
    "unknown-key": (GOOD.replace("why:", "wyh:"), ":5:1", "wyh", "did you mean `why`"),
    "unknown-edit-key": (GOOD.replace("insert:", "insrt:"), ":7:", "did you mean `insert`"),
    "missing-key": (GOOD.replace("why: an example\n", ""), "`why` is missing"),
    "twice": (GOOD + "side: infer\n", ":9:1", "twice"),
    "two-verbs": (GOOD.replace("insert:", "body_start: 'x', insert:"), "exactly one verb, here are 2"),
    "no-verb": (GOOD.replace(EDIT, "  - {id: a, file: m.py}"), "exactly one verb, here are 0"),
    "foreign-key": (GOOD.replace("insert:", "item: 'x', insert:"), "`before` has no key `item`"),
    "verb-incomplete": (GOOD.replace(', insert: "tap($X)"', ""), "needs the key `insert`"),
    "same-id": (GOOD.replace(EDIT, EDIT + "\n" + EDIT), ":8", "two edits are called `a`", "the first one", ":7"),
    "unquoted-range": (GOOD.replace('">=0.7,<0.10"', ">=0.7"), ":4", "not valid YAML", "in quotes", '">=0.7"'),
    "unquoted-not": (GOOD.replace('">=0.7,<0.10"', "!=0.7, <1"), "in quotes"),
    "one-version": (GOOD.replace(">=0.7,<0.10", "0.11.2"), "no version range", 'write "==0.11.2"'),
    "code": (GOOD.replace("tap($X)", "tap($X"), ":7", "no Python code for `insert`", "line 1 of the code, `tap($X`"),
    "code-of-a-block": (
        GOOD.replace(EDIT, "  - id: a\n    file: m.py\n    body_end: |\n      x = 1\n      y = = 2"),
        ":9",
        "line 2 of the code, `y = = 2`",
    ),
    "code-of-a-table": (
        GOOD.replace(EDIT, "  - id: a\n    file: m.py\n    in: f\n    around_body:\n      finally: f("),
        ":11",
        "no Python code for `finally`",
    ),
    "code-of-a-variant": (
        GOOD.replace(EDIT, '  - {id: a, file: m.py, before: "f()", insert: "x =", any_of: [{in: f}, {in: g}]}'),
        "no Python code for `insert`",
    ),
    "item": (
        GOOD.replace("before:", "with_item:")
        .replace("insert:", "item:")
        .replace("go(", "with go(")
        .replace('$X)", i', '$X):", i')
        .replace("tap($X)", "tap($X"),
        "no Python code for `item`",
        "tap($X",
    ),
    "two-arguments": (
        GOOD.replace("before:", "set_argument:").replace("insert:", "argument:").replace("tap($X)", "a=1, b=2"),
        "one `name=expression`",
    ),
    "expression": (
        GOOD.replace("before:", "replace_expression:").replace("insert:", "with:").replace("tap($X)", "a = 1"),
        "no Python code for `with`",
    ),
    "decorator": (GOOD.replace('before: "go($X)", insert: "tap($X)"', 'decorator: "@tap("'), "for `decorator`"),
    "method": (GOOD.replace('before: "go($X)", insert: "tap($X)"', 'add_method: "x = 1"'), "one function"),
    "import": (GOOD.replace('in: f, before: "go($X)", insert: "tap($X)"', 'add_import: "x"'), "one import"),
    "header-without-colon": (GOOD.replace("go($X)", "with go($X)"), "a header ends with `:`"),
    "finally-missing": (GOOD.replace("before:", "around:").replace("insert:", "enter:"), "`finally`", "add `finally:`"),
    "no-edits": (GOOD.replace("edits:\n" + EDIT, "edits: []"), "no edit"),
    "dot-dot": (GOOD.replace("m.py", "../m.py"), "../m.py", "inside the checkout"),
    "absolute": (GOOD.replace("m.py", "/etc/passwd"), "inside the checkout"),
    "backslash": (GOOD.replace("m.py", "a\\b.py").replace('"', "'"), "inside the checkout"),
    "bad-pattern": (GOOD.replace("go($X)", "go($X"), ":7", "no Python code"),
    "pattern-of-everything": (GOOD.replace('"go($X)"', '"..."'), "everything or nothing"),
    "unknown-hole": (GOOD.replace("tap($X)", "tap($Y)"), "captures no `$Y`"),
    "bad-symbol": (GOOD.replace("in: f", "in: f.<locals>.g"), "no qualified name"),
    "nth-too-high": (GOOD.replace("in: f", "in: f, nth: 2"), "`nth`"),
    "id-with-slash": (GOOD.replace("recipe: good", "recipe: a/b"), ":1", "cannot be a name"),
    "include-outside": (GOOD + "include: ['../x']\n", "cannot be a name"),
    "include-missing": (GOOD + "include: [gone]\n", "no such file"),
    "alias-bomb": (GOOD + "switches: &a [x, x]\nverified: [*a, *a]\n", "aliases are not allowed"),
    "deep": (GOOD + "switches: " + "[" * 3000 + "]" * 3000 + "\n", "nests too deep"),
    "python-tag": (GOOD.replace("an example", "!!python/object/apply:os.system ['id']"), "single value"),
    "list-for-text": (GOOD.replace("an example", "[1]"), ":5:6", "single value"),
    "number-for-text": (GOOD.replace("an example", "1"), "YAML int"),
    "no-yaml": ("a: b: c\n", "not valid YAML", "quotes"),
    "empty": ("", "empty"),
    "binary": (b"\xff\xfe\x00\x01", "not valid YAML"),
    "huge": ("# " + "x" * 1_100_000, "larger than"),
    "unknown-payload": (
        GOOD.replace(EDIT, "  - {id: a, file: m.py, add_file: gone.py}"),
        "no payload `gone.py`",
        "belongs into `payloads/` beside the recipe",
    ),
    "payload-outside": (GOOD.replace(EDIT, "  - {id: a, file: m.py, add_file: ../verl/framework.yaml}"), "inside"),
    "parameter-without-env": (GOOD + "parameters: {a: {type: int, help: h}}\n", "`env` is missing"),
    "parameter-bad-env": (GOOD + "parameters: {a: {type: int, env: a b, help: h}}\n", "UPPER_CASE"),
    "bad-choice": (GOOD.replace("side: train", "side: both"), "both", "train, infer"),
    "bad-verified": (GOOD + "verified: ['soon']\n", "no version"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_with_its_place(name: str, tmp_path: Path) -> None:
    text, *parts = WRONG[name]
    error = refusal(tmp_path, text)
    said = " ".join(str(value) for value in error.as_json().values())
    for part in parts:
        assert str(part) in said


def test_a_payload_that_is_a_symlink_out_is_refused(tmp_path: Path) -> None:
    (tmp_path / "payloads").mkdir()
    (tmp_path / "secret.py").write_text("x = 1\n")
    (tmp_path / "payloads" / "p.py").symlink_to(tmp_path / "secret.py")
    error = refusal(tmp_path, GOOD.replace(EDIT, "  - {id: a, file: m.py, add_file: p.py}"))
    assert "outside" in error.what


def test_a_missing_recipe_a_folder_and_a_device(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="no such file"):
        load_recipe(tmp_path / "gone.yaml")
    for path in (tmp_path, Path("/dev/zero")):
        with pytest.raises(RecipeError, match="no regular file"):
            load_recipe(path)


def test_a_payload_has_to_be_python(tmp_path: Path) -> None:
    (tmp_path / "payloads").mkdir()
    (tmp_path / "payloads" / "p.py").write_text("x = 1\ndef f(:\n    pass\n")
    error = refusal(tmp_path, GOOD.replace(EDIT, "  - {id: a, file: m.py, add_file: p.py}"))
    assert "line 2" in (error.why or "")


CODE = [
    ("before", "insert", "return tap($X)\nawait $X"),
    ("before", "insert", "    x = '''\n'''\n    yield x"),
    ("before", "insert", "try:\n    tap()\nexcept A, B:\n    pass"),
    ("before", "insert", "type Pair[T = int] = tuple[T, T]"),
    ("body_start", "body_start", "# only a comment"),
    ("with_item", "item", "tap({}, $X) as y"),
    ("set_argument", "argument", "key=lambda: {}"),
    ("replace_expression", "with", "yield $X"),
    ("decorator", "decorator", "@tap(1)"),
    ("add_method", "add_method", "@property\nasync def f(self): ..."),
]


@pytest.mark.parametrize(("verb", "key", "code"), CODE)
def test_code_that_fits_its_place_is_valid_in_newer_syntax_too(verb: str, key: str, code: str) -> None:
    check_snippet(verb, key, code)


def test_a_payload_has_a_limit(tmp_path: Path) -> None:
    (tmp_path / "payloads").mkdir()
    (tmp_path / "payloads" / "p.py").write_text("x = 1\n" * 300_000)
    assert "larger" in refusal(tmp_path, GOOD.replace(EDIT, "  - {id: a, file: m.py, add_file: p.py}")).what


def test_the_shipped_recipes_are_valid_and_name_the_schema() -> None:
    schema = recipe_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    from ruamel.yaml import YAML

    headings = catalogue()
    assert headings
    for heading in headings:
        recipe = load_recipe(heading.path)
        assert recipe.framework in frameworks()
        assert all(edit.why for edit in recipe.edits), recipe.id
        assert recipe.verified, f"{recipe.id} names no version it was tried on"
        text = heading.path.read_text(encoding="utf-8")
        assert text.startswith("# yaml-language-server: $schema="), recipe.id
        assert (heading.path.parent / text.splitlines()[0].partition("$schema=")[2]).resolve().is_file(), recipe.id
        jsonschema.validate(YAML(typ="safe", pure=True).load(text), schema)


def test_the_written_schema_is_the_real_one() -> None:
    written = RECIPES / "recipe.schema.json"
    assert json.loads(written.read_text(encoding="utf-8")) == recipe_schema()


@pytest.mark.parametrize("name", ["unknown-key", "two-verbs", "verb-incomplete", "number-for-text", "missing-key"])
def test_the_schema_refuses_what_the_reader_refuses(name: str) -> None:
    from ruamel.yaml import YAML

    data = YAML(typ="safe", pure=True).load(str(WRONG[name][0]))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, recipe_schema())
