"""What each module of a built model holds as plain attributes: the list that `probepatch params check --modules` reads.

Copy this file next to the job, and call it where the model has been built::

    from list_modules import write_modules
    write_modules(model, "train", "modules.json")     # on the other side: "infer", into the same file or a copy of it

No tensor is read and nothing of the model is changed.
"""

from __future__ import annotations

import json
import math
import os
from typing import Any

_SKIPPED = ("training", "call_super_init", "dump_patches")


def module_list(model: Any) -> dict[str, dict[str, Any]]:
    """{path: {attribute: value}} of every module that holds a number, a flag or a word; its class as ``class``."""
    found = {}
    for path, module in model.named_modules():
        plain = {
            name: value
            for name, value in vars(module).items()
            if not name.startswith("_") and name not in _SKIPPED and _is_plain(value)
        }
        found[path or "."] = {"class": type(module).__name__, **plain}
    return found


def _is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value))


def write_modules(model: Any, side: str, path: str) -> None:
    """Put this side's list into the file; what the other side wrote stays."""
    assert side in ("train", "infer"), side
    data = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    data[side] = module_list(model)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(data, file, indent=1, sort_keys=True)
