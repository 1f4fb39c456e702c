"""Known ways in which a run fails, by what they leave in its log; each with a name, the cause, and what to do.

Single words such as "Error" say nothing: engines print them in runs that are right.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from locales import _

_WIDEST = 4000  # characters of a line


@dataclass(frozen=True)
class Failure:
    """``always``: told of a run that ended well, too, for then there is no dump."""

    name: str
    pattern: re.Pattern[str]
    what: str
    todo: str
    always: bool = False


@dataclass(frozen=True)
class Seen:
    """``line``: 1-based, in the log."""

    name: str
    line: int
    what: str
    todo: str


FAILURES = (
    Failure(
        "lost-flag",
        re.compile(r"Rule-based RM type is not specified"),
        _("a flag of the baseline is lost: --rm-type"),
        _("`probepatch inputs check SCRIPT --baseline WORKING_SCRIPT` tells every flag that is missing"),
    ),
    Failure(
        "json-cut",
        re.compile(r"JSONDecodeError|cannot be converted to <function loads|invalid loads value:"),
        _("JSON did not arrive whole: `ray job submit` has a shell parse its arguments again"),
        _(
            "write it compactly, without a blank: `probepatch inputs check SCRIPT`, rule second-parse; or give a file's path"
        ),
    ),
    Failure(
        "msprobe-missing",
        re.compile(
            r"No module named '?(?:msprobe|tensorboard)|Please install msprobe|cannot import name .{0,60}from '?msprobe"
            r"|msprobe cannot be imported"
        ),
        _("msprobe, or a package that it needs, is missing in the environment of that process"),
        _("`probepatch preflight` names it; install it there, for engines go on without a dump"),
        always=True,
    ),
    Failure(
        "two-debuggers",
        re.compile(r"msprobe allows one debugger per process|has another PrecisionDebugger"),
        _("two debuggers in one process: msprobe takes the first config and ignores the other"),
        _("switch the framework's own off (verl: global_profiler.tool)"),
    ),
    Failure(
        "switch-refused",
        re.compile(r"RuntimeError: (?:DUMP_ON|PREFILL_LOGPROB_DIFF)=1"),
        _("the instrumentation refused to start, and says why"),
        _("the line in the log says what is missing"),
    ),
    Failure(
        "port-in-use",
        re.compile(
            r"(?i)address already in use|\[Errno 98\]|port \d+ is (?:already )?(?:in use|not available|occupied)"
        ),
        _("a port is taken"),
        _("`probepatch preflight` tells by whom; stop it by its PID, or give the job another port"),
    ),
    Failure(
        "out-of-memory",
        re.compile(
            r"(?i)out of memory|OutOfMemoryError|No available memory for the cache blocks|aclrtMalloc.*fail"
            r"|Free memory on device .{0,80}is less than"
        ),
        _("memory ran out: the model does not fit, or a process of an earlier run (EngineCore) holds the card"),
        _("`probepatch preflight` names what holds it; `probepatch preflight stop PID` ends it"),
    ),
    Failure(
        "engine-not-started",
        re.compile(r"Engine core initialization failed|EngineDeadError|Scheduler hit an exception"),
        _("the engine did not start, or died; the cause stands above that line"),
        _("look at the devices that it got, then run the native control"),
    ),
    Failure(
        "no-deterministic-operator",
        re.compile(r"does not have a deterministic implementation"),
        _("an operator has no deterministic version, which seed_all(mode=True) asks for"),
        _("the line names it: use another implementation of it (attention backend, say)"),
    ),
    Failure(
        "program-missing",
        re.compile(
            r": (?:command not found|No such file or directory)$|(?:ModuleNotFoundError|python[\d.]*): No module named"
        ),
        _("a program, a file or a module is not where the command looks for it"),
        _("the prefix, the work folder and the interpreter are on the task card: `probepatch task show`"),
    ),
)
"""In the order in which they are told: the earlier explains more."""


class Watch:
    """Reads a log as it comes, in pieces, and keeps the first line of each failure; of a line its first 4000 characters."""

    def __init__(self) -> None:
        self._line = 1
        self._begun = ""
        self._found: dict[str, tuple[Failure, int]] = {}

    def read(self, text: str) -> None:
        for number, part in enumerate(text.split("\n")):
            if number:
                self._close()
            self._begun += part[: _WIDEST - len(self._begun)]

    def _close(self) -> None:
        one = next((one for one in FAILURES if one.pattern.search(self._begun)), None)
        if one is not None and one.name not in self._found:
            self._found[one.name] = (one, self._line)
        self._line, self._begun = self._line + 1, ""

    def seen(self, ended_well: bool) -> list[Seen]:
        """What is worth telling, when nothing more comes."""
        self._close()
        found = (self._found[one.name] for one in FAILURES if one.name in self._found)
        return [Seen(one.name, line, one.what, one.todo) for one, line in found if one.always or not ended_well]
