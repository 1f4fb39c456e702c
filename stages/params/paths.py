"""Where a value stands in a config: dotted paths, names that mean the same, sections of the language model, arithmetic.

``a|b.c`` are names for one thing: all that are there have to agree. ``=a*b`` is computed from such names, and ``a else =b*c``
where nothing else says it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from locales import _
from stages.params.derive import DERIVED
from stages.params.reading import TEXT_SECTIONS, Config, ConfigError
from stages.params.values import same

_PATH = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w-]+)*")
ABSENT = object()
_LARGEST = 1 << 62
_ELSE = " else "


@dataclass(frozen=True)
class Reading:
    """What one side says. ``path`` is where; None where it says nothing. ``assumed``: the value is a class's default, and whose.
    ``conflict``: the places that disagree, with their values. ``undeclared``: it is set, but the class has no such field.
    ``default_of``: the provider's class whose default it is; nobody set it."""

    value: Any = None
    path: str | None = None
    assumed: str | None = None
    conflict: tuple[tuple[str, Any], ...] = ()
    undeclared: tuple[tuple[str, Any], ...] = ()
    default_of: str | None = None

    @property
    def absent(self) -> bool:
        return self.path is None

    @property
    def unset(self) -> bool:
        return self.path is None or self.value is None


def check_spec(spec: str) -> None:
    """Raises ConfigError for what is no path, list of names or formula."""
    try:
        names = list(names_of(spec))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConfigError(_("`{spec}` is no formula of config names").format(spec=spec)) from error
    wrong = [name for name in names if not _PATH.fullmatch(name)]
    if wrong or not names:
        raise ConfigError(_("`{spec}` is no list of config names").format(spec=spec))


def names_of(spec: str) -> Iterator[str]:
    """The paths in a spec, in order."""
    if _ELSE in spec:
        for part in spec.split(_ELSE):
            yield from names_of(part)
    elif spec.startswith("="):
        yield from _operands(_tree(spec))
    else:
        yield from (name.strip() for name in spec.split("|"))


def read(config: Config, spec: str, defaults: Mapping[str, Any] | None = None, derived: str | None = None) -> Reading:
    """What the config says for ``spec``; ``defaults`` are the values of its class, used where it says nothing."""
    parts = spec.split(_ELSE)
    found = _one(config, parts[0], defaults)
    for part in parts[1:]:
        found = found if not found.unset or found.conflict else _one(config, part, defaults)
    if derived is None or found.conflict:
        return found
    value = DERIVED[derived](found.value, config.values)
    path = found.path if found.path is not None or value is None else spec
    return Reading(value, path, found.assumed, (), found.undeclared, found.default_of)


def _one(config: Config, spec: str, defaults: Mapping[str, Any] | None) -> Reading:
    return _formula(config, spec, defaults) if spec.startswith("=") else _names(config, spec, defaults)


def _names(config: Config, spec: str, defaults: Mapping[str, Any] | None) -> Reading:
    places = [place for name in names_of(spec) for place in stands(config.values, name)]
    loose = tuple(place for name in names_of(spec) for place in stands(config.undeclared or {}, name, sections=False))
    told = [place for place in places if place[1] is not None] or places
    if not told:
        return _assumed(config, spec, defaults, loose)
    path, value = told[0]
    if any(not same(value, other) for _path, other in told[1:]):
        return Reading(value, path, None, tuple(told), loose)
    default_of = config.provider_class if path in config.at_default else None
    return Reading(value, path, None, (), loose, default_of)


def _assumed(
    config: Config, spec: str, defaults: Mapping[str, Any] | None, loose: tuple[tuple[str, Any], ...]
) -> Reading:
    for name in names_of(spec):
        if defaults and name in defaults:
            return Reading(defaults[name], name, str(config.model_type), (), loose)
    return Reading(undeclared=loose)


def stands(values: Mapping[str, Any], name: str, sections: bool = True) -> list[tuple[str, Any]]:
    """(path, value) wherever the name stands: at the top, and in the language model's own section."""
    found = []
    for section in ("", *(TEXT_SECTIONS if sections else ())):
        path = f"{section}.{name}" if section else name
        value = at(values, path)
        if value is not ABSENT:
            found.append((path, value))
    return found


def at(values: Any, path: str) -> Any:
    """The value at a dotted path; ABSENT where there is none. A key that holds dots itself is found, too."""
    if not isinstance(values, Mapping):
        return ABSENT
    if path in values:
        return values[path]
    head, _dot, rest = path.partition(".")
    return at(values[head], rest) if rest and head in values else ABSENT


# --- arithmetic ---------------------------------------------------------------------------------------------------------


def _tree(spec: str) -> ast.expr:
    if len(spec) > 300:
        raise ValueError("too long")
    tree = ast.parse(spec[1:].strip(), mode="eval").body
    for node in ast.walk(tree):
        allowed = (ast.BinOp, ast.Name, ast.Attribute, ast.Constant, ast.Load, ast.Mult, ast.Add, ast.Sub, ast.FloorDiv)
        if not isinstance(node, allowed) or (isinstance(node, ast.Constant) and type(node.value) is not int):
            raise ValueError("only names, whole numbers, + - * //")
    return tree


def _operands(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.BinOp):
        yield from _operands(node.left)
        yield from _operands(node.right)
    elif not isinstance(node, ast.Constant):
        yield ast.unparse(node)


def _formula(config: Config, spec: str, defaults: Mapping[str, Any] | None) -> Reading:
    """Unset when a name in it is; a number otherwise."""
    tree = _tree(spec)
    readings = {name: _names(config, name, defaults) for name in names_of(spec)}
    for reading in readings.values():
        if reading.conflict:
            return reading
    if any(type(reading.value) is not int for reading in readings.values()):
        return Reading()
    assumed = [reading.assumed for reading in readings.values() if reading.assumed]
    try:
        value = _computed(tree, {name: reading.value for name, reading in readings.items()})
    except ZeroDivisionError:
        return Reading()
    return Reading(value, spec, assumed[0] if assumed else None)


def _computed(node: ast.expr, numbers: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant):
        assert isinstance(node.value, int)
        return node.value
    if isinstance(node, ast.BinOp):
        a, b = _computed(node.left, numbers), _computed(node.right, numbers)
        operations = {ast.Mult: a.__mul__, ast.Add: a.__add__, ast.Sub: a.__sub__, ast.FloorDiv: a.__floordiv__}
        if abs(a) > _LARGEST or abs(b) > _LARGEST:
            raise ZeroDivisionError
        return int(operations[type(node.op)](b))
    return numbers[ast.unparse(node)]
