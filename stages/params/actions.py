"""Instructions as what can be carried out: a key of a config, a name in a bridge, or a recipe; anything else with its reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codemods.errors import RefusedError, UsageError
from locales import _
from stages.params.instruction import COMPUTED_BY, read_instruction
from stages.params.reading import ConfigError


class NotByEditError(RefusedError):
    """An instruction that no edit carries out."""


@dataclass(frozen=True)
class Action:
    """``key`` and ``value`` of a config item; ``rename`` (old, new) or ``recipe`` of a code item. ``file``: what is edited, or
    the checkout that the recipe is for."""

    point: str
    file: Path
    key: str = ""
    value: Any = None
    rename: tuple[str, str] | None = None
    recipe: Path | None = None


@dataclass(frozen=True)
class Left:
    """What was not carried out, and why."""

    point: str
    why: str


def read_actions(
    path: Path, points: Iterable[str] = (), files: Mapping[str, Path] | None = None
) -> tuple[list[Action], list[Left]]:
    """``points``: only these, and refused where an edit cannot do it; ``files``: the file by point, before what the instruction
    says. Raises UsageError, ConfigError, LoadRefusedError, NotByEditError."""
    items, wanted, given = read_instruction(path), list(points), dict(files or {})
    known = [str(item["point"]) for item in items]
    for name in (*wanted, *given):
        if name not in known:
            raise UsageError(
                _("{path} has no instruction for {point}").format(path=path.name, point=name),
                todo=_("it has: {points}").format(points=", ".join(known) or "-"),
            )
    actions: list[Action] = []
    left: list[Left] = []
    for number, item in enumerate(items):
        name = str(item["point"])
        if wanted and name not in wanted:
            continue
        found = _action(item, path, given.get(name), f"{path}: instructions[{number}]")
        if isinstance(found, Action):
            actions.append(found)
        elif wanted:
            raise NotByEditError(
                _("{point} is not done by an edit here").format(point=name), where=str(path), why=found.why
            )
        else:
            left.append(found)
    return actions, left


def _action(item: Mapping[str, Any], path: Path, given: Path | None, where: str) -> Action | Left:
    """Raises ConfigError for an item whose own keys are of another form."""
    point, method = str(item["point"]), item["method"]
    layer = str(item["target"]).removesuffix("-layer")
    if item["target"] == f"{layer}-layer" and layer in COMPUTED_BY:
        return Left(
            point, _("the {layer} layer was not computed: `{command}`").format(layer=layer, command=COMPUTED_BY[layer])
        )
    rename, recipe, file = _rename(item, where), _text(item, "recipe", where), _text(item, "file", where)
    if method == "weight":
        return Left(point, _("weights are loaded, not edited: build both sides from one checkpoint"))
    target = given if given is not None else path.parent / file if file else None
    if method == "config":
        if "value" not in item:
            return Left(point, _("the instruction has no `value` that the key is to have"))
        if target is None:
            return Left(point, _no_file(point, _("the config or the launch script that sets it")))
        return Action(point, target, _text(item, "key", where) or str(item["target"]), item["value"])
    if recipe is None and rename is None:
        return Left(point, _("the instruction has no `rename` and no `recipe`: what has to be written is for a person"))
    if target is None:
        what = _("the checkout that the recipe is for") if recipe else _("the bridge's file")
        return Left(point, _no_file(point, what))
    return Action(point, target, rename=rename, recipe=path.parent / recipe if recipe else None)


def _no_file(point: str, what: str) -> str:
    return _("no file is named: `--file {point}=PATH` names {what}").format(point=point, what=what)


def _text(item: Mapping[str, Any], key: str, where: str) -> str | None:
    value = item.get(key)
    if value is not None and (not isinstance(value, str) or not value or "\0" in value):
        raise ConfigError(_("`{key}` is no text").format(key=key), where=where)
    return value


def _rename(item: Mapping[str, Any], where: str) -> tuple[str, str] | None:
    value = item.get("rename")
    if value is None:
        return None
    old, new = (value.get(key) for key in ("from", "to")) if isinstance(value, dict) and len(value) == 2 else ("", "")
    whole = isinstance(old, str) and isinstance(new, str) and old.isidentifier() and new.isidentifier() and old != new
    if not whole:
        raise ConfigError(_("`rename` is {form}").format(form='{"from": NAME, "to": ANOTHER}'), where=where)
    return str(old), str(new)
