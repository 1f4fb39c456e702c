"""Whether msprobe takes a config, and what is at its dump_path. The debugger is built as an engine would, and never started."""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import tempfile
from typing import Any


def probe(given: dict[str, Any]) -> dict[str, Any]:
    """``given``: ``config`` (the object), ``workdir`` of the job, ``root`` (a path on both sides), ``build`` (ask msprobe)."""
    answer: dict[str, Any] = {"version": version(), "accepted": False, "error": None, "missing": None}
    answer["holds"] = holds(given["config"].get("dump_path"))
    answer["root"] = mark(given["root"])
    sys.path[:] = [place for place in sys.path if place]
    if given["workdir"] and os.path.isdir(given["workdir"]):
        sys.path.insert(0, given["workdir"])
    if not given["build"]:
        return answer
    try:
        with tempfile.TemporaryDirectory(prefix="probepatch-config-") as folder:
            path = os.path.join(folder, "config.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({**given["config"], "dump_path": os.path.join(folder, "dump")}, file)
            os.chdir(folder)  # what a debugger leaves beside it goes as well
            from msprobe.pytorch import PrecisionDebugger  # type: ignore[import-not-found,unused-ignore]

            PrecisionDebugger(config_path=path)
            os.chdir(os.sep)
        answer["accepted"] = True
    except BaseException as error:  # noqa: BLE001 - whatever it is, the job meets it too
        answer.update(error=f"{type(error).__name__}: {error}"[:300], missing=getattr(error, "name", None))
    return answer


def version() -> str | None:
    try:
        return importlib.metadata.version("mindstudio-probe")
    except importlib.metadata.PackageNotFoundError:
        return None


def holds(path: str | None) -> list[str]:
    """The first names at a dump_path; empty when nothing is there."""
    try:
        return sorted(os.listdir(path))[:5] if path else []
    except NotADirectoryError:
        return ["(it is no folder)"]
    except OSError:
        return []


def mark(path: str) -> dict[str, Any]:
    """What tells the nearest folder at a path from others: the same here and there is the same folder."""
    while not os.path.isdir(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return {"path": path, "inode": os.stat(path).st_ino, "writable": os.access(path, os.W_OK)}
