"""Every training-side recipe of verl and the SPMD rollout's on the released sources: apply, apply again, revert."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.verl.test_releases import answer, snapshot
from tests.verl.wheels import unpack

pytestmark = pytest.mark.network

Git = Callable[..., str]
VERSIONS = ("0.4.1", "0.5.0", "0.6.0", "0.6.1", "0.7.0", "0.7.1", "0.8.0", "0.9.0", "0.9.1")
RANGES = {
    "verl-legacy-megatron": ("0.4.1", "0.7.1"),
    "verl-engine-megatron": ("0.7.0", "0.9.1"),
    "verl-legacy-fsdp-update": ("0.6.1", "0.7.1"),
    "verl-engine-fsdp-update": ("0.7.0", "0.9.1"),
    "verl-debug-metrics": ("0.6.0", "0.7.1"),
    "verl-spmd-rollout": ("0.4.1", "0.6.1"),
}


def fits(recipe: str, version: str) -> bool:
    first, last = RANGES[recipe]
    return first <= version <= last  # lexically: all of them have one digit in each place


ALONE = [(version, (recipe,)) for recipe in RANGES for version in VERSIONS if fits(recipe, version)]
TOGETHER = [("0.6.1", ("verl-legacy-fsdp-update", "verl-debug-metrics", "verl-spmd-rollout"))]
TOGETHER += [("0.7.1", ("verl-legacy-megatron", "verl-debug-metrics"))]


@pytest.mark.parametrize(("version", "recipes"), ALONE + TOGETHER)
def test_the_round_on_a_release(version: str, recipes: tuple[str, ...], tmp_path: Path, git: Git) -> None:
    root = unpack("verl", version, tmp_path / version)
    git(root, "init", "-q")
    git(root, "add", "-A", "-f")
    git(root, "commit", "-q", "-m", version)
    pristine = snapshot(root)
    fitting = {item["id"] for item in answer("identify", root)["recipes"] if item["fits"]}
    assert fitting & set(RANGES) == {recipe for recipe in RANGES if fits(recipe, version)}

    chosen = [option for recipe in recipes for option in ("--recipe", recipe)]
    answer("apply", root, *chosen)
    patched = snapshot(root)
    changed = {path for path in patched if patched[path] != pristine.get(path)}
    for path in changed:
        compile((root / path).read_bytes(), path, "exec", dont_inherit=True)
    answer("apply", root, *chosen)
    assert snapshot(root) == patched
    assert {edit["state"] for edit in answer("status", root)["edits"]} == {"applied"}
    answer("revert", root)
    assert snapshot(root) == pristine
