"""The recipes on slime's releases and on trees of vime's shapes: they fit, apply, compile, and come out byte for byte."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.catalogue.slime import trees

ROOT = Path(__file__).parents[3]
Git = Callable[..., str]

SITES = {"backends/megatron_utils/actor.py", "backends/megatron_utils/model.py", "ray/rollout.py"}
EVERY = [("slime", tag, trees.recipe_of(tag)) for tag in (*trees.FIRST, *trees.LATER)]
EVERY += [("vime", shape, "vime-megatron") for shape in trees.VIME]
EVERY += [(package, shape, f"{package}-megatron") for package in ("slime", "vime") for shape in trees.SMALL]


def answer(*arguments: str | Path) -> Any:
    command = [sys.executable, "-m", "probepatch", *map(str, arguments), "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def contents(root: Path) -> dict[str, tuple[int, bytes]]:
    files = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {path.relative_to(root).as_posix(): (path.stat().st_mode, path.read_bytes()) for path in files}


@pytest.mark.parametrize(("package", "tree", "recipe"), EVERY, ids=lambda value: value)
def test_the_round(package: str, tree: str, recipe: str, tmp_path: Path, git: Git) -> None:
    root = getattr(trees, package)(tree, tmp_path / "checkout")
    git(root, "init", "-q")
    git(root, "add", "-A", "-f")
    git(root, "commit", "-q", "-m", tree)
    pristine = contents(root)

    identity = answer("identify", root)
    assert identity["framework"] == package
    assert [item["id"] for item in identity["recipes"] if item["fits"]] == [recipe]

    answer("diff", root)
    assert contents(root) == pristine

    answer("apply", root)
    patched = contents(root)
    changed = {path for path in patched if patched[path] != pristine.get(path)}
    client = "sglang_rollout.py" if package == "slime" else "vllm_rollout.py"
    sites = {*SITES, f"rollout/{client}", f"probepatch_{package}.py"}
    if tree in trees.FIRST:
        sites.add("utils/data.py")
    assert changed == {f"{package}/{site}" for site in sites}
    for path in changed:
        compile(patched[path][1], path, "exec", dont_inherit=True)

    answer("apply", root)
    assert contents(root) == patched

    answer("revert", root)
    assert contents(root) == pristine
    assert git(root, "status", "--porcelain", "--ignored") == ""
