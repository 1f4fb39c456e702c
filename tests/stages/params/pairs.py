"""Pairs of real configs: providers that Megatron-Bridge 0.3.1 made, and configs that transformers 4.57.6 and 5.9.0 wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

REAL = Path(__file__).parent / "real"
PLANTED: list[dict[str, Any]] = json.loads((Path(__file__).parent / "planted.json").read_text())
OLD, NEW = "4.57.6", "5.9.0"


def provider(model: str, version: str = OLD) -> Path:
    return REAL / f"megatron-bridge-0.3.1/{model}.hf-{version}.json"


def hf(model: str, version: str = OLD, full: bool = False) -> Path:
    """``full``: with everything that the class fills in."""
    return REAL / f"hf-{version}/{model}{'.full' if full else ''}.json"


def load(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def planted(case: dict[str, Any], folder: Path) -> tuple[Path, Path, str]:
    """(train, infer, mapping) with the case's mismatch in it."""
    kind, _colon, model = case["pair"].partition(":")
    train, infer = (
        load(provider(model) if kind == "megatron" else hf(model)),
        load(hf(model, OLD if kind == "megatron" else NEW)),
    )
    inner = train["config"] if kind == "megatron" else train
    for target, change in ((inner, case.get("train", {})), (infer, case.get("infer", {}))):
        for path, value in change.items():
            _set(target, path, value)
    for target, names in ((inner, case.get("drop_train", ())), (infer, case.get("drop_infer", ()))):
        for name in names:
            target.pop(name, None)
    if "undeclared" in case:
        train["undeclared"] = case["undeclared"]
    paths = folder / "train.json", folder / "infer.json"
    for path, data in zip(paths, (train, infer), strict=True):
        path.write_text(json.dumps(data))
    return *paths, "hf-megatron" if kind == "megatron" else "hf-hf"


def _set(target: dict[str, Any], path: str, value: Any) -> None:
    *above, last = path.split(".")
    for part in above:
        target = target[part]
    target[last] = value
