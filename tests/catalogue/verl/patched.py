"""A verl release with a recipe applied, and processes under an interpreter that has verl's dependencies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.real import environment

REPOSITORY = Path(__file__).parents[3]
DRIVES = (Path(__file__).parent / "drive", REPOSITORY / "tests" / "real" / "drive")


def probepatch(command: str, tree: Path, *options: str) -> None:
    line = [sys.executable, "-m", "probepatch", command, str(tree), *options]
    done = subprocess.run(line, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def patched(version: str, folder: Path, *recipes: str) -> Path:
    """A copy of the release with the recipes applied."""
    tree = folder / "patched"
    shutil.copytree(environment.release(version), tree)
    probepatch("apply", tree, *(option for recipe in recipes for option in ("--recipe", recipe)))
    return tree


def python(tree: Path, version: str, script: str, *options: str | Path, **switches: str) -> None:
    """Run a script of one of the drive folders on ``tree``; what it asserts has to hold."""
    older = [environment.legacy_libraries()] if version < "0.8" else []
    path = os.pathsep.join(map(str, [tree, *DRIVES, *older]))
    settings = {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    settings |= {"MKL_CBWR": "COMPATIBLE", **switches}  # else a sum depends on where its operands lie in memory
    file = next(folder / script for folder in DRIVES if (folder / script).exists())
    command = [str(part) for part in (environment.interpreter(), file, *options)]
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


def training_step(tree: Path, version: str, kind: str, model: Path, out: Path, *options: str, **switches: str) -> Any:
    """What one log-prob pass and one training step of a real worker saw."""
    python(tree, version, "worker.py", kind, model, out, *options, **switches)
    seen = json.loads(out.read_text())
    assert Path(seen.pop("verl")).is_relative_to(tree)
    return seen


def dump_switches(folder: Path, **config: Any) -> Mapping[str, str]:
    """Switches of a process that dumps into ``folder``."""
    folder.mkdir()
    file = folder / "config.json"
    file.write_text(json.dumps({"dump_path": str(folder)} | config))
    return {"DUMP_ON": "1", "MSPROBE_ACTOR_CONFIG": str(file)}
