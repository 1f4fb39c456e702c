"""Whether every override took effect: what the target's modules got, bit for bit, and what msprobe said in the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from locales import _
from stages.card.evidence import digest
from stages.dumps.problem import ERROR, NOTE, WARNING, Problem
from stages.msprobe_config import check_config
from stages.sides import Side
from stages.stub.backward import missing_backward
from stages.stub.log import Log, read_log
from stages.stub.manifest import Manifest, Prepared
from stages.stub.sending import ask
from stages.stub.target import Dump, StubDumpError, places, read_dump

EQUAL, CAST, DIFFERENT, MISSING, LOGGED, UNKNOWN = (
    "equal",
    "equal-after-cast",
    "different",
    "missing",
    "logged",
    "not computed",
)
_HOLDS = (EQUAL, CAST, LOGGED)


@dataclass(frozen=True)
class Slot:
    """One overridden argument on one rank. ``was_equal``: the target had the same values before, so that equality alone shows
    nothing; ``cosine`` and ``max_abs`` None where they were not computed."""

    entry: str
    argument: str
    step: int
    rank: int | None
    state: str
    cosine: float | None = None
    max_abs: float | None = None
    was_equal: bool | None = None


@dataclass(frozen=True)
class Verified:
    """``verified`` None: nothing contradicts it, and nothing proves it."""

    verified: bool | None
    slots: tuple[Slot, ...]
    problems: tuple[Problem, ...]
    log: Path | None

    @property
    def overridden(self) -> int:
        return len({one.entry for one in self.slots if one.state in _HOLDS})

    def as_json(self) -> dict[str, Any]:
        return {
            "verified": self.verified,
            "overridden": self.overridden,
            "slots": [asdict(one) for one in self.slots],
            "problems": [asdict(one) for one in self.problems],
            "log": str(self.log) if self.log else None,
        }


def verify(manifest: Manifest, config: Mapping[str, Any], side: Side, log_file: Path | None) -> Verified:
    """Raises UsageError (a log that cannot be read), SideError."""
    problems = [*_config_problems(manifest, config), *_changed(manifest)]
    log = read_log(log_file, manifest) if log_file else None
    problems += _log_problems(log, log_file, manifest)
    if manifest.dump_after_load:
        slots, more = _compared(manifest, Path(str(config.get("dump_path"))), side)
        problems += more
    else:
        slots = [_slot(one, LOGGED if _confirmed(log, one) else UNKNOWN) for one in manifest.files]
        problems += [] if all(one.state == LOGGED for one in slots) else [_unproven()]
    return Verified(_judge(slots, problems), tuple(slots), tuple(problems), log_file)


def _judge(slots: list[Slot], problems: list[Problem]) -> bool | None:
    if any(one.level == ERROR for one in problems) or any(one.state in (DIFFERENT, MISSING) for one in slots):
        return False
    return True if slots and all(one.state in _HOLDS for one in slots) else None


# --- config and sources -----------------------------------------------------------------------------------------------


def _config_problems(manifest: Manifest, config: Mapping[str, Any]) -> Iterator[Problem]:
    """Whether the config is the one that loads these sources, in a step that is looked at."""
    load = config.get("load")
    todo = _("`probepatch stub config` writes it")
    if not isinstance(load, dict):
        yield Problem("no-load", ERROR, _("the config has no section `load`: nothing was overridden"), todo=todo)
        return
    if Path(str(load.get("path"))).resolve() != manifest.folder.resolve():
        what = _("load.path is not the folder of this round's sources: {path}").format(path=str(load.get("path"))[:240])
        yield Problem("other-source", ERROR, what, todo=todo)
    modules = load.get("modules")
    if not isinstance(modules, list) or sorted(map(str, modules)) != sorted(manifest.entries):
        yield Problem("other-modules", ERROR, _("load.modules are not the entries of this round"), todo=todo)
    for key, steps in (("load.step", load.get("step")), ("step", config.get("step"))):
        numbers = check_config({**config, "step": steps}, 1).steps
        if numbers and manifest.step not in numbers:
            what = _("{key} leaves out step {step}, to which the sources belong: the override is silently inactive")
            yield Problem("inactive-step", ERROR, what.format(key=key, step=manifest.step), todo=todo)
    ranks = load.get("rank")
    if ranks and (manifest.ranks is None or not set(manifest.ranks) <= set(_numbers(ranks, config))):
        yield Problem("inactive-rank", ERROR, _("load.rank leaves out ranks that have sources"), todo=todo)


def _numbers(ranks: Any, config: Mapping[str, Any]) -> tuple[int, ...]:
    return check_config({**config, "step": ranks}, 1).steps


def _changed(manifest: Manifest) -> Iterator[Problem]:
    for one in manifest.files:
        if digest(manifest.folder / one.path) != one.sha256:
            what = _("a prepared source was changed or removed after it was prepared")
            yield Problem("source-changed", ERROR, what, str(manifest.folder / one.path))


# --- the log ----------------------------------------------------------------------------------------------------------


def _log_problems(log: Log | None, path: Path | None, manifest: Manifest) -> Iterator[Problem]:
    if log is None:
        yield Problem("no-log", NOTE, _("no log was read: --log FILE"))
        return
    yield from log.problems
    if not log.lines:
        what = _("the log has no line of msprobe's `load`: it is of another run, or nothing was loaded")
        yield Problem("silent-log", WARNING, what, str(path))
    elif log.validated is not None and log.validated[0] < log.validated[1] and 0 in (manifest.ranks or [0]):
        what = _("msprobe found {valid} of {all} entries in the model").format(
            valid=log.validated[0], all=log.validated[1]
        )
        yield Problem("invalid-module", ERROR, what, str(path))


def _confirmed(log: Log | None, one: Prepared) -> bool:
    return log is not None and f"{one.entry}.{one.argument}" in log.confirmed


def _unproven() -> Problem:
    return Problem(
        "not-dumped",
        WARNING,
        _("this round dumps nothing, so that what the modules got cannot be looked at"),
        todo=_(
            "run it with MSPROBE_LOG_LEVEL=0, whose lines name each override, and give --log; or dump_after_load true"
        ),
    )


# --- the new dump -----------------------------------------------------------------------------------------------------


def _compared(manifest: Manifest, dump_path: Path, side: Side) -> tuple[list[Slot], list[Problem]]:
    problems: list[Problem] = []
    dumps = _dumps(manifest, dump_path, problems)
    slots: list[Slot] = []
    pairs: list[tuple[Prepared, Path]] = []
    for one in manifest.files:
        having = [dump for dump in dumps if dump.place.rank == one.rank]
        found = [dump for dump in having if one.argument in dump.inputs.get(one.entry, {})]
        if not found:
            slots.append(_slot(one, MISSING))
            problems.append(_not_there(one, having, dump_path))
        pairs += [(one, dump.place.path / "dump_tensor_data" / Path(one.path).name) for dump in found]
    if pairs:
        given = [
            {"prepared": str((manifest.folder / one.path).resolve()), "dumped": str(path), "before": one.before}
            for one, path in pairs
        ]
        told = ask(side, "compare", {"pairs": given})
        for (one, _path), answer in zip(pairs, told["pairs"], strict=True):
            slots.append(_slot_of(one, answer, problems))
    problems += _backward(manifest, dumps)
    return slots, problems


def _dumps(manifest: Manifest, dump_path: Path, problems: list[Problem]) -> list[Dump]:
    found = []
    for place in places(dump_path):
        if place.step == manifest.step:
            try:
                found.append(read_dump(place, set(manifest.entries)))
            except StubDumpError as error:
                problems.append(Problem("unreadable-dump", ERROR, error.what, error.where or "", error.why or ""))
    if not found:
        what = _("there is no dump of step {step}: the run wrote nothing under this config").format(step=manifest.step)
        todo = _("see that the run was started with the config of this round")
        problems.append(Problem("no-dump", ERROR, what, str(dump_path), todo))
    return found


def _not_there(one: Prepared, having: list[Dump], dump_path: Path) -> Problem:
    if not having:
        where = _("no process without a rank") if one.rank is None else _("no rank {rank}").format(rank=one.rank)
        what = _("the dump has {where}: `load` found no source there").format(where=where)
        todo = _("run the target as in its last dump (with or without a group, as many ranks)")
        return Problem("other-ranks", ERROR, what, str(dump_path), todo)
    what = _("the dump has no {entry} with the tensor {argument}").format(entry=one.entry, argument=one.argument)
    return Problem("entry-missing", ERROR, what, str(having[0].place.path))


def _slot_of(one: Prepared, answer: Mapping[str, Any], problems: list[Problem]) -> Slot:
    if answer["wrong"]:
        problems.append(Problem("not-compared", ERROR, answer["wrong"], answer["where"]))
        return _slot(one, MISSING)
    state = DIFFERENT if not answer["equal"] else CAST if answer["cast"] else EQUAL
    if state == DIFFERENT:
        what = _("{entry} did not get what was prepared as {argument}").format(entry=one.entry, argument=one.argument)
        problems.append(Problem("not-overridden", ERROR, what, "", _("the log says why: --log FILE")))
    elif answer["was_equal"]:
        what = _("{entry} had these values in {argument} before: that they are equal proves nothing by itself")
        problems.append(Problem("was-equal", NOTE, what.format(entry=one.entry, argument=one.argument)))
    return Slot(
        *(one.entry, one.argument, one.step, one.rank, state),
        *(answer["cosine"], answer["max_abs"], answer["was_equal"]),
    )


def _slot(one: Prepared, state: str) -> Slot:
    return Slot(one.entry, one.argument, one.step, one.rank, state)


def _backward(manifest: Manifest, dumps: list[Dump]) -> Iterator[Problem]:
    """Against the dump that the round was prepared on, rank by rank."""
    for dump in dumps:
        for place in places(Path(manifest.target)):
            if (place.step, place.rank) == (dump.place.step, dump.place.rank):
                try:
                    yield from missing_backward(read_dump(place, set()).names, dump.names, manifest.entries)
                except StubDumpError:
                    continue  # what is gone since tells nothing
                break
