"""Every folder: inputs as the digests say, a recipe that is valid, and the public issue by name."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from codemods.recipe_reader import load_recipe
from tests.public.driver import CASES

ISSUE = re.compile(r"[\w.-]+/[\w.-]+#\d+")


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_a_case_is_whole(folder: Path) -> None:
    assert ISSUE.search((folder / "README.md").read_text())
    for path in folder.glob("*.yaml"):
        assert load_recipe(path).edits
    sums = folder / "SHA256SUMS"
    for line in sums.read_text().splitlines() if sums.exists() else ():
        digest, name = line.split()
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, name
