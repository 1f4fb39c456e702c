"""What the recipes of verl have to have in common, so that several can stand on one tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.recipe_reader import load_recipe

RECIPES = Path(__file__).parents[3] / "recipes" / "verl"


@pytest.mark.parametrize("payload", ["probepatch_verl.py", "probepatch_verl_rollout.py"])
def test_recipes_that_add_one_payload_fill_it_alike(payload: str) -> None:
    """The parameters become a literal in it, and two recipes can share a file only when its bytes are the same."""
    recipes = [load_recipe(path) for path in sorted(RECIPES.glob("verl-*.yaml"))]
    sharing = [recipe for recipe in recipes if payload in recipe.payloads]
    assert sharing
    assert len({repr(recipe.parameters) for recipe in sharing}) == 1


def test_recipes_that_carry_request_ids_exclude_each_other() -> None:
    """Their edits in the rollout's files would be made twice."""
    for path in sorted(RECIPES.glob("verl-*.yaml")):
        recipe = load_recipe(path)
        if any(edit.id == "keep-request-id" for edit in recipe.edits):
            assert recipe.alternative is not None, recipe.id
            assert recipe.alternative.group == "verl-fsdp-worker"
