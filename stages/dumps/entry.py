"""An entry of dump.json: which module or function was called, and the tensors that went in and came out."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

FORWARD, BACKWARD, PARAMETERS = "forward", "backward", "parameters"
STATISTICS = ("Max", "Min", "Mean", "Norm", "md5")
INPUTS = (("input", "input_args"), ("kwargs", "input_kwargs"), ("input", "input"))  # msprobe's file names, its keys
_DEEPEST = 16
_MODULE = re.compile(r"Module\.(?:(.+)\.)?([^.]+)\.(forward|backward)\.(\d{1,9})")
_GRADIENT = re.compile(r"Module\.(?:(.+)\.)?([^.]+)\.parameters_grad(?:\.(\d{1,9}))?")
_FUNCTION = re.compile(r"([A-Z]\w*)\.(.+)\.(\d{1,9})\.(forward|backward)")


@dataclass(frozen=True)
class Name:
    """``path`` is the module's dotted path, or the function's name; ``kind`` forward, backward or parameters (their gradients);
    ``call`` counts from 0."""

    module: bool
    path: str
    class_name: str
    kind: str
    call: int

    @property
    def last(self) -> str:
        return self.path.rpartition(".")[2]


@dataclass(frozen=True)
class Tensor:
    """``name``: ``input.0``, ``kwargs.hidden_states``, ``output.1``, ``parameters.weight``. ``statistics`` as written,
    None where not computed. ``data_name``: its file in dump_tensor_data, unchecked."""

    name: str
    type: str
    shape: tuple[int, ...]
    dtype: str
    statistics: Mapping[str, Any]
    data_name: str | None

    @property
    def whole(self) -> bool:
        """Whether it holds integers, as token ids do."""
        return "int" in self.dtype


@dataclass(frozen=True)
class Entry:
    """``inputs`` are positional; ``kwargs`` by name, those in tuples as ``position_embeddings.0``; ``parameters`` by name."""

    name: str
    kind: str
    inputs: tuple[Tensor, ...]
    kwargs: Mapping[str, Tensor]
    outputs: tuple[Tensor, ...]
    parameters: Mapping[str, Tensor]

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return *self.inputs, *self.kwargs.values(), *self.outputs, *self.parameters.values()


def parse_name(text: str) -> Name | None:
    """None for a name that is none of msprobe's."""
    match = _MODULE.fullmatch(text)
    if match:
        return Name(True, match[1] or "", match[2], match[3], int(match[4]))
    match = _FUNCTION.fullmatch(text)
    if match:
        return Name(False, f"{match[1]}.{match[2]}", "", match[4], int(match[3]))
    match = _GRADIENT.fullmatch(text)
    return Name(True, match[1] or "", match[2], PARAMETERS, int(match[3] or 0)) if match else None


def make_entry(text: str, raw: Mapping[str, Any]) -> Entry:
    name = parse_name(text)
    kind = name.kind if name else FORWARD
    if kind == PARAMETERS:
        found = {key: one for key in raw for one in tensors(raw[key], f"parameters_grad.{key}")}
        return Entry(text, kind, (), {}, (), found)
    given = {file: tuple(tensors(raw.get(key), file)) for file, key in INPUTS if key in raw}
    kwargs = {one.name.partition(".")[2]: one for one in given.get("kwargs", ())}
    parameters = {one.name.partition(".")[2]: one for one in tensors(raw.get("parameters"), "parameters")}
    return Entry(text, kind, given.get("input", ()), kwargs, tuple(tensors(raw.get("output"), "output")), parameters)


def inputs_of(raw: Mapping[str, Any]) -> Iterator[Tensor]:
    for file, key in INPUTS:
        yield from tensors(raw.get(key), file)


def tensors(value: Any, name: str, depth: int = 0) -> Iterator[Tensor]:
    """All tensors in lists and dicts, by the name of their file."""
    if depth > _DEEPEST or not isinstance(value, (dict, list)):
        return
    if isinstance(value, list):
        for number, one in enumerate(value):
            yield from tensors(one, f"{name}.{number}", depth + 1)
    elif "shape" in value and "dtype" in value:
        found = _tensor(value, name)
        if found:
            yield found
    else:
        for key, one in value.items():
            yield from tensors(one, f"{name}.{key}", depth + 1)


def has_tensor(raw: Mapping[str, Any]) -> bool:
    """Whether an entry has a tensor; where they usually are is looked at first."""
    for group in raw.values():
        for one in group if isinstance(group, list) else group.values() if isinstance(group, dict) else ():
            if isinstance(one, dict) and "shape" in one:
                return True
    return any(True for key, group in raw.items() for _one in tensors(group, key))


def not_finite(value: Any, name: str, depth: int = 0) -> Iterator[tuple[str, float]]:
    """NaN and Infinity, and where they are: ``output.0.Mean``."""
    if isinstance(value, float):
        if not math.isfinite(value):
            yield name, value
    elif depth <= _DEEPEST and isinstance(value, (dict, list)):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from not_finite(one, f"{name}.{key}" if name else str(key), depth + 1)


def _tensor(value: Mapping[str, Any], name: str) -> Tensor | None:
    shape, kind, data_name = value["shape"], value.get("type"), value.get("data_name")
    if not isinstance(shape, list) or len(shape) > 64 or any(type(one) is not int or one < 0 for one in shape):
        return None
    statistics = {key: value[key] for key in STATISTICS if key in value}
    data = data_name if isinstance(data_name, str) else None
    return Tensor(name, str(kind), tuple(shape), str(value["dtype"]), statistics, data)
