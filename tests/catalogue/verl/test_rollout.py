"""verl's own SPMD rollout with vLLM stood in for: each prompt's prefill is dumped, the rollout goes on the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalogue.verl.patched import patched, python


@pytest.mark.real
@pytest.mark.parametrize("version", ["0.4.1", "0.5.0", "0.6.0", "0.6.1"])
def test_the_spmd_rollout(version: str, tmp_path: Path) -> None:
    tree = patched(version, tmp_path, "verl-spmd-rollout", "verl-legacy-fsdp")
    python(tree, version, "spmd_rollout.py", tmp_path)
