"""Versions and places of packages, without importing them: a package is found as a job in the work folder finds it."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import sys
from typing import Any


def probe(given: dict[str, Any]) -> dict[str, Any]:
    """``given``: ``packages`` (import names), ``workdir`` (or null), ``pythonpath`` (folders). Null: not there."""
    search(given)
    return {name: package(name) for name in given["packages"]}


def search(given: dict[str, Any]) -> None:
    """The search path of ``python -m …`` started in the work folder; of this script's own folder there is none."""
    sys.path[:] = [place for place in sys.path if place]
    sys.path[:0] = given["pythonpath"]
    if given["workdir"] and os.path.isdir(given["workdir"]):
        os.chdir(given["workdir"])
        sys.path.insert(0, given["workdir"])


def package(name: str) -> dict[str, Any] | None:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        spec = None
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or ())
    origin = spec.origin if spec.origin and os.path.exists(spec.origin) else None
    return {
        "folder": os.path.realpath(os.path.dirname(origin) if origin else folders[0]) if origin or folders else None,
        "version": version(name),
        "namespace": origin is None,
    }


def version(name: str) -> str | None:
    """Of the distribution that holds the import name; null where there is none or more than one that differ."""
    names = {name, name.replace("_", "-")}
    if hasattr(importlib.metadata, "packages_distributions"):
        names |= set(importlib.metadata.packages_distributions().get(name, ()))
    found = set()
    for one in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.add(importlib.metadata.version(one))
    return found.pop() if len(found) == 1 else None
