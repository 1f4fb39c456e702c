"""The benchmark's stages name functions of ours; a name that is gone would only be noticed by the next `make bench`."""

from __future__ import annotations

import importlib

import pytest

from tests.bench.stages import STAGES


@pytest.mark.parametrize("dotted", [dotted for functions in STAGES.values() for dotted in functions])
def test_the_stage_is_a_function_of_ours(dotted: str) -> None:
    module, _dot, name = dotted.rpartition(".")
    assert callable(getattr(importlib.import_module(module), name))
