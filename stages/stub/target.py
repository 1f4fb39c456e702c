"""Where msprobe's `load` looks a side's inputs up, told from the last dump of that side: steps, ranks, entries, their arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from codemods.errors import FindingError
from locales import _
from stages.dumps.entry import Tensor, inputs_of
from stages.dumps.streaming import JsonError, Stream, open_regular

MODULE_LEVELS = ("L0", "mix")
_STEP = re.compile(r"step(\d{1,7})")
_RANK = re.compile(r"rank(\d{1,7})|proc\d{1,9}")


class StubDumpError(FindingError):
    """A dump lacks what the override needs."""


@dataclass(frozen=True)
class Place:
    """A folder with a dump.json. ``rank`` None: of a process that is in no group."""

    path: Path
    step: int
    rank: int | None

    @property
    def source_folder(self) -> str:
        """Where `load` looks for it, below load.path. For a process without a rank it takes any proc*."""
        return f"step{self.step}/" + ("proc0" if self.rank is None else f"rank{self.rank}") + "/dump_tensor_data"


@dataclass(frozen=True)
class Dump:
    """``names``: all entries in order. ``inputs``: of the entries that were asked for, what `load` can override."""

    place: Place
    task: str | None
    level: str | None
    names: tuple[str, ...]
    inputs: Mapping[str, Mapping[str, Tensor]]


def places(dump_path: Path) -> Iterator[Place]:
    """By step and rank, in the layout that `load` knows."""
    found = []
    for path in dump_path.glob("step*/*/dump.json"):
        step, rank = _STEP.fullmatch(path.parent.parent.name), _RANK.fullmatch(path.parent.name)
        if step and rank:
            found.append(Place(path.parent, int(step[1]), int(rank[1]) if rank[1] else None))
    yield from sorted(found, key=lambda one: (one.step, -1 if one.rank is None else one.rank, str(one.path)))


def read_dump(place: Place, wanted: Set[str]) -> Dump:
    """Raises StubDumpError."""
    path = place.path / "dump.json"
    head: dict[str, str | None] = {"task": None, "level": None}
    names: list[str] = []
    inputs: dict[str, Mapping[str, Tensor]] = {}
    try:
        with open_regular(path) as file:
            stream = Stream(file)
            if not stream.enter():
                raise JsonError("it is no object")
            for key in stream.members():
                if key == "data" and stream.enter():
                    for name in stream.members():
                        raw = stream.value()
                        names.append(name)
                        if name in wanted and isinstance(raw, dict):
                            inputs[name] = {one.name: one for one in inputs_of(raw) if _overridable(one)}
                else:
                    value = stream.value()
                    head |= {key: value} if key in head and isinstance(value, str) else {}
    except (JsonError, OSError) as error:
        raise StubDumpError(
            _("a dump cannot be read whole"), where=str(path), why=getattr(error, "why", None) or str(error)
        ) from error
    return Dump(place, head["task"], head["level"], tuple(names), inputs)


def _overridable(tensor: Tensor) -> bool:
    """Tensors inside of tuples keep the target's own value."""
    return tensor.name.count(".") == 1 and tensor.type == "torch.Tensor"
