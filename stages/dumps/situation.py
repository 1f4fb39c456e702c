"""What is known of a side that left no dump, and what its log says: the ground of the causes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stages.sides import Side

CONFIRMED, RULED_OUT, NOT_CHECKED = "confirmed", "ruled out", "not checked"
_STARTED = re.compile(
    r"debugger\.(?:start|stop)\(\) is set|Dump switch is turned on|dump\.json is at|\[DUMP_DIAG\]|\[msprobe\]"
)
"""What msprobe and the patched frameworks print once a dump is on."""
_SWALLOWED = re.compile(r"(?i)please install msprobe|No module named '(?:msprobe|mindstudio)|DUMP_ON=1, but msprobe")
_RUNNER = re.compile(r"(?i)using (the )?(V[12]) model runner")
_LINE = 1 << 16  # characters


@dataclass(frozen=True)
class Cause:
    """``name`` is stable, for programs; ``state``: confirmed, ruled out or not checked; ``why``: on what that rests."""

    name: str
    state: str
    what: str
    why: str = ""
    todo: str = ""

    def as_json(self) -> dict[str, str]:
        return {"name": self.name, "state": self.state, "what": self.what, "why": self.why, "todo": self.todo}


@dataclass(frozen=True)
class Signs:
    """What a job's log says: whether a debugger was on in it, an import error that the engine swallowed, the model runner."""

    started: bool = False
    swallowed: str = ""
    runner: str = ""


@dataclass(frozen=True)
class Situation:
    """What is known of a side's run; None is unknown.

    ``launch``: the command lines; ``environment``: variables that the job was given; ``config``: msprobe's, as JSON;
    ``steps_logged``: the steps that the patched framework logged; ``recipes``: what was applied, None where that is unknown;
    ``native``: the engine dumps by itself; ``script_checked``: stage 4 saw that the launch script imports the patched copy.
    """

    name: str
    side: Side | None = None
    framework: str | None = None
    native: bool = False
    recipes: tuple[str, ...] | None = None
    launch: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    workdir: str | None = None
    config: Any = None
    world_size: int | None = None
    log: Path | None = None
    steps_logged: frozenset[int] = frozenset()
    job_rc: int | None = None
    script_checked: bool = False


def read_signs(log: Path) -> Signs | None:
    """None when the log cannot be read. Memory stays small whatever its size."""
    found = Signs()
    try:
        with log.open(encoding="utf-8", errors="replace", newline="\n") as file:
            while line := file.readline(_LINE):
                if _STARTED.search(line):
                    found = replace(found, started=True)
                if not found.swallowed and (said := _SWALLOWED.search(line)):
                    found = replace(found, swallowed=said.group())
                if not found.runner and (runner := _RUNNER.search(line)):
                    found = replace(found, runner=runner[2].upper())
    except OSError:
        return None
    return found


def given(known: Situation, name: str) -> str | None:
    """The value of a variable, as the job's environment or its command line sets it."""
    if name in known.environment:
        return known.environment[name]
    found = re.search(rf"(?<![\w.]){name}['\"]?\s*[=:]\s*['\"]?([^\s'\",}}]*)", known.launch or "")
    return found[1] if found else None
