"""The walk-through for authors shows what the commands really print."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.authoring.page import PAGE, prepare, run, same


@pytest.mark.network
def test_every_command_of_the_page_prints_what_the_page_shows(tmp_path: Path) -> None:
    prepare(tmp_path)
    ran = list(run(PAGE.read_text("utf-8"), tmp_path))
    assert len(ran) > 8
    for one in ran:
        assert same(one.said, one.printed), f"$ {one.command}\n" + "\n".join(one.printed)
