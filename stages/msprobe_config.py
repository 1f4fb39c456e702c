"""msprobe's config.json: made, and checked before a run, against the job that it is for.

``rank`` counts from 0 within the job, whatever the cards are called; a job of one process has none and needs ``[]``. A rank
that does not exist, like a level that hooks no modules, gives an empty dump and no error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from codemods.errors import InvalidError
from locales import _

TASKS = ("tensor", "statistics", "structure", "acc_check", "diff_check", "nan_check")
"""Of msprobe 26.x for PyTorch; the first three write a dump of modules."""
DUMPS = ("tensor", "statistics", "structure")
LEVELS = ("L0", "L1", "L2", "mix", "debug")
MODULE_LEVELS = ("L0", "mix")
ERROR, WARNING = "error", "warning"
_RANGE = re.compile(r"\s*(\d{1,7})\s*(?:-\s*(\d{1,7})\s*)?")
_HIGHEST = 1_000_000
_DATA_MODES = ("all", "input", "output", "forward", "backward")
_ENTRY = re.compile(r"Module\.\S+\.forward\.\d+")


class MsprobeConfigError(InvalidError):
    """The config would capture nothing, or something else than asked for."""


@dataclass(frozen=True)
class Finding:
    """``level``: error or warning; ``key`` dotted."""

    level: str
    key: str
    what: str
    todo: str = ""


@dataclass(frozen=True)
class Checked:
    """``ranks`` and ``steps`` with their ranges expanded; empty means all."""

    findings: tuple[Finding, ...]
    ranks: tuple[int, ...]
    steps: tuple[int, ...]

    @property
    def errors(self) -> list[Finding]:
        return [one for one in self.findings if one.level == ERROR]

    @property
    def valid(self) -> bool:
        return not self.errors


def make_config(
    dump_path: str,
    *,
    world_size: int,
    task: str = "tensor",
    level: str = "L0",
    ranks: tuple[int, ...] = (),
    steps: tuple[int, ...] = (0,),
    load: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A config for one side of a job of ``world_size`` processes. Raises MsprobeConfigError."""
    config: dict[str, Any] = {
        "task": task,
        "dump_path": dump_path,
        "rank": list(ranks) if world_size > 1 else [],
        "step": list(steps),
        "level": level,
        "async_dump": False,
    }
    if task in DUMPS:
        config[task] = {"scope": [], "list": [], "data_mode": ["all"]}
    if load is not None:
        config["load"] = dict(load)
    checked = check_config(config, world_size)
    if not checked.valid:
        first = checked.errors[0]
        raise MsprobeConfigError(first.what, where=first.key, todo=first.todo or None)
    return config


def check_config(config: Any, world_size: int) -> Checked:
    """All findings of a config read from JSON."""
    if not isinstance(config, dict):
        return Checked((Finding(ERROR, "", _("the config holds no object")),), (), ())
    ranks, findings = _numbers(config.get("rank"), "rank")
    steps, more = _numbers(config.get("step"), "step")
    findings += more
    if not findings:
        findings += _ranks(ranks, world_size)
    findings += [*_task(config), *_level(config), *_path(config), *_load(config)]
    return Checked(tuple(findings), tuple(ranks), tuple(steps))


def _numbers(value: Any, key: str) -> tuple[list[int], list[Finding]]:
    """A list of numbers and ranges (``"0-3"``), expanded, sorted, each once."""
    if value is None:
        return [], []
    if not isinstance(value, list):
        return [], [
            Finding(ERROR, key, _("{key} is no list").format(key=key), _('a list of numbers, or of ranges like "0-3"'))
        ]
    found: set[int] = set()
    for one in value:
        part = _part(one)
        if part is None or part[1] > _HIGHEST or part[0] > part[1]:
            said = _("{key} holds {value!r}, no number and no range").format(key=key, value=one)
            return [], [Finding(ERROR, key, said, _('numbers from 0, or ranges like "0-3"'))]
        found.update(range(part[0], part[1] + 1))
    return sorted(found), []


def _part(one: Any) -> tuple[int, int] | None:
    if type(one) is int and one >= 0:
        return one, one
    match = _RANGE.fullmatch(one) if isinstance(one, str) else None
    return (int(match[1]), int(match[2] or match[1])) if match else None


def _ranks(ranks: list[int], world_size: int) -> list[Finding]:
    if world_size == 1 and ranks:
        what = _("a job of one process has no ranks: rank {ranks} would dump nothing").format(ranks=_said(ranks))
        return [Finding(ERROR, "rank", what, _("use []"))]
    beyond = [rank for rank in ranks if rank >= world_size]
    if not beyond:
        return []
    what = _("rank {ranks} do not exist, world size {size}").format(ranks=_said(beyond), size=world_size)
    every = f"[{_said(list(range(world_size)))}]" if world_size <= 8 else f'["0-{world_size - 1}"]'
    todo = _("use {every} or []; ranks count from 0 within the job, they are no card numbers").format(every=every)
    return [Finding(ERROR, "rank", what, todo)]


def _said(numbers: list[int]) -> str:
    shown = ",".join(map(str, numbers[:8]))
    return shown if len(numbers) <= 8 else f"{shown},…"


def _task(config: Mapping[str, Any]) -> list[Finding]:
    task = config.get("task", "statistics")
    if task not in TASKS:
        return [Finding(ERROR, "task", _("{value!r} is no task").format(value=task), ", ".join(TASKS))]
    if task not in DUMPS:
        return [
            Finding(WARNING, "task", _("task {task} writes no dump of modules").format(task=task), ", ".join(DUMPS))
        ]
    own = config.get(str(task), {})
    modes = own.get("data_mode", []) if isinstance(own, dict) else None
    if not isinstance(modes, list) or any(mode not in _DATA_MODES for mode in modes):
        return [Finding(ERROR, f"{task}.data_mode", _("it is no list of data modes"), ", ".join(_DATA_MODES))]
    return []


def _level(config: Mapping[str, Any]) -> list[Finding]:
    level = config.get("level", "L1")
    if level not in LEVELS:
        return [Finding(ERROR, "level", _("{value!r} is no level").format(value=level), ", ".join(LEVELS))]
    if level in MODULE_LEVELS:
        return []
    what = _("level {level} has no module data; `load` cannot use such a dump").format(level=level)
    return [Finding(ERROR if "load" in config else WARNING, "level", what, _("use L0, or mix"))]


def _path(config: Mapping[str, Any]) -> list[Finding]:
    path = config.get("dump_path")
    if path is None and isinstance(config.get("load"), dict) and not config["load"].get("dump_after_load"):
        return []  # it only loads
    if not isinstance(path, str) or not path:
        return [Finding(ERROR, "dump_path", _("there is no dump_path"))]
    if not path.startswith("/"):
        return [
            Finding(
                WARNING, "dump_path", _("dump_path is relative: each worker has its own folder"), _("an absolute path")
            )
        ]
    return []


def _load(config: Mapping[str, Any]) -> list[Finding]:
    if "load" not in config:
        return []
    load = config["load"]
    if not isinstance(load, dict) or not isinstance(load.get("path"), str) or not load["path"]:
        return [Finding(ERROR, "load.path", _("load has no path"))]
    modules = load.get("modules")
    if not isinstance(modules, list) or not modules:
        return [Finding(ERROR, "load.modules", _("load names no modules"))]
    wrong = [one for one in modules if not isinstance(one, str) or not _ENTRY.fullmatch(one)]
    if wrong or len(set(map(str, modules))) != len(modules):
        what = _("an entry of load.modules is wrong or stands twice: {entry}").format(
            entry=str((wrong or modules)[0])[:120]
        )
        return [Finding(ERROR, "load.modules", what, "Module.PATH.CLASS.forward.N")]
    findings: list[Finding] = []
    for key in ("step", "rank"):
        findings += _numbers(load.get(key), key)[1]
    return findings
