"""What the real runs need: an interpreter with verl's dependencies, and verl's releases. Made once, kept in a cache.

PROBEPATCH_CACHE        where it is kept (~/.cache/probepatch)
PROBEPATCH_REAL_PYTHON  an interpreter that has it all already (pins-verl.txt)
PROBEPATCH_REAL_LEGACY  a folder with the older libraries that verl below 0.8 imports (pins-verl-legacy.txt)
PROBEPATCH_WHEELS       a folder with verl's wheels
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
# read on import: the tests themselves run without the user's settings
_ENVIRONMENT = dict(os.environ)
CACHE = Path(_ENVIRONMENT.get("PROBEPATCH_CACHE") or Path.home() / ".cache" / "probepatch")


def run(*command: str | Path) -> None:
    """Run a command as the user would, and show its output only when it fails."""
    done = subprocess.run([str(part) for part in command], env=_ENVIRONMENT, text=True, capture_output=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


def interpreter() -> Path:
    given = _ENVIRONMENT.get("PROBEPATCH_REAL_PYTHON")
    return Path(given) if given else _made("verl", "pins-verl.txt", _install) / "bin" / "python"


def legacy_libraries() -> Path:
    given = _ENVIRONMENT.get("PROBEPATCH_REAL_LEGACY")
    return Path(given) if given else _made("verl-legacy", "pins-verl-legacy.txt", _install_legacy)


def release(version: str) -> Path:
    """The unpacked wheel of a verl release: never to be changed, only copied."""
    wheels = Path(_ENVIRONMENT.get("PROBEPATCH_WHEELS") or CACHE / "wheels")
    with _one_at_a_time(f"wheel-{version}"):
        if not list(wheels.glob(f"verl-{version}-*.whl")):
            run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", wheels, f"verl=={version}")
    tree = CACHE / "trees" / f"verl-{version}"
    with _one_at_a_time(tree.name):
        if not tree.exists():
            parts = tree.with_name(f"{tree.name}.part-{os.getpid()}")
            with zipfile.ZipFile(next(wheels.glob(f"verl-{version}-*.whl"))) as wheel:
                wheel.extractall(parts)
            parts.rename(tree)
    return tree


def _made(name: str, pins: str, make: Callable[[Path, Path], None]) -> Path:
    """``make``'s folder, kept under a name that changes with the pins; half-made ones do not count."""
    key = hashlib.sha256((HERE / pins).read_bytes()).hexdigest()[:10]
    folder = CACHE / f"{name}-{key}"
    done = folder / "complete"
    with _one_at_a_time(name):
        if not done.exists():
            make(folder, HERE / pins)
            done.touch()
    return folder


@contextmanager
def _one_at_a_time(name: str) -> Iterator[None]:
    """Several test processes may want the same; the first makes it, and the others wait for it."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install(folder: Path, pins: Path) -> None:
    run(sys.executable, "-m", "venv", "--clear", folder)
    pip = (folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    torch = next(line for line in pins.read_text().splitlines() if line.startswith("torch=="))
    run(*pip, torch)  # with what its build needs on this machine
    run(*pip, "--no-deps", "-r", pins)


def _install_legacy(folder: Path, pins: Path) -> None:
    pip = (interpreter(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
    run(*pip, "--target", folder, "-r", pins)
