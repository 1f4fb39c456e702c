"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def describe(git: str) -> dict[str, str]:
    """Label -> text."""
    tools = {name: _version(name) for name in ("libcst", "ast-grep-cli", "ruamel.yaml", "click")}
    tools["git"] = subprocess.run([git, "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    return {
        "CPU": f"{_cpu()}, {len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()} cores",
        "system": platform.platform(),
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "tools": ", ".join(f"{name} {text}" for name, text in tools.items()),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"
