"""Result files of the four layers, read back for the report; a result whose inputs have changed since is none."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from locales import _
from stages.card.evidence import digest
from stages.params.compare import RESULTS
from stages.params.mapping import KINDS
from stages.params.points import LAYERS, NOT_COMPUTED, Point, not_computed, of_findings, of_items
from stages.params.reading import ConfigError, read_object
from stages.params_tensors.sample import fingerprint

CONFIG_FORMAT = "probepatch/param-config/1"
FILES = {layer: f"param_{layer}.json" for layer in LAYERS if layer != "modules"}
"""Where a layer's result lies, beside the task card or in the current folder; modules are part of the config's file."""
ALIGNED, MISMATCH = "EXACT", "MISMATCH"


@dataclass(frozen=True)
class Layer:
    """``state``: EXACT, MISMATCH, or not computed; ``only`` keys of one side, by side; ``sides``: what the config layer says of
    each side's config (path, kind, bridge_file)."""

    name: str
    state: str
    compared: int
    points: tuple[Point, ...]
    path: Path | None = None
    items: tuple[Mapping[str, Any], ...] = ()
    only: Mapping[str, tuple[str, ...]] | None = None
    why: str = ""
    sides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

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
    if not os.path.isfile(path):
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
            unread = _("no module list was given (`params modules` writes it, --modules reads it)")
            layers.append(_missing(name, unread if name == "modules" else _("no items"), path))
            continue
        points = tuple(of_items(mine))
        only = _only(data) if name == "config" else None
        sides = {side: told for side in ("train", "infer") if isinstance(told := data.get(side), dict)}
        state = MISMATCH if points else ALIGNED
        layers.append(Layer(name, state, len(mine), points, path, tuple(mine), only, sides=sides))
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
        and isinstance(item["why"], str)
        and item["side"] in ("train", "infer", None)
        and isinstance(item["module"], (str, type(None)))
        and all(_is_reading(item[side]) for side in ("train", "infer"))
        for item in items
    )


def _is_reading(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and isinstance(value.get("undeclared", {}), dict))


def _tensors(name: str, path: Path) -> Layer:
    if not os.path.isfile(path):
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
    if not points and data.get("verdict") != ALIGNED:
        return _missing(name, _("the result says {verdict}").format(verdict=data.get("verdict")), path)
    return Layer(name, MISMATCH if points else ALIGNED, compared, points, path, (), _only(data))


def _only(data: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    found = {}
    for side in ("train", "infer"):
        keys = data.get(f"{side}_only_keys")
        found[side] = tuple(map(str, keys)) if isinstance(keys, list) else ()
    return found


def _changed(data: Mapping[str, Any]) -> str:
    """Why the result does not hold any more: small files are told by their hash, weights by size, time and a sample."""
    inputs = data.get("inputs")
    hashes = inputs if isinstance(inputs, dict) else {}
    for path, known in hashes.items():
        if digest(Path(path)) != known:
            return _("{path} has changed since; run it again").format(path=path)
    for file in _files(data.get("sides")):
        path = str(file.get("path"))
        now = fingerprint(Path(path))
        if path not in hashes and any(file.get(name) != value for name, value in now.items()):
            return _("{path} has changed since; run it again").format(path=path)
    return ""


def _files(sides: Any) -> Iterator[Mapping[str, Any]]:
    for side in sides.values() if isinstance(sides, dict) else ():
        files = side.get("files") if isinstance(side, dict) else None
        yield from (file for file in files if isinstance(file, dict)) if isinstance(files, list) else ()
