"""Every verb has an example in docs/recipes.md, and each example is true."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from codemods.catalogue import FRAMEWORK, load_framework
from codemods.planner import plan_edits
from codemods.recipe_reader import load_recipe
from codemods.splice import render
from codemods.target import Bases
from codemods.verbs import VERBS

PAGE = Path(__file__).parents[2].joinpath("docs", "recipes.md").read_text(encoding="utf-8")
HEAD = 'recipe: example\nframework: example\nside: train\nversions: ">=0"\nwhy: an example\nedits:\n'


def section(verb: str) -> str:
    return PAGE.partition(f"\n### `{verb}`\n")[2].partition("\n### ")[0]


@pytest.mark.parametrize("verb", VERBS)
def test_the_example_of_a_verb_is_true(verb: str, tmp_path: Path) -> None:
    edit = re.search(r"```yaml\n(.*?)```", section(verb), re.DOTALL)
    assert edit, f"docs/recipes.md has no example for {verb}"
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(HEAD + textwrap.indent(edit.group(1), "  "), encoding="utf-8")
    loaded = load_recipe(recipe)
    assert [item.verb.name for item in loaded.edits] == [verb]
    if verb == "add_file":
        planned = plan_edits([loaded], Bases(lambda path: None))
        assert list(planned) == ["framework/probepatch_verl.py"]
        return
    before, after = re.findall(r"```python\n(.*?)```", section(verb), re.DOTALL)
    planned = plan_edits([loaded], Bases({"worker.py": before.encode()}.get))
    assert render(before.encode(), planned["worker.py"]).decode() == after
    assert before != after


@pytest.mark.parametrize("verb", VERBS)
def test_every_key_of_a_verb_is_explained(verb: str) -> None:
    for key in VERBS[verb].keys:
        assert f"| `{key}` |" in section(verb)


def part(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_both_ways_to_put_a_statement_into_a_with(tmp_path: Path) -> None:
    text = part("A statement in a `with`")
    edits, codes = (re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL) for kind in ("yaml", "python"))
    assert (len(edits), len(codes)) == (2, 4)
    for edit, before, after in zip(edits, codes[::2], codes[1::2], strict=True):
        recipe = tmp_path / "recipe.yaml"
        recipe.write_text(HEAD + textwrap.indent(edit, "  "), encoding="utf-8")
        planned = plan_edits([load_recipe(recipe)], Bases({"worker.py": before.encode()}.get))
        assert render(before.encode(), planned["worker.py"]).decode() == after


def test_the_description_of_a_framework(tmp_path: Path) -> None:
    text = part("A framework's description: `framework.yaml`")
    (shown,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    (tmp_path / "framework.yaml").write_text(shown, encoding="utf-8")
    framework = load_framework(tmp_path / "framework.yaml")
    assert (framework.name, framework.version_files) == ("mylab", ("mylab/version.py", "version.txt"))
    assert [probe.lacks for probe in framework.probes] == [False, True]
    for key in (*FRAMEWORK, *FRAMEWORK["probes"].fields):
        assert f"| `{key}` |" in text
