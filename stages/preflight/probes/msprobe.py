"""msprobe, imported in earnest as an engine would: engines swallow this ImportError and dump nothing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import sys
from typing import Any

LOADER = "msprobe.pytorch.dump.module_load.tensor_loader"


def probe(given: dict[str, Any]) -> dict[str, Any]:
    sys.path[:] = [place for place in sys.path if place]
    sys.path[:0] = given["pythonpath"]
    if given["workdir"] and os.path.isdir(given["workdir"]):
        os.chdir(given["workdir"])
        sys.path.insert(0, given["workdir"])
    answer: dict[str, Any] = {"version": version(), "imported": False, "load": None, "torch": None, "folder": None}
    answer.update(error=None, missing=None)
    try:
        from msprobe.pytorch import PrecisionDebugger  # type: ignore[import-not-found,unused-ignore]

        answer["imported"] = callable(PrecisionDebugger)
        answer["load"] = importlib.util.find_spec(LOADER) is not None
    except ModuleNotFoundError as error:
        if answer["imported"]:
            answer["load"] = False  # a package above the loader is not there
        else:
            answer.update(error=f"{type(error).__name__}: {error}"[:300], missing=error.name)
    except BaseException as error:  # noqa: BLE001 - whatever it is, an engine meets it too
        answer.update(error=f"{type(error).__name__}: {error}"[:300], missing=getattr(error, "name", None))
    torch = sys.modules.get("torch")
    answer["torch"] = str(torch.__version__) if torch is not None and hasattr(torch, "__version__") else None
    folder = getattr(sys.modules.get("msprobe"), "__file__", None)
    answer["folder"] = os.path.dirname(os.path.realpath(folder)) if folder else None
    return answer


def version() -> str | None:
    try:
        return importlib.metadata.version("mindstudio-probe")
    except importlib.metadata.PackageNotFoundError:
        return None
