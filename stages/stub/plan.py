"""What an instruction comes to on these dumps: which files are read, and which are written for which rank, before anything is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codemods.errors import FindingError
from locales import _
from stages.stub.instruction import Instruction, Module
from stages.stub.sources import levels, source_path
from stages.stub.target import Dump, StubDumpError, places, read_dump

_SHOWN = 12
MSPROBE_PATH = re.compile(r"[a-zA-Z0-9_.:/-]+")
"""What a path may hold for msprobe to open the file."""


class StubPlanError(FindingError):
    """The instruction does not fit the dumps; nothing was written."""


@dataclass(frozen=True)
class Write:
    """One file for `load`. ``path`` from the sources' root on; ``before`` the target's own value in its last dump, if it was
    kept."""

    path: str
    entry: str
    argument: str
    step: int
    rank: int | None
    shape: tuple[int, ...]
    dtype: str
    before: Path | None


@dataclass(frozen=True)
class Item:
    """``module`` is its number in the instruction."""

    module: int
    sources: tuple[Path, ...]
    transform: Sequence[Mapping[str, Any]]
    writes: tuple[Write, ...]


@dataclass(frozen=True)
class Plan:
    """``ranks`` of the target that are overridden; None where its processes have none. ``all_ranks``: none is left out. ``left``:
    arguments of the entries that keep the target's own values, as ENTRY.kwargs.NAME."""

    step: int
    ranks: tuple[int, ...] | None
    all_ranks: bool
    items: tuple[Item, ...]
    left: tuple[str, ...]


def make_plan(instruction: Instruction, source: Path, target: Path) -> Plan:
    """``source``, ``target``: the dump folders of both sides. Raises StubPlanError, StubDumpError."""
    dumps = _dumps(target, set(instruction.entries))
    step = instruction.step if instruction.step is not None else _step_of(instruction, dumps, target)
    here = [one for one in dumps if one.place.step == step]
    if not here:
        raise StubPlanError(
            _("the target's dump has no step {step}").format(step=step),
            where=str(target),
            todo=_("it has: {steps}").format(steps=", ".join(map(str, sorted({one.place.step for one in dumps})))),
        )
    wrong: list[str] = []
    items = [_item(number, module, here, wrong) for number, module in enumerate(instruction.modules)]
    items = [_with_sources(one, instruction.modules[one.module], source, wrong) for one in items]
    wrong += [*_overlaps(items), *levels({path for one in items for path in one.sources}, instruction.source_side)]
    if wrong:
        raise StubPlanError(
            _("the instruction does not fit the dumps: {first}").format(first=wrong[0]),
            where=str(target),
            details=tuple(wrong[1:_SHOWN]),
        )
    ranks = {write.rank for one in items for write in one.writes}
    numbers = None if None in ranks else tuple(sorted(one for one in ranks if one is not None))
    every = ranks == {one.place.rank for one in here}
    return Plan(step, numbers, every, tuple(items), tuple(_left(here, items)))


def _dumps(target: Path, wanted: set[str]) -> list[Dump]:
    found = [read_dump(place, wanted) for place in places(target)]
    if not found:
        raise StubDumpError(
            _("there is no dump of the target side"),
            where=str(target),
            todo=_("its folder holds step0/rank0/dump.json, or step0/proc123/dump.json"),
        )
    return found


def _step_of(instruction: Instruction, dumps: list[Dump], target: Path) -> int:
    """The step that has the entries, or any when none has: that is told later. Raises StubPlanError where there are more."""
    having = sorted({one.place.step for one in dumps if one.inputs})
    if len(having) > 1:
        raise StubPlanError(
            _("the entries are in more than one step of the target's dump: {steps}").format(
                steps=", ".join(map(str, having[:8]))
            ),
            where=str(target),
            todo=_('say which one: "step": N in the instruction'),
        )
    return having[0] if having else dumps[0].place.step


def _item(number: int, module: Module, here: list[Dump], wrong: list[str]) -> Item:
    having = [one for one in here if module.target in one.inputs and module.rank in (None, one.place.rank)]
    if not having:
        wrong.append(f"modules[{number}]: " + _missing(module, here))
    writes: dict[str, Write] = {}
    for dump in having:
        try:
            write = _write(module, dump)
            other = writes.setdefault(write.path, write)
            if (other.shape, other.dtype) != (write.shape, write.dtype):
                raise ValueError(
                    _("processes without a rank have {entry} in different shapes").format(entry=write.entry)
                )
        except ValueError as error:
            wrong.append(f"modules[{number}]: {error}")
    return Item(number, (), module.transform, tuple(writes.values()))


def _write(module: Module, dump: Dump) -> Write:
    """Raises ValueError with what is wrong."""
    inputs = dump.inputs[module.target]
    argument = module.argument
    if argument is None:
        if len(inputs) != 1:
            what = _("{entry} gets {count} tensors: say which `argument` it is: {names}")
            raise ValueError(what.format(entry=module.target, count=len(inputs), names=", ".join(inputs) or "-"))
        (argument,) = inputs
    if argument not in inputs:
        what = _("{entry} gets no tensor {argument} that `load` can override; it gets: {names}")
        raise ValueError(what.format(entry=module.target, argument=argument, names=", ".join(inputs) or "-"))
    tensor, place = inputs[argument], dump.place
    name = f"{module.target}.{argument}.pt"
    if len(name) > 255 or not MSPROBE_PATH.fullmatch(name):
        raise ValueError(_("msprobe opens no file of this name: {name}").format(name=name))
    before = place.path / "dump_tensor_data" / name
    path = f"{place.source_folder}/{name}"
    kept = before if before.is_file() else None
    return Write(path, module.target, argument, place.step, place.rank, tensor.shape, tensor.dtype, kept)


def _missing(module: Module, here: list[Dump]) -> str:
    """With what stands at the same path, whatever its class or number."""
    if any(module.target in one.inputs for one in here):
        return _("rank {rank} of the target has no {entry}").format(rank=module.rank, entry=module.target)
    names = {name for dump in here for name in dump.names if ".forward." in name}
    near = sorted(name for name in names if _path(name) == _path(module.target))
    known = _("it has: {names}").format(names=", ".join(near[:4])) if near else _("nothing stands at that path")
    return _("the target has no {entry} in step {step}; {known}").format(
        entry=module.target, step=here[0].place.step, known=known
    )


def _path(name: str) -> str:
    """Without class and number."""
    return name.rpartition(".forward.")[0].rpartition(".")[0]


def _with_sources(item: Item, module: Module, source: Path, wrong: list[str]) -> Item:
    found = []
    for text in module.sources:
        try:
            found.append(source_path(text, source))
        except ValueError as error:
            wrong.append(f"modules[{item.module}].source: {error}")
    return replace(item, sources=tuple(found))


def _overlaps(items: list[Item]) -> Iterator[str]:
    seen: dict[str, int] = {}
    for item in items:
        for write in item.writes:
            if write.path in seen:
                what = _("modules[{number}] and modules[{other}] override the same: {path}")
                yield what.format(number=item.module, other=seen[write.path], path=write.path)
            seen[write.path] = item.module


def _left(here: list[Dump], items: list[Item]) -> Iterator[str]:
    taken = {(write.entry, write.argument) for item in items for write in item.writes}
    entries = {entry: inputs for dump in here for entry, inputs in dump.inputs.items()}
    for entry, inputs in entries.items():
        yield from (f"{entry}.{name}" for name in inputs if (entry, name) not in taken)
