"""The response segment's probability difference: not measured is not zero."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalogue.verl.patched import patched, python
from tests.real import environment

pytestmark = pytest.mark.real


@pytest.mark.parametrize("version", ["0.6.0", "0.6.1", "0.7.0", "0.7.1"])
def test_no_counted_token_is_not_measured(version: str, tmp_path: Path) -> None:
    python(patched(version, tmp_path, "verl-debug-metrics"), version, "debug_metrics.py", "patched")


@pytest.mark.parametrize("version", ["0.8.0", "0.9.0", "0.9.1"])
def test_later_releases_say_so_themselves(version: str) -> None:
    python(environment.release(version), version, "debug_metrics.py", "published")
