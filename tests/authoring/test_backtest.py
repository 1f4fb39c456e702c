"""Ports on real history and on trees changed on purpose: whatever is taken without asking is the right place."""

from __future__ import annotations

from collections import Counter

import pytest
from packaging.version import Version

from authoring.drift.diagnosis import diagnose
from authoring.drift.names import added_names
from authoring.drift.port import active
from authoring.drift.view import View
from authoring.trees import WheelTree
from codemods.catalogue import catalogue
from codemods.recipe_reader import load_recipe
from tests.authoring.backtest import measure, sites
from tests.authoring.mutations import mutations, taken_is
from tests.verl.wheels import wheel

pytestmark = pytest.mark.network


@pytest.mark.parametrize("with_base", [True, False])
def test_no_port_on_verls_history_takes_a_wrong_place(with_base: bool) -> None:
    counts = Counter(row.outcome for row in measure("verl", with_base))
    assert counts["wrong"] == 0
    assert counts["stays"] > 200
    if with_base:
        assert counts["missed"] == 0
        assert counts["re-found"] >= 9


def test_on_a_changed_tree_the_place_is_found_or_left_to_the_author() -> None:
    """Renamed, moved, copied, deleted: with the older tree at hand each rename is found, and nothing that is gone."""
    version = Version("0.9.1")
    tree = WheelTree(wheel("verl", "0.9.1"), "0.9.1")
    was = View(tree)
    recipe = next(load_recipe(one.path) for one in catalogue("verl") if one.id == "verl-engine-fsdp")
    tried = Counter[str]()
    for edit in active(recipe, version):
        place = edit.places[0]
        if not edit.verb.anchor or not sites(edit, place, was.bases):
            continue
        for mutation in mutations(edit, place, tree):
            found = diagnose(edit, View(mutation.tree), was, added_names(recipe, place))
            tried[mutation.name] += 1
            if mutation.truth is None:
                assert found.stands is None, (edit.id, mutation.name)
            else:
                assert found.stands is not None, (edit.id, mutation.name)
                assert taken_is(found.stands, mutation.truth), (edit.id, mutation.name)
    assert min(tried.values()) > 2
    assert len(tried) == 7
