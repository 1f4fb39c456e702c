"""stub_instruction.json as the analysis side writes it: read strictly, for msprobe passes over what is wrong in silence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codemods.errors import InvalidError, UsageError
from locales import _
from stages.dumps.streaming import open_regular
from stages.stub.form import problems
from stages.stub.schema import instruction_schema, rule_module

_LARGEST = 4 << 20  # bytes
_SHOWN = 12


class StubInstructionError(InvalidError):
    """The instruction is not valid."""


@dataclass(frozen=True)
class Module:
    """One argument of one entry. ``argument``: input.N or kwargs.NAME, None for the only tensor; ``sources`` as they stand in the
    file; ``rank`` None for every rank that has the entry."""

    target: str
    argument: str | None
    sources: tuple[str, ...]
    transform: tuple[Mapping[str, Any], ...]
    rank: int | None


@dataclass(frozen=True)
class Instruction:
    """``step`` None: the target's step that has the entries. ``data``: all of it as it was read."""

    round: int
    target_side: str
    source_side: str
    source_round: int
    isolate_boundary: str
    dump_after_load: bool
    step: int | None
    modules: tuple[Module, ...]
    data: Mapping[str, Any]

    @property
    def entries(self) -> tuple[str, ...]:
        """The entries that are overridden, each once."""
        return tuple(dict.fromkeys(one.target for one in self.modules))


def read_instruction(path: Path) -> Instruction:
    """Raises UsageError, StubInstructionError."""
    data = _json(path)
    wrong = [f"{place.lstrip('.') or '.'}: {what}" for place, what in problems(instruction_schema(), data)]
    wrong = wrong or [*_contradictions(data)]
    if wrong:
        raise StubInstructionError(
            _("the instruction is not valid: {first}").format(first=wrong[0]),
            where=str(path),
            todo=_("`probepatch stub schema` prints its form; docs/stub.md has an example"),
            details=tuple(wrong[1:_SHOWN]),
        )
    return Instruction(
        data["round"],
        data["target_side"],
        data["source_side"],
        data.get("source_round", 0),
        data["isolate_boundary"],
        data["dump_after_load"],
        data.get("step"),
        tuple(_module(one) for one in data["modules"]),
        data,
    )


def _json(path: Path) -> Any:
    try:
        with open_regular(path) as file:
            text = file.read(_LARGEST + 1)
    except OSError as error:
        raise UsageError(_("{path} cannot be read").format(path=path), why=error.strerror or str(error)) from error
    if len(text) > _LARGEST:
        raise StubInstructionError(
            _("the instruction is larger than {size} bytes").format(size=_LARGEST), where=str(path)
        )
    try:
        return json.loads(text.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise StubInstructionError(_("the instruction is no JSON"), where=str(path), why=str(error)[:200]) from error


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {name[:80]!r} stands twice")
        found[name] = value
    return found


def _contradictions(data: dict[str, Any]) -> Iterator[str]:
    """What a schema cannot say."""
    if data["target_side"] == data["source_side"]:
        yield _("target_side and source_side are the same side")
    if data.get("source_round", 0) >= data["round"]:
        yield _("source_round is not before round")
    seen: dict[Any, int] = {}
    for number, one in enumerate(data["modules"]):
        key = one["target"], one.get("argument"), one.get("rank")
        if key in seen:
            what = _("modules[{number}]: it stands twice, in modules[{other}] as well: {entry}")
            yield what.format(number=number, other=seen[key], entry=one["target"])
        seen[key] = number
        yield from (f"modules[{number}].{what}" for what in _counts(one))


def _counts(one: dict[str, Any]) -> Iterator[str]:
    """Whether the transform makes one tensor of its sources."""
    left = 1 if isinstance(one["source"], str) else len(one["source"])
    for number, rule in enumerate(one["transform"]):
        takes = getattr(rule_module(rule["rule"]), "TAKES", 0)
        if takes and takes != left:
            what = _("transform[{number}]: {rule} makes one of {takes} tensors, and there are {left}")
            yield what.format(number=number, rule=rule["rule"], takes=takes, left=left)
            return
        left = left if takes == 0 else 1
    if left != 1:
        yield _("transform: in the end there are {left} tensors, not one").format(left=left)


def _module(one: dict[str, Any]) -> Module:
    source = one["source"]
    sources = (source,) if isinstance(source, str) else tuple(source)
    return Module(one["target"], one.get("argument"), sources, tuple(one["transform"]), one.get("rank"))
