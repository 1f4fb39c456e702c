"""What is at paths, and which commands are found."""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import Any


def probe(given: dict[str, Any]) -> dict[str, Any]:
    """``given``: ``paths`` (label: path), ``commands`` (names), ``folder`` (where a relative name is looked for)."""
    folder = given.get("folder")
    return {
        "paths": {label: look(path) for label, path in given["paths"].items()},
        "commands": {name: which(name, folder) for name in given["commands"]},
    }


def look(path: str) -> dict[str, Any]:
    """``near``: the path itself, or the nearest folder above it that is there; ``free`` and ``total``: bytes of its disk."""
    path = os.path.abspath(os.path.expanduser(path))
    near = path
    while not os.path.lexists(near) and os.path.dirname(near) != near:
        near = os.path.dirname(near)
    total: int | None = None
    free: int | None = None
    with contextlib.suppress(OSError):  # they stay unknown
        total, _used, free = shutil.disk_usage(near)
    return {
        "path": path,
        "real": os.path.realpath(path),
        "kind": "folder"
        if os.path.isdir(path)
        else "file"
        if os.path.isfile(path)
        else "other"
        if near == path
        else None,
        "readable": os.access(path, os.R_OK),
        "near": near,
        "near_folder": os.path.isdir(near),
        "near_writable": os.access(near, os.W_OK | os.X_OK if os.path.isdir(near) else os.W_OK),
        "free": free,
        "total": total,
        "repository": repository(os.path.realpath(near)),
    }


def repository(path: str) -> str | None:
    """The root of the git checkout that a path is in."""
    while True:
        if os.path.lexists(os.path.join(path, ".git")):
            return path
        if os.path.dirname(path) == path:
            return None
        path = os.path.dirname(path)


def which(name: str, folder: str | None) -> str | None:
    if "/" not in name:
        return shutil.which(name)
    path = os.path.join(folder or os.getcwd(), os.path.expanduser(name))
    return path if os.path.isfile(path) and os.access(path, os.X_OK) else None
