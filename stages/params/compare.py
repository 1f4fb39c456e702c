"""Two configs through a mapping: each thing EXACT, DIFF, MISSING_SIDE or CONFLICT, and what an equality rests on."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as Map
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from codemods.errors import FindingError
from locales import _
from stages.params.defaults import class_defaults
from stages.params.mapping import PADDING, SIDES, STRUCTURE, SWITCH, VALUE, Condition, Field, Mapping, kinds_by_name
from stages.params.paths import Reading, names_of, read
from stages.params.reading import TEXT_SECTIONS, Config
from stages.params.values import on, plain, remark, same

EXACT, DIFF, MISSING_SIDE, CONFLICT = RESULTS = ("EXACT", "DIFF", "MISSING_SIDE", "CONFLICT")


class NothingComparedError(FindingError):
    """Zero comparisons: that is no agreement."""


@dataclass(frozen=True)
class Item:
    """``side``: the one that lacks it or contradicts itself; ``why`` one sentence, empty for a plain EXACT."""

    name: str
    result: str
    kind: str
    train: Reading
    infer: Reading
    side: str | None = None
    module: str | None = None
    layer: str = "config"
    why: str = ""

    def of(self, side: str) -> Reading:
        return self.train if side == "train" else self.infer


@dataclass(frozen=True)
class Compared:
    """``train_only`` and ``infer_only``: names that only one side has and that no item is made of."""

    mapping: Mapping
    items: tuple[Item, ...]
    train_only: tuple[str, ...]
    infer_only: tuple[str, ...]


def compare(train: Config, infer: Config, mapping: Mapping) -> Compared:
    """Raises NothingComparedError."""
    configs = {"train": train, "infer": infer}
    defaults = {side: class_defaults(config) for side, config in configs.items()}
    items = [item for one in mapping.fields if (item := _item(one, configs, defaults)) is not None]
    more, train_only, infer_only = _rest(configs, mapping, defaults)
    items += more
    if not items:
        raise NothingComparedError(
            _("nothing was compared: the two configs have no name in common"),
            where=f"{train.path} | {infer.path}",
            todo=_("--mapping says which name means which"),
        )
    return Compared(mapping, tuple(items), tuple(train_only), tuple(infer_only))


def _item(one: Field, configs: Map[str, Config], defaults: Map[str, Map[str, Any]]) -> Item | None:
    if not all(_holds(condition, configs, defaults) for condition in one.when):
        return None
    readings = {side: _reading(one, side, configs[side], defaults[side]) for side in SIDES}
    train, infer = readings["train"], readings["infer"]
    result, side, why = judge(one.kind, train, infer)
    if not result:
        return None
    if one.why and result != EXACT:
        why = f"{why}; {one.why}" if why else one.why
    return Item(one.name, result, one.kind, train, infer, side, one.module, "config", why)


def _reading(one: Field, side: str, config: Config, defaults: Map[str, Any]) -> Reading:
    if side in one.expected:
        return Reading(one.expected[side], _("its structure"))
    return read(config, one.specs[side], defaults, one.derived.get(side))


def _holds(condition: Condition, configs: Map[str, Config], defaults: Map[str, Map[str, Any]]) -> bool:
    config = configs[condition.side]
    if condition.spec == "model_type":
        value: Any = config.model_type
    else:
        value = read(config, condition.spec, defaults[condition.side]).value
    if condition.outside is not None:
        return not any(same(value, one) for one in condition.outside)
    if condition.among is not None:
        return any(same(value, one) for one in condition.among)
    return on(value)


def judge(kind: str, train: Reading, infer: Reading) -> tuple[str, str | None, str]:
    """(result, side, why); an empty result when neither side says anything."""
    for side, reading in (("train", train), ("infer", infer)):
        if reading.conflict:
            said = ", ".join(f"{path} = {shown(value)}" for path, value in reading.conflict)
            return CONFLICT, side, _("{side} contradicts itself: {said}").format(side=side, said=said)
    loose = next((side for side, reading in (("train", train), ("infer", infer)) if reading.undeclared), None)
    if train.unset and infer.unset:
        return "", None, ""
    if kind == SWITCH and _flags(train, infer):
        return _switched(train, infer, loose)
    for side, reading in (("train", train), ("infer", infer)):
        if reading.absent:
            return MISSING_SIDE, side, _loose(reading) or _("{side} says nothing about it").format(side=side)
    if same(train.value, infer.value):
        return EXACT, None, _assumption(train, infer) or remark(train.value, infer.value) or ""
    parts = [_loose(train if loose == "train" else infer) if loose else "", remark(train.value, infer.value) or ""]
    if kind == PADDING:
        parts.append(_padding(train.value, infer.value))
    parts += [_assumption(train, infer), *map(_not_set, (train, infer))]
    return DIFF, None, "; ".join(part for part in parts if part)


def _flags(*readings: Reading) -> bool:
    """Whether they can be read as on and off: two different words cannot."""
    return not all(isinstance(plain(reading.value), str) for reading in readings)


def _switched(train: Reading, infer: Reading, loose: str | None) -> tuple[str, str | None, str]:
    if on(train.value) == on(infer.value):
        if not on(train.value):
            return ("", None, "") if train.absent and infer.absent else (EXACT, None, _assumed_off(train, infer))
        counts = [reading.value for reading in (train, infer) if not isinstance(plain(reading.value), bool)]
        if len(counts) == 2 and not same(*counts):
            return DIFF, None, ""
        return EXACT, None, _assumption(train, infer)
    side, reading = ("infer", infer) if on(train.value) else ("train", train)
    why = _loose(reading) or _("the module is switched off or not there on the {side} side").format(side=side)
    return MISSING_SIDE, side, why


def _assumed_off(train: Reading, infer: Reading) -> str:
    for side, reading in (("train", train), ("infer", infer)):
        if reading.absent:
            return _("assumed: off, {side} says nothing about it").format(side=side)
    return _assumption(train, infer)


def _loose(reading: Reading) -> str:
    if not reading.undeclared:
        return ""
    said = ", ".join(f"{path} = {shown(value)}" for path, value in reading.undeclared)
    return _("set but consumed by no module: {said}; the provider's class has no such field").format(said=said)


def _assumption(train: Reading, infer: Reading) -> str:
    said = [
        _("{side}: {value} is the default of {owner}").format(
            side=side, value=shown(reading.value), owner=reading.assumed
        )
        for side, reading in (("train", train), ("infer", infer))
        if reading.assumed
    ]
    return _("assumed: {said}").format(said="; ".join(said)) if said else ""


def _not_set(reading: Reading) -> str:
    if reading.default_of is None:
        return ""
    return _("nobody set it: {value} is the default of {owner}").format(
        value=shown(reading.value), owner=reading.default_of
    )


def _padding(train: Any, infer: Any) -> str:
    if type(train) is int and type(infer) is int and train > infer and train % 64 == 0 and train - infer < 1 << 14:
        return _("it may be padding: the larger is a multiple of 64; `params weights` compares the used rows")
    return ""


def shown(value: Any, longest: int = 80) -> str:
    """A value in a sentence."""
    import json

    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= longest else text[: longest - 1] + "…"


# --- names that no field has ---------------------------------------------------------------------------------------------


def _rest(
    configs: Map[str, Config], mapping: Mapping, defaults: Map[str, Map[str, Any]]
) -> tuple[list[Item], list[str], list[str]]:
    """Items made by the same name, and what is only on one side."""
    mapped = {side: {name for one in mapping.fields for name in _mapped(one, side)} for side in SIDES}
    leaves = {side: dict(_leaves(configs[side].values, mapped[side], mapping.ignore)) for side in SIDES}
    names = list(dict.fromkeys([*leaves["train"], *leaves["infer"]]))
    if mapping.rest == "list":
        told = {side: [name for name, value in leaves[side].items() if value is not None] for side in SIDES}
        return [], told["train"], told["infer"]
    kinds, items = kinds_by_name(), []
    for name in names:
        train, infer = (read(configs[side], name, defaults[side]) for side in SIDES)
        result, side, why = judge(kinds.get(name, VALUE) if kinds.get(name) != SWITCH else STRUCTURE, train, infer)
        if result:
            items.append(Item(name, result, kinds.get(name, VALUE), train, infer, side, None, "config", why))
    only = {side: [item.name for item in items if item.result == MISSING_SIDE and item.side != side] for side in SIDES}
    return items, only["train"], only["infer"]


def _mapped(one: Field, side: str) -> Iterator[str]:
    specs = [one.specs[side]] if side in one.specs else []
    specs += [condition.spec for condition in one.when if condition.side == side]
    for spec in specs:
        yield from names_of(spec)


def _leaves(values: Map[str, Any], mapped: set[str], ignore: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Dotted names with values, nested objects opened, the language model's own section lifted to the top."""
    for name, value in _flat(values, ""):
        short = _lifted(name)
        if short is None or any(short == one or short.startswith(f"{one}.") for one in mapped):
            continue
        if not any(fnmatchcase(short, pattern) for pattern in ignore):
            yield short, value


def _flat(values: Map[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        path = f"{prefix}.{key}" if prefix else key
        if isinstance(value, dict) and value:
            yield from _flat(value, path)
        else:
            yield path, value


def _lifted(name: str) -> str | None:
    for section in sorted(TEXT_SECTIONS, key=len, reverse=True):
        if name == section:
            return None
        if name.startswith(f"{section}."):
            return name[len(section) + 1 :]
    return name
