"""What has to be done about each point: the side, the method, the target, the action, and how it is verified afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from codemods.errors import RefusedError
from locales import _
from stages.params.mapping import STRUCTURE, SWITCH
from stages.params.points import NOT_COMPUTED, Point
from stages.params.reading import HF, ConfigError, read_object

FORMAT = "probepatch/param-alignment-instruction/1"
METHODS = ("config", "code", "weight")
KEYS = ("point", "align_side", "method", "target", "action", "verify")
COMPUTED_BY = {  # a layer by what has to be typed
    "config": "probepatch params check --train-cfg … --infer-cfg …",
    "modules": "probepatch params check --train-cfg … --infer-cfg … --modules FILE",
    "structure": "probepatch params structure --train … --infer …",
    "weights": "probepatch params weights --train … --infer …",
}


class LoadRefusedError(RefusedError):
    """msprobe's ``load`` overrides what goes into a module, never a parameter."""


def instructions(
    points: Iterable[tuple[str, Point]], sides: Mapping[str, Mapping[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """One for each open point, in its order. ``sides``: what is known of each side's config, for the file to be edited."""
    return [_instruction(number, point, sides or {}) for number, point in points]


def _instruction(number: str, point: Point, sides: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    side = point.side or "train"
    method = _method(point)
    return {
        "point": number,
        "align_side": side,
        "method": method,
        "target": _target(point, side),
        "action": _action(point, side, method),
        "verify": _verify(point, number),
        **_edit(point, side, method, sides.get(side, {})),
    }


def _edit(point: Point, side: str, method: str, told: Mapping[str, Any]) -> dict[str, Any]:
    """What `params fix` needs to do it: the file, and the value or the names. What is not known here is left out."""
    loose, reading = _undeclared(point), point.train if side == "train" else point.infer
    named = isinstance(reading, Mapping) and reading.get("path") is not None
    if method == "code" and len(loose) == 1 and named and point.result != "CONFLICT":
        old, new = next(iter(loose)), _target(point, side)
        if old.isidentifier() and new.isidentifier() and old != new:
            return {"rename": {"from": old, "to": new}, **_file(told.get("bridge_file"))}
    other = point.infer if side == "train" else point.train
    if method == "config" and named and isinstance(other, Mapping) and other.get("value") is not None:
        return {"value": other["value"], **_file(told.get("path") if told.get("kind") == HF else None)}
    return {}


def _file(path: Any) -> dict[str, str]:
    return {"file": os.path.abspath(path)} if isinstance(path, str) and os.path.isfile(path) else {}


def _method(point: Point) -> str:
    if point.layer == "weights":
        return "weight"
    if point.layer in ("modules", "structure") or _undeclared(point) or point.result == "CONFLICT":
        return "code"
    return "config"


def _undeclared(point: Point) -> Mapping[str, Any]:
    for reading in (point.train, point.infer):
        if isinstance(reading, Mapping) and reading.get("undeclared"):
            return dict(reading["undeclared"])
    return {}


def _target(point: Point, side: str) -> str:
    reading = point.train if side == "train" else point.infer
    path = reading.get("path") if isinstance(reading, Mapping) else None
    return str(path or point.name)


def _action(point: Point, side: str, method: str) -> str:
    if point.result == NOT_COMPUTED:
        command = COMPUTED_BY[point.layer]
        return _("compute the {layer} layer with `{command}`: {why}").format(
            layer=point.layer, command=command, why=point.why
        )
    loose = _undeclared(point)
    if loose:
        return _(
            "{names} is set on a provider whose class has no such field: set the field that the class has ({target}) in"
            " the bridge; in a checkout through a recipe, so that restore takes it out again"
        ).format(names=", ".join(loose), target=_target(point, side))
    other = point.infer if side == "train" else point.train
    wanted = other.get("value") if isinstance(other, Mapping) else None
    if point.layer == "weights":
        return _("load both sides from one checkpoint, {name} among it").format(name=point.name)
    if point.layer == "structure":
        return _("build {name} on the {side} side as the other has it: its switch or its size in the config").format(
            name=point.name, side=side
        )
    if point.result == "CONFLICT":
        return _("leave one of the names that contradict each other, and see which one the model reads")
    if method == "code":
        return _("hand the config's value to the module when it is built: {name}").format(name=point.name)
    if point.kind in (SWITCH, STRUCTURE) and isinstance(wanted, bool):
        return _("switch it {state} on the {side} side").format(state=_("on") if wanted else _("off"), side=side)
    return _("set it to {value} on the {side} side").format(value=wanted, side=side)


def _verify(point: Point, number: str) -> str:
    if point.result == NOT_COMPUTED:
        return _("`probepatch params report`: {number} is gone").format(number=number)
    layer = "check" if point.layer in ("config", "modules") else point.layer
    return _(
        "build the model again; `probepatch params {command}`, then `probepatch params report`: {number} is gone"
    ).format(command=layer, number=number)


def read_instruction(path: Path) -> list[Mapping[str, Any]]:
    """An instruction file that somebody may have written by hand. Raises ConfigError, LoadRefusedError."""
    data = read_object(path, _("instruction"))
    found = data.get("instructions")
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ConfigError(_("an instruction file has a list `instructions`"), where=str(path))
    for number, one in enumerate(found):
        where = f"{path}: instructions[{number}]"
        if one.get("method") == "load":
            raise LoadRefusedError(
                _("method `load` does not align parameters"),
                where=where,
                why=_("msprobe's load overrides a module's input tensors; weights and settings stay as they are"),
                todo=_("one of: {methods}").format(methods=", ".join(METHODS)),
            )
        lacking = [key for key in KEYS if not isinstance(one.get(key), str)]
        if lacking or one["method"] not in METHODS or one["align_side"] not in ("train", "infer"):
            why = _("`method` is one of {methods}; as text: {keys}").format(
                methods=", ".join(METHODS), keys=", ".join(KEYS)
            )
            raise ConfigError(_("an instruction is not whole"), where=where, why=why)
    return found
