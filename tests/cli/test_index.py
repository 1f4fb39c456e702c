"""git's index is the user's: a whole round leaves it byte for byte, and in place, as it was."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECIPE = 'recipe: r\nframework: example\nside: train\nversions: ">=0"\nwhy: w\nedits:\n' + "".join(
    f'  - {{id: e{n}, file: m{n}.py, in: f, body_start: "tap()"}}\n' for n in range(4)
)


def test_a_round_does_not_touch_the_index(repo: Callable[..., Path], tmp_path: Path) -> None:
    """With several files that look changed and are not, `git diff` would write the index anew."""
    root = repo({f"m{n}.py": "def f():\n    return 1\n" for n in range(4)})
    (tmp_path / "r.yaml").write_text(RECIPE)
    index = root / ".git" / "index"
    before = (index.read_bytes(), index.stat().st_ino, index.stat().st_mtime_ns)
    for command in (["apply", root, "--recipe-file", tmp_path / "r.yaml"], ["status", root], ["revert", root]):
        line = [sys.executable, "-m", "probepatch", *map(str, command)]
        subprocess.run(line, cwd=ROOT, check=True, capture_output=True)
    assert (index.read_bytes(), index.stat().st_ino, index.stat().st_mtime_ns) == before
