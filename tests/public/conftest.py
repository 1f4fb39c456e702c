from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Git
from tests.public.driver import Forks, forks, lay_out


@pytest.fixture
def checkout(tmp_path: Path) -> Callable[[Path], Path]:
    """``checkout(case)``: a plain folder that holds a case's inputs."""
    return lambda folder: lay_out(folder, tmp_path / "checkout")


@pytest.fixture
def in_git(tmp_path: Path, git: Git) -> Callable[[Path], Path]:
    """``in_git(case)``: the same, committed."""

    def build(folder: Path) -> Path:
        root = lay_out(folder, tmp_path / "checkout")
        git(root, "init", "-q")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "as it was")
        return root

    return build


@pytest.fixture(scope="module")
def forked() -> Iterator[Forks]:
    """The process that forks a command line for each command."""
    with forks() as running:
        yield running


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach, which pytest's own is not; it belongs to an ordinary user."""
    folder = Path(tempfile.mkdtemp()).resolve()
    folder.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(folder, 65534, 65534)
    yield folder
    shutil.rmtree(folder)
