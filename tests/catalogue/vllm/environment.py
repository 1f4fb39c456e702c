"""The interpreter of the real runs: one with vLLM for CPUs and msprobe (pins-vllm.txt), made once and kept in the cache.

    PROBEPATCH_REAL_VLLM_PYTHON  such an interpreter; its vLLM is patched, and put back

The cache and its folder are those of tests/real/environment.py.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.real.environment import _install, _made

_GIVEN = os.environ.get("PROBEPATCH_REAL_VLLM_PYTHON")  # read on import: the tests run without the user's settings
PINS = Path(__file__).with_name("pins-vllm.txt")


def interpreter() -> Path:
    return Path(_GIVEN) if _GIVEN else _made("vllm", str(PINS), _install) / "bin" / "python"
