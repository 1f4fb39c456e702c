from __future__ import annotations

from pathlib import Path

import pytest

from tests.ledger.trees import PlainTree, git, write

MODULE = b"def f(x):\n    y = x + 1\n    return y\n\n\ndef g(x):\n    return x\n"


@pytest.fixture
def plain(tmp_path: Path) -> PlainTree:
    """A plain folder with three modules."""
    root = (tmp_path / "tree").resolve()
    write(root, {"pkg/__init__.py": b"", "pkg/a.py": MODULE, "pkg/b.py": MODULE, "pkg/c.py": MODULE})
    return PlainTree(root)


@pytest.fixture
def in_git(plain: PlainTree) -> PlainTree:
    """The same, tracked by git."""
    git(plain.root, "init", "-q", "-b", "main")
    git(plain.root, "add", ".")
    git(plain.root, "commit", "-qm", "one")
    return PlainTree(plain.root, plain.root / ".git")
