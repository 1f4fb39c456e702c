"""What the built modules really consume, against what the config says: an equal config is no proof.

A module list is ``{"train": {path: {attribute: value}}, "infer": {…}}``; ``class`` and ``type`` are told, never compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Map
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from codemods.errors import FindingError
from locales import _
from stages.params.compare import DIFF, EXACT, MISSING_SIDE, Compared, Item, shown
from stages.params.mapping import SIDES, STRUCTURE, SWITCH, VALUE, Mapping
from stages.params.paths import Reading
from stages.params.reading import ConfigError, read_object
from stages.params.values import on, same

LAYER = "modules"
_TOLD = ("class", "type")
Modules = Map[str, Map[str, Map[str, Any]]]


class NoModulesError(FindingError):
    """A module list with which nothing could be compared."""


def read_modules(paths: Sequence[Path]) -> Modules:
    """One file for both sides, or one for each. Raises UsageError, ConfigError."""
    found: dict[str, Map[str, Map[str, Any]]] = {side: {} for side in SIDES}
    for path in paths:
        for side, modules in _read(path).items():
            if modules and found[side]:
                raise ConfigError(_("two module lists have the {side} side").format(side=side), where=str(path))
            found[side] = found[side] or modules
    return found


def _read(path: Path) -> Modules:
    data = read_object(path, _("module list"))
    sides = {side: data.get(side) for side in SIDES if data.get(side) is not None}
    unknown = sorted(data.keys() - {*SIDES, "format"})
    whole = all(
        isinstance(side, dict) and all(isinstance(attributes, dict) for attributes in side.values())
        for side in sides.values()
    )
    if unknown or not sides or not whole:
        form = '{"train": {PATH: {NAME: VALUE}}, "infer": {…}}'
        raise ConfigError(_("a module list is {form}").format(form=form), where=str(path))
    return {side: sides.get(side) or {} for side in SIDES}


def check_modules(compared: Compared, modules: Modules) -> list[Item]:
    """Items of the module layer. Raises NoModulesError when the list says nothing that could be held against anything."""
    beside = list(_beside(compared, modules))
    agreed = {reading.path for item in beside if item.result == EXACT for reading in (item.train, item.infer)}
    items = _merged([_agreeing(item, agreed) for item in (*_consumed(compared, modules), *beside)])
    if not items:
        raise NoModulesError(
            _("nothing of the module list could be compared"),
            todo=_("its attributes are those that the mapping's `read` names (eps, …), its paths those of `modules`"),
        )
    return items


def _agreeing(item: Item, agreed: set[str | None]) -> Item:
    """A module that does not take the config's value, as its twin on the other side does not: the two models are one there."""
    if item.result != DIFF or item.side is None or item.of(item.side).path not in agreed:
        return item
    return replace(item, result=EXACT, why=_("{why}; it is the same on both sides").format(why=item.why))


# --- what the config sets, and who reads it --------------------------------------------------------------------------------


def _consumed(compared: Compared, modules: Modules) -> Iterator[Item]:
    fields = {one.name: one for one in compared.mapping.fields}
    for item in compared.items:
        one = fields.get(item.name)
        for side in SIDES:
            patterns = one.read.get(side, ()) if one is not None else ()
            if patterns and modules[side] and not (one is not None and side in one.expected):
                yield from _side(item, side, patterns, modules[side])


def _side(item: Item, side: str, patterns: tuple[str, ...], modules: Map[str, Map[str, Any]]) -> Iterator[Item]:
    reading, found = item.of(side), list(_readers(patterns, modules))
    bare = [pattern for pattern in patterns if ":" not in pattern]
    if not found:
        if on(reading.value) or reading.undeclared:
            said = f"{reading.path} = {shown(reading.value)}" if reading.path else _told(reading)
            why = _("set but consumed by no module of the {side} side: {said}").format(side=side, said=said)
            yield _item(item, side, f"{item.name} @ {side}", MISSING_SIDE, reading, Reading(), why)
        return
    if bare or reading.unset or item.kind == SWITCH:
        return
    for path, attribute, value in found:
        name, consumed = f"{path}.{attribute}", Reading(value, f"{path}.{attribute}")
        if same(value, reading.value):
            yield _item(item, side, name, EXACT, reading, consumed, "")
        else:
            words = (
                _("config equal, module differs")
                if item.result == EXACT
                else _("the module has not the config's value")
            )
            why = _("{words}: {name} is {value}, the {side} config says {path} = {told}").format(
                words=words,
                name=name,
                value=shown(value),
                side=side,
                path=reading.path,
                told=shown(reading.value),
            )
            yield _item(item, side, name, DIFF, reading, consumed, why)


def _told(reading: Reading) -> str:
    return ", ".join(f"{path} = {shown(value)}" for path, value in reading.undeclared)


def _item(item: Item, side: str, name: str, result: str, config: Reading, module: Reading, why: str) -> Item:
    """On the item's own side stands what the module has; the other side keeps what the config comparison showed."""
    other = item.of("infer" if side == "train" else "train")
    pair = (module, other) if side == "train" else (other, module)
    kind = item.kind if item.kind in (SWITCH, STRUCTURE) else VALUE
    return Item(name, result, kind, *pair, side, item.module, LAYER, why)


def _readers(patterns: tuple[str, ...], modules: Map[str, Map[str, Any]]) -> Iterator[tuple[str, str, Any]]:
    """(module path, attribute, value) of what a pattern names; the attribute is empty for a module by itself."""
    for pattern in patterns:
        glob, colon, attribute = pattern.rpartition(":")
        for path, attributes in modules.items():
            if not colon and fnmatchcase(path, pattern):
                yield path, "", None
            elif colon and fnmatchcase(path, glob) and attribute in attributes:
                yield path, attribute, attributes[attribute]


# --- one side's modules beside the other's ---------------------------------------------------------------------------------


def _beside(compared: Compared, modules: Modules) -> Iterator[Item]:
    """Modules that are the same place of both models, attribute by attribute."""
    for train, infer in _pairs(compared.mapping, modules):
        ours, theirs = modules["train"][train], modules["infer"][infer]
        for attribute in ours:
            if attribute in theirs and attribute not in _TOLD:
                yield _compared(train, infer, attribute, ours[attribute], theirs[attribute])


def _compared(train: str, infer: str, attribute: str, ours: Any, theirs: Any) -> Item:
    result = EXACT if same(ours, theirs) else DIFF
    name = f"{train}.{attribute}"
    why = (
        ""
        if result == EXACT
        else _("config equal, module differs: {name} is {ours} and {theirs}").format(
            name=name, ours=shown(ours), theirs=shown(theirs)
        )
    )
    readings = (Reading(ours, name), Reading(theirs, f"{infer}.{attribute}"))
    return Item(name, result, VALUE, *readings, None, None, LAYER, why)


def _pairs(mapping: Mapping, modules: Modules) -> Iterator[tuple[str, str]]:
    for path in modules["train"]:
        if path in modules["infer"]:
            yield path, path
            continue
        for train, infer in mapping.modules:
            found = re.fullmatch(re.escape(train).replace(r"\*", r"([^.]+)"), path)
            other = _filled(infer, found.groups()) if found else None
            if other is not None and other in modules["infer"]:
                yield path, other
                break


def _filled(glob: str, parts: tuple[str, ...]) -> str:
    pieces = glob.split("*")
    return "".join(piece + part for piece, part in zip(pieces, (*parts, ""), strict=True))


def _merged(items: list[Item]) -> list[Item]:
    """One item for each place: a module that contradicts its config and the other side is one finding, not two."""
    found: dict[str, Item] = {}
    for item in items:
        known = found.get(item.name)
        if known is None or (known.result == EXACT and item.result != EXACT):
            found[item.name] = item
    return list(found.values())
