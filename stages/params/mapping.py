"""A mapping: which name of the training side means which name of the inference side, and what must hold by structure.

A JSON file with ``fields``; each has names for one or both sides, or what a side has by its structure (``infer_expected``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from collections.abc import Mapping as Map
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from locales import _
from stages.params.derive import DERIVED
from stages.params.paths import check_spec, names_of
from stages.params.reading import HF, Config, ConfigError, read_object

FORMAT = "probepatch/param-mapping/1"
SWITCH, STRUCTURE, VALUE, DTYPE, PADDING = KINDS = ("switch", "structure", "value", "dtype", "padding")
"""From what weighs most. A switch: a module is there or not; structure: a size or a count; value: what it computes with."""
SIDES = ("train", "infer")
REST = ("same-name", "list")
SHIPPED = Path(__file__).parent / "mappings"
_FIELD_KEYS = frozenset(
    {
        "name",
        "train",
        "infer",
        "kind",
        "module",
        "train_expected",
        "infer_expected",
        "when",
        "train_as",
        "infer_as",
        "read",
    }
    | {"why"}
)
_KEYS = frozenset({"format", "name", "why", "include", "rest", "ignore", "fields", "modules"})


@dataclass(frozen=True)
class Condition:
    """A side's value: set and on, or one of ``among``, or none of ``outside``."""

    side: str
    spec: str
    among: tuple[Any, ...] | None = None
    outside: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class Field:
    """One thing that both models have. ``specs`` by side; ``expected`` by side: the value that its structure has; ``derived``
    by side; ``read`` by side: the module attributes (``glob:attribute``, or ``glob`` alone for a module) that consume it."""

    name: str
    specs: Map[str, str]
    kind: str = VALUE
    module: str | None = None
    expected: Map[str, Any] = field(default_factory=dict)
    derived: Map[str, str] = field(default_factory=dict)
    when: tuple[Condition, ...] = ()
    read: Map[str, tuple[str, ...]] = field(default_factory=dict)
    why: str | None = None


@dataclass(frozen=True)
class Mapping:
    """``rest``: what happens to names that no field has: compared by the same name, or only listed."""

    name: str
    fields: tuple[Field, ...] = ()
    rest: str = "same-name"
    ignore: tuple[str, ...] = ()
    modules: tuple[tuple[str, str], ...] = ()


SAME_NAME = Mapping("same-name")


def shipped() -> list[str]:
    return sorted(path.stem for path in SHIPPED.glob("*.json"))


def find_mapping(word: str) -> Path:
    """A shipped mapping by its name, or a file. Raises UsageError through reading."""
    return SHIPPED / f"{word}.json" if word in shipped() else Path(word)


def fitting(train: Config, infer: Config) -> str | None:
    """The shipped mapping that two configs look like; None when they look like nothing known."""
    if infer.kind != HF:
        return None
    return "hf-hf" if train.kind == HF else "hf-megatron"


def read_mapping(path: Path, seen: tuple[Path, ...] = (), known: dict[Path, Mapping] | None = None) -> Mapping:
    """``seen``: the mappings that include this one; ``known``: those that were read already. Raises UsageError, ConfigError."""
    known = {} if known is None else known
    if _real(path) not in known:
        found = _read_mapping(path, seen, known)
        known[_real(path)] = found
    return known[_real(path)]


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _read_mapping(path: Path, seen: tuple[Path, ...], known: dict[Path, Mapping]) -> Mapping:
    data = read_object(path, _("mapping"))
    _check_keys(data, _KEYS, path)
    if data.get("format", FORMAT) != FORMAT:
        raise ConfigError(_("this is no mapping of the format {format}").format(format=FORMAT), where=str(path))
    if _real(path) in seen or len(seen) > 8:
        raise ConfigError(_("the mapping includes itself"), where=str(path))
    fields: dict[str, Field] = {}
    ignore: list[str] = []
    modules: list[tuple[str, str]] = []
    for word in _texts(data.get("include", []), path):
        below = SHIPPED / f"{word}.json" if word in shipped() else path.parent / word
        included = read_mapping(below, (*seen, _real(path)), known)
        fields |= {one.name: one for one in included.fields}
        ignore += included.ignore
        modules += included.modules
    for number, item in enumerate(_list(data.get("fields", []), path)):
        one = _field(item, f"{path}: fields[{number}]")
        fields[one.name] = one
    rest = data.get("rest", "list")
    if rest not in REST:
        raise ConfigError(_("`rest` is one of {words}").format(words=", ".join(REST)), where=str(path))
    ignore += _texts(data.get("ignore", []), path)
    modules += [_pair(item, path) for item in _list(data.get("modules", []), path)]
    if not fields and rest == "list":
        raise ConfigError(_("the mapping has no fields"), where=str(path))
    name = data.get("name") or path.stem
    return Mapping(str(name), tuple(fields.values()), rest, tuple(ignore), tuple(modules))


def _field(item: Any, where: str) -> Field:
    if not isinstance(item, dict):
        raise ConfigError(_("a field is no object"), where=where)
    _check_keys(item, _FIELD_KEYS, where)
    specs = {side: item[side] for side in SIDES if side in item}
    expected = {side: item[f"{side}_expected"] for side in SIDES if f"{side}_expected" in item}
    derived = {side: item[f"{side}_as"] for side in SIDES if f"{side}_as" in item}
    for side, spec in specs.items():
        if not isinstance(spec, str):
            raise ConfigError(_("`{key}` is no text").format(key=side), where=where)
        try:
            check_spec(spec)
        except ConfigError as error:
            raise ConfigError(error.what, where=where) from error
    if specs.keys() & expected.keys() or len(specs.keys() | expected.keys()) < 2 or not specs:
        why = _("`train` or `train_expected`, and `infer` or `infer_expected`; one of them a name in the config")
        raise ConfigError(_("a field does not say what to compare"), where=where, why=why)
    kind, module = item.get("kind", VALUE), item.get("module")
    name = item.get("name")
    if kind not in KINDS:
        raise ConfigError(_("`kind` is one of {words}").format(words=", ".join(KINDS)), where=where)
    if any(word not in DERIVED for word in derived.values()) or derived.keys() - specs.keys():
        raise ConfigError(
            _("`train_as` and `infer_as` are one of {words}").format(words=", ".join(DERIVED)), where=where
        )
    name = _first_name(specs) if name is None else name
    if not isinstance(name, str) or not isinstance(module, (str, type(None))):
        raise ConfigError(_("`name` and `module` are texts"), where=where)
    reason = item.get("why")
    return Field(
        name,
        specs,
        kind,
        module,
        expected,
        derived,
        tuple(_condition(one, where) for one in _as_list(item.get("when", []))),
        {side: _patterns(item.get("read", {}), side, where) for side in SIDES},
        str(reason) if reason is not None else None,
    )


def _first_name(specs: Map[str, str]) -> str:
    """A field without a name is called as the engine calls it."""
    return next(names_of(specs.get("infer") or specs["train"]))


def _condition(item: Any, where: str) -> Condition:
    sides = [side for side in SIDES if isinstance(item, dict) and side in item]
    if len(sides) != 1 or item.keys() - {*sides, "in", "not_in"} or not isinstance(item[sides[0]], str):
        raise ConfigError(_("`when` is {form}").format(form='{"infer": NAME, "in": […]}'), where=where)
    check_spec(item[sides[0]])
    among, outside = item.get("in"), item.get("not_in")
    if not all(isinstance(one, (list, type(None))) for one in (among, outside)):
        raise ConfigError(_("`in` and `not_in` are lists"), where=where)
    return Condition(
        sides[0],
        item[sides[0]],
        tuple(among) if among is not None else None,
        tuple(outside) if outside is not None else None,
    )


def _patterns(data: Any, side: str, where: str) -> tuple[str, ...]:
    patterns = data.get(side, []) if isinstance(data, dict) else data
    return tuple(_texts(patterns, where))


def _pair(item: Any, where: Path) -> tuple[str, str]:
    if (
        not isinstance(item, dict)
        or item.keys() != set(SIDES)
        or not all(isinstance(one, str) for one in item.values())
    ):
        raise ConfigError(
            _("an entry of `modules` is {form}").format(form='{"train": GLOB, "infer": GLOB}'), where=str(where)
        )
    if item["train"].count("*") != item["infer"].count("*"):
        raise ConfigError(_("the two globs of `modules` have as many `*`"), where=str(where))
    return item["train"], item["infer"]


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _list(value: Any, where: Path) -> list[Any]:
    if not isinstance(value, list):
        raise ConfigError(_("`fields` and `modules` are lists"), where=str(where))
    return value


def _texts(value: Any, where: Path | str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise ConfigError(_("`include`, `ignore` and `read` are lists of texts"), where=str(where))
    return value


def _check_keys(data: Map[str, Any], known: Iterable[str], where: Path | str) -> None:
    for key in data:
        if key not in known:
            near = get_close_matches(key, list(known), 1)
            todo = _("did you mean `{near}`?").format(near=near[0]) if near else None
            raise ConfigError(_("a mapping has no key `{key}`").format(key=key), where=str(where), todo=todo)


def kinds_by_name() -> dict[str, str]:
    """What kind a config name is of, as the shipped mappings say: for comparisons by the same name."""
    found: dict[str, str] = {}
    for name in shipped():
        for one in read_mapping(SHIPPED / f"{name}.json").fields:
            for spec in one.specs.values():
                if not spec.startswith("="):
                    for path in spec.split("|"):
                        found.setdefault(path.strip(), one.kind)
    return found
