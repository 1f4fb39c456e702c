"""A stub round overrides the step that it was meant for, and no forward after it: each payload under real msprobe."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.real.environment import interpreter

pytestmark = pytest.mark.real
HERE = Path(__file__).parent
PAYLOADS = sorted((HERE.parents[2] / "recipes" / "payloads").glob("*.py"))


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda path: path.stem)
def test_the_override_ends_with_its_step(payload: Path, tmp_path: Path) -> None:
    command = [interpreter(), HERE / "drive_load.py", payload, tmp_path]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"stubbed": True, "after": True}
