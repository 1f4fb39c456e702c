"""The walk-through for authors shows what the commands really print."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.authoring.page import PAGE, UNKNOWN_PYTHON, parts, prepare, prepare_unknown, run, same


def check(page: str, folder: Path, at_least: int) -> None:
    ran = list(run(page, folder))
    assert len(ran) >= at_least
    for one in ran:
        assert same(one.said, one.printed), f"$ {one.command}\n" + "\n".join(one.printed)


@pytest.mark.network
def test_every_command_of_the_page_prints_what_the_page_shows(tmp_path: Path) -> None:
    prepare(tmp_path)
    check(parts(PAGE.read_text("utf-8"))[0], tmp_path, 9)


@pytest.mark.network
@pytest.mark.skipif(sys.version_info[:2] != UNKNOWN_PYTHON, reason="openrlhf has a wheel for Python 3.11 alone")
def test_the_framework_that_nobody_knows(tmp_path: Path) -> None:
    prepare_unknown(tmp_path)
    check(parts(PAGE.read_text("utf-8"))[1], tmp_path, 7)
