"""What token ids a saved input holds, told without telling them. Runs in a side's own interpreter, with torch alone.

``sha256`` is that of all ids in decimal, joined by commas. Where it is not the one asked for, ``real`` says at which end the
prompt was found in them, front or back, and ``rest`` whether the other ids are all alike (padding) or not (other).
"""

from __future__ import annotations

import hashlib
import importlib
from typing import Any

MOST = 1 << 24  # ids


def probe(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """``given``: path, sha256 and tokens of each; the last two None where the log has none."""
    torch = importlib.import_module("torch")
    return [one(torch, **asked) for asked in given]


def one(torch: Any, path: str, sha256: str | None, tokens: int | None) -> dict[str, Any]:
    try:
        return told(torch, torch.load(path, map_location="cpu", weights_only=True), sha256, tokens)
    except Exception as error:  # noqa: BLE001 - whatever a file holds; the message may quote it
        return {"error": f"it cannot be loaded: {type(error).__name__}"}


def told(torch: Any, saved: Any, sha256: str | None, tokens: int | None) -> dict[str, Any]:
    if not isinstance(saved, torch.Tensor):
        return {"error": f"it holds a {type(saved).__name__}, no tensor"}
    if saved.is_floating_point() or saved.is_complex() or saved.numel() > MOST:
        return {"error": f"it holds {saved.dtype} of shape {list(saved.shape)}, no token ids"}
    ids = saved.reshape(-1).tolist()
    found = {"rows": len(ids), "sha256": digest(ids), "real": None, "rest": None}
    if sha256 and tokens and found["sha256"] != sha256 and 0 < tokens < len(ids):
        for real, part, rest in (("front", ids[:tokens], ids[tokens:]), ("back", ids[-tokens:], ids[:-tokens])):
            if digest(part) == sha256:
                found.update(real=real, rest="padding" if len(set(rest)) == 1 else "other")
                break
    return found


def digest(ids: list[int]) -> str:
    return hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest()
