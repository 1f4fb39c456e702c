"""What all tests share: a quiet, reproducible environment, and real git repositories in a temporary folder."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
Git = Callable[..., str]


_OTHERS = ("NO_COLOR", "FORCE_COLOR", "PYTHONPATH", "LANGUAGE")


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of the developer's git, terminal or language reach a test."""
    for name in list(os.environ):
        if name.startswith(("GIT_", "PROBEPATCH_", "LC_")) or name in _OTHERS:
            monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("LANG", "C.UTF-8")
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A Tester")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "tester@example.invalid")


@pytest.fixture
def git() -> Git:
    """``git(folder, *arguments)``: runs git there and gives its standard output."""

    def run(folder: Path, *arguments: str) -> str:
        command = ["git", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always", *arguments]
        return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout

    return run


@pytest.fixture
def repo(tmp_path: Path, git: Git) -> Callable[..., Path]:
    """``repo(files, name=…)``: a git checkout with these files (path -> text or bytes) in its one commit."""

    def build(files: dict[str, str | bytes], name: str = "checkout") -> Path:
        root = tmp_path / name
        root.mkdir()
        git(root, "init", "-q")
        write(root, files)
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "first")
        return root

    return build


@pytest.fixture
def demo_checkout(tmp_path: Path, git: Git) -> Path:
    """The demo's framework, committed to git."""
    root = tmp_path / "tinyrl-checkout"
    shutil.copytree(FIXTURES / "checkout", root, ignore=shutil.ignore_patterns("__pycache__"))
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first")
    return root


def write(root: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
