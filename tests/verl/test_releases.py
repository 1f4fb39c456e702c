"""The main job on verl's own released sources: preview, apply, status, apply again, revert, byte for byte."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.verl.wheels import unpack

pytestmark = pytest.mark.network

ROOT = Path(__file__).parents[2]
VERSIONS = ("0.4.1", "0.5.0", "0.6.0", "0.6.1", "0.7.0", "0.7.1", "0.8.0", "0.9.0", "0.9.1")
RUNS = [
    (version, recipe)
    for version in VERSIONS
    for recipe in ("verl-legacy-fsdp", "verl-engine-fsdp")
    if (version < "0.8" if recipe == "verl-legacy-fsdp" else version >= "0.7")
]
Git = Callable[..., str]


def probepatch(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "probepatch", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False)


def answer(*arguments: str | Path, code: int = 0) -> Any:
    done = probepatch(*arguments, "--json")
    assert done.returncode == code, done.stdout.decode() + done.stderr.decode()
    return json.loads(done.stdout)


def snapshot(root: Path) -> dict[str, tuple[int, str]]:
    """Mode and hash of every file outside of git's own folder."""
    found = {}
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        for name in files:
            path = Path(folder, name)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found[path.relative_to(root).as_posix()] = (path.stat().st_mode, digest)
    return found


@pytest.fixture
def checkout(tmp_path: Path, git: Git) -> Callable[[str], Path]:
    def build(version: str) -> Path:
        root = unpack("verl", version, tmp_path / version)
        git(root, "init", "-q")
        git(root, "add", "-A", "-f")
        git(root, "commit", "-q", "-m", version)
        return root

    return build


@pytest.mark.parametrize(("version", "recipe"), RUNS)
def test_the_round_on_a_release(
    version: str, recipe: str, checkout: Callable[[str], Path], git: Git, tmp_path: Path
) -> None:
    root = checkout(version)
    pristine = snapshot(root)

    identity = answer("identify", root)
    assert identity["framework"] == "verl"
    assert identity["version"]["declared"] == version
    ours = {"verl-legacy-fsdp", "verl-engine-fsdp"}
    assert {item["id"] for item in identity["recipes"] if item["fits"]} & ours == {r for v, r in RUNS if v == version}

    preview = answer("diff", root, "--recipe", recipe)
    printed = probepatch("diff", root, "--recipe", recipe, "--patch")
    assert printed.returncode == 0
    assert snapshot(root) == pristine

    answer("apply", root, "--recipe", recipe)
    patched = snapshot(root)
    changed = {path for path in patched if patched[path] != pristine.get(path)}
    assert changed == {file["path"] for file in preview["files"]}
    assert "verl/probepatch_verl.py" in changed
    assert all(patched[path][0] == pristine[path][0] for path in changed & set(pristine))
    for path in changed:
        compile((root / path).read_bytes(), path, "exec", dont_inherit=True)

    status = answer("status", root)
    assert status["edits"]
    assert {edit["state"] for edit in status["edits"]} == {"applied"}
    records = (root / ".git/probepatch/ledger.jsonl").read_bytes()
    answer("apply", root, "--recipe", recipe)
    assert snapshot(root) == patched
    assert (root / ".git/probepatch/ledger.jsonl").read_bytes() == records

    by_git = tmp_path / "by-git"
    git(root, "worktree", "add", "-q", str(by_git), "HEAD")
    (tmp_path / "printed.patch").write_bytes(printed.stdout)
    git(by_git, "apply", "--whitespace=nowarn", str(tmp_path / "printed.patch"))
    assert {path: patched[path][1] for path in changed} == {path: snapshot(by_git)[path][1] for path in changed}
    git(root, "worktree", "remove", "--force", str(by_git))

    receipt = answer("revert", root)
    assert snapshot(root) == pristine
    assert git(root, "status", "--porcelain", "--ignored") == ""
    assert receipt["proof"]["exact"] is True
    answer("revert", root)


@pytest.mark.parametrize("version", ["0.7.0", "0.7.1"])
def test_where_two_fit_the_frameworks_default_is_taken_and_both_are_named(
    version: str, checkout: Callable[[str], Path]
) -> None:
    preview = answer("diff", checkout(version))
    chosen = {recipe["id"] for recipe in preview["recipes"]}
    assert "verl-legacy-fsdp" in chosen
    assert "verl-engine-fsdp" not in chosen
    notes = " ".join(preview["notes"])
    assert "verl-engine-fsdp" in notes
    assert "use_legacy_worker_impl" in notes


def test_recipes_that_exclude_each_other_do_not_get_on_top_of_each_other(checkout: Callable[[str], Path]) -> None:
    root = checkout("0.7.0")
    pristine = snapshot(root)
    answer("apply", root, "--recipe", "verl-engine-fsdp")
    with_engine = snapshot(root)
    error = answer("apply", root, "--recipe", "verl-legacy-fsdp", code=1)["error"]
    assert error["kind"] == "excluded"
    assert "verl-engine-fsdp" in error["todo"]
    assert snapshot(root) == with_engine
    answer("apply", root)  # without a name: the one that is there stays, and its rival does not come
    applied = {edit["recipe"] for edit in answer("status", root)["edits"]}
    assert "verl-engine-fsdp" in applied
    assert "verl-legacy-fsdp" not in applied
    answer("revert", root)
    assert snapshot(root) == pristine
    answer("apply", root, "--recipe", "verl-legacy-fsdp", "--recipe", "verl-engine-fsdp", code=2)
    assert snapshot(root) == pristine


def test_single_edits_come_out_in_any_order(checkout: Callable[[str], Path]) -> None:
    root = checkout("0.9.1")
    pristine = snapshot(root)
    answer("apply", root)
    for edit in sorted(edit["edit"] for edit in answer("status", root)["edits"]):
        answer("revert", root, "--edit", edit)
    assert snapshot(root) == pristine


def test_an_installed_package_is_patched_where_python_imports_it(tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    site = next(environment.glob("lib/python*/site-packages"))
    unpack("verl", "0.9.1", site)
    pristine = snapshot(site)
    python = environment / "bin" / "python"
    answer("apply", "--package", "verl", "--python", python)
    assert (site / "verl" / "probepatch_verl.py").is_file()
    assert "probepatch_verl" in (site / "verl" / "workers" / "engine_workers.py").read_text()
    answer("revert", "--package", "verl", "--python", python)
    assert snapshot(site) == pristine
