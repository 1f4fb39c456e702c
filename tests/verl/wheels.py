"""Released wheels from the package registry: downloaded once into a cache folder, unpacked, never installed."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

CACHE = Path(os.environ.get("PROBEPATCH_CACHE") or Path.home() / ".cache" / "probepatch")  # read before tests move HOME


def wheel(project: str, version: str) -> Path:
    """The path of the cached wheel."""
    folder = CACHE / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{project.replace('-', '_')}-{version}-*.whl"
    if not list(folder.glob(name)):
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
        command += ["--disable-pip-version-check", "-d", str(folder), f"{project}=={version}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
    return next(folder.glob(name))


def unpack(project: str, version: str, into: Path) -> Path:
    """The wheel's contents below ``into``."""
    with zipfile.ZipFile(wheel(project, version)) as archive:
        archive.extractall(into)
    return into
