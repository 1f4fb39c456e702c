"""Small releases of a made-up framework, as tags and as wheels."""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tests.conftest import write

WORKER = "toy/worker.py"
CODE = """class Worker:
    def run(self, batch):
        out = self.model(batch)
        return out
"""
RECIPE = """\
recipe: toy-capture
framework: toy
side: train
versions: "{versions}"
why: see what runs
edits:
  - id: capture
    file: toy/worker.py
    in: Worker.run
    before: $OUT = self.model($IN)
    insert: print($IN)
"""
FRAMEWORK = "framework: toy\npackage: toy\nversion_files:\n  - {file: toy/version.txt}\n"
Files = Mapping[str, str | bytes]


def recipe(folder: Path, versions: str = ">=0.1", more: str = "", name: str = "toy-capture.yaml") -> Path:
    """The recipe, with ``more`` behind it and the framework beside it."""
    write(folder, {name: RECIPE.format(versions=versions) + more, "framework.yaml": FRAMEWORK})
    return folder / name


def release(code: str = CODE, **more: str | bytes) -> dict[str, str | bytes]:
    return {"toy/__init__.py": "", WORKER: code, **more}


def repository(root: Path, tags: Mapping[str, Files]) -> Path:
    """A git checkout with a commit for each tag, its files and no others."""
    root.mkdir(parents=True)
    git(root, "init", "-q")
    for tag, files in tags.items():
        git(root, "rm", "-r", "-q", "--ignore-unmatch", ".")
        write(root, dict(files))
        git(root, "add", "-A")
        git(root, "commit", "-q", "--allow-empty", "-m", "a release")
        git(root, "update-ref", f"refs/tags/{tag}", "HEAD")
    return root


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "init.defaultBranch=main", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def wheel(folder: Path, version: str, files: Files, name: str = "toy") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    metadata = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in {**files, **metadata}.items():
            archive.writestr(member, content)
    return path
