"""The record back-test on a few releases; ``python -m tests.authoring.record_backtest`` runs it on all of them."""

from __future__ import annotations

import pytest

from tests.authoring.record_backtest import cells

pytestmark = pytest.mark.network

RUNS = [
    ("verl", "0.4.1", "verl-legacy-megatron"),
    ("verl", "0.9.1", "verl-engine-fsdp"),
    ("sglang", "0.5.10", "sglang-capture"),
    ("vllm_ascend", "0.11.0", "vllm-ascend-capture"),
]


@pytest.mark.parametrize(("framework", "version", "recipe"), RUNS)
def test_what_was_applied_is_recorded_and_applied_again(framework, version, recipe):
    (cell,) = cells(framework, version, only=[recipe])
    assert cell.fault == ""
    assert cell.verbs
