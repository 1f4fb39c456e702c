"""SGLang's released sources: which recipe fits, preview, apply, compile, apply again, revert, byte for byte."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.verl.wheels import wheel

pytestmark = pytest.mark.network

ROOT = Path(__file__).parents[3]
PLAIN = ("0.5.8", "0.5.8.post1", "0.5.9", "0.5.10", "0.5.10.post1")
NATIVE = (
    "0.5.11", "0.5.12", "0.5.12.post1", "0.5.13", "0.5.13.post1", "0.5.14", "0.5.15", "0.5.15.post1", "0.5.16",
    "0.5.17", "0.5.18", "0.5.19", "0.5.20", "0.5.21", "0.5.22", "0.5.23",
)  # fmt: skip
RUNS = [(version, "sglang-capture") for version in PLAIN] + [(version, "sglang-dispatch-log") for version in NATIVE]
FOLDERS = ("sglang/srt/managers/", "sglang/srt/model_executor/")
FILES = ("sglang/__init__.py", "sglang/version.py", "sglang/_version.py", "sglang/srt/server_args.py")


def answer(*arguments: str | Path) -> Any:
    command = [sys.executable, "-m", "probepatch", *map(str, arguments), "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def snapshot(root: Path) -> dict[str, tuple[int, str]]:
    """Mode and hash of every file."""
    return {
        path.relative_to(root).as_posix(): (path.stat().st_mode, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in root.rglob("*")
        if path.is_file() and ".probepatch" not in path.parts
    }


def sources(version: str, into: Path, metadata: bool = True) -> Path:
    """The part of a release that the recipes look at."""
    with zipfile.ZipFile(wheel("sglang", version)) as archive:
        for name in archive.namelist():
            wanted = name in FILES or (name.startswith(FOLDERS) and name.endswith(".py"))
            if wanted or (metadata and name.endswith(".dist-info/METADATA")):
                archive.extract(name, into)
    return into


@pytest.mark.parametrize(("version", "recipe"), RUNS)
def test_the_round_on_a_release(version: str, recipe: str, tmp_path: Path) -> None:
    root = sources(version, tmp_path / version)
    pristine = snapshot(root)

    identity = answer("identify", root)
    assert identity["version"]["declared"] == version
    assert [item["id"] for item in identity["recipes"] if item["fits"]] == [recipe]

    preview = answer("diff", root, "--recipe", recipe)
    assert snapshot(root) == pristine
    answer("apply", root, "--recipe", recipe)
    patched = snapshot(root)
    changed = {path for path in patched if patched[path] != pristine.get(path)}
    assert changed == {file["path"] for file in preview["files"]}
    assert "sglang/probepatch_sglang.py" in changed
    for path in changed:
        compile((root / path).read_bytes(), path, "exec", dont_inherit=True)

    assert {edit["state"] for edit in answer("status", root)["edits"]} == {"applied"}
    answer("apply", root, "--recipe", recipe)
    assert snapshot(root) == patched
    assert answer("revert", root)["proof"]["exact"] is True
    assert snapshot(root) == pristine


@pytest.mark.parametrize("version", ["0.5.10", "0.5.12", "0.5.23"])
def test_a_checkout_without_a_built_version_is_told_by_its_contents(version: str, tmp_path: Path) -> None:
    sources(version, tmp_path / "python", metadata=False)  # as in the repository: python/sglang
    (tmp_path / "python" / "sglang" / "_version.py").unlink(missing_ok=True)
    identity = answer("identify", tmp_path)
    assert identity["version"]["declared"] is None
    expected = "sglang-capture" if version in PLAIN else "sglang-dispatch-log"
    assert [item["id"] for item in identity["recipes"] if item["fits"]] == [expected]
    answer("diff", tmp_path)


@pytest.mark.parametrize("version", ["0.5.11", "0.5.13.post1", "0.5.23"])
def test_the_notes_say_how_the_native_dump_is_switched_on(version: str, tmp_path: Path) -> None:
    notes = " ".join(answer("diff", sources(version, tmp_path))["notes"])
    assert "--msprobe-dump-config PATH" in notes
    assert "--sglang-msprobe-dump-config PATH" in notes
    assert "stays silent" in notes
