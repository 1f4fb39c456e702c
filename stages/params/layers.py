"""Result files of the four layers, read back for the report; a result whose inputs have changed since is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from locales import _
from stages.card.evidence import digest
from stages.params.compare import RESULTS
from stages.params.mapping import KINDS
from stages.params.points import LAYERS, NOT_COMPUTED, Point, not_computed, of_findings, of_items
from stages.params.reading import ConfigError, read_object

CONFIG_FORMAT = "probepatch/param-config/1"
FILES = {layer: f"param_{layer}.json" for layer in LAYERS if layer != "modules"}
"""Where a layer's result lies, beside the task card or in the current folder; modules are part of the config's file."""
ALIGNED, MISMATCH = "EXACT", "MISMATCH"


@dataclass(frozen=True)
class Layer:
    """``state``: EXACT, MISMATCH, or not computed; ``only`` keys of one side, by side."""

    name: str
    state: str
    compared: int
    points: tuple[Point, ...]
    path: Path | None = None
    items: tuple[Mapping[str, Any], ...] = ()
    only: Mapping[str, tuple[str, ...]] | None = None
    why: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "compared": self.compared,
            "mismatches": len(self.points) if self.state != NOT_COMPUTED else None,
            "file": str(self.path) if self.path is not None else None,
            "why": self.why or None,
        }


def read_layers(paths: Mapping[str, Path]) -> list[Layer]:
    """``paths`` by config, structure, weights. A file that is not there is a layer that was not computed. Raises ConfigError."""
    config = _config(paths["config"])
    return [*config, *(_tensors(name, paths[name]) for name in ("structure", "weights"))]


def _missing(name: str, why: str, path: Path | None = None) -> Layer:
    return Layer(name, NOT_COMPUTED, 0, (not_computed(name, why),), path, why=why)


def _config(path: Path) -> list[Layer]:
    if not path.is_file():
        why = _("`params check` has not written {path}").format(path=path)
        return [_missing("config", why), _missing("modules", why)]
    data = read_object(path, _("result"))
    items = data.get("items")
    if data.get("format") != CONFIG_FORMAT or not _whole(items):
        raise ConfigError(_("this is no result of `params check`"), where=str(path))
    assert isinstance(items, list)
    changed = _changed(data)
    if changed:
        return [_missing("config", changed, path), _missing("modules", changed, path)]
    layers = []
    for name in ("config", "modules"):
        mine = [item for item in items if item["layer"] == name]
        if not mine:
            layers.append(
                _missing(name, _("no module list was given (--modules)") if name == "modules" else _("no items"), path)
            )
            continue
        points = tuple(of_items(mine))
        only = _only(data) if name == "config" else None
        layers.append(Layer(name, MISMATCH if points else ALIGNED, len(mine), points, path, tuple(mine), only))
    return layers


def _whole(items: Any) -> bool:
    keys = ("name", "layer", "kind", "result", "side", "why", "train", "infer", "module")
    return isinstance(items, list) and all(
        isinstance(item, dict)
        and all(key in item for key in keys)
        and item["layer"] in ("config", "modules")
        and item["kind"] in KINDS
        and item["result"] in RESULTS
        and isinstance(item["name"], str)
        for item in items
    )


def _tensors(name: str, path: Path) -> Layer:
    if not path.is_file():
        return _missing(name, _("`params {name}` has not written {path}").format(name=name, path=path))
    data = read_object(path, _("result"))
    findings, compared = data.get("findings"), data.get("compared")
    whole = isinstance(findings, list) and all(
        isinstance(one, dict) and isinstance(one.get("name"), str) and isinstance(one.get("verdict"), str)
        for one in findings
    )
    if not whole or type(compared) is not int:
        raise ConfigError(_("this is no result of `params {name}`").format(name=name), where=str(path))
    changed = _changed(data)
    if changed:
        return _missing(name, changed, path)
    if compared == 0:
        return _missing(name, _("nothing was compared"), path)
    assert isinstance(findings, list)
    points = tuple(of_findings(name, findings))
    if not points and data.get("verdict") not in (ALIGNED, None):
        return _missing(name, _("the result says {verdict}").format(verdict=data["verdict"]), path)
    return Layer(name, MISMATCH if points else ALIGNED, compared, points, path, (), _only(data))


def _only(data: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {side: tuple(str(key) for key in data.get(f"{side}_only_keys") or ()) for side in ("train", "infer")}


def _changed(data: Mapping[str, Any]) -> str:
    """Why the result does not hold any more."""
    inputs = data.get("inputs")
    for path, known in inputs.items() if isinstance(inputs, dict) else ():
        if digest(Path(path)) != known:
            return _("{path} has changed since; run it again").format(path=path)
    sides = data.get("sides")
    for side in sides.values() if isinstance(sides, dict) else ():
        for file in side.get("files") or () if isinstance(side, dict) else ():
            if _size_and_time(Path(file["path"])) != (file["bytes"], file["mtime_ns"]):
                return _("{path} has changed since; run it again").format(path=file["path"])
    return ""


def _size_and_time(path: Path) -> tuple[int, int] | None:
    """What stands for the contents of a file of weights."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
