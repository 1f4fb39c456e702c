"""What the patched frameworks wrote beside the dumps: a line per captured step, and a line per prompt's log-probs.

    <dump_path>/rank<R>/update_actor_log.jsonl   training: the steps
    <dump_path>/rank<R>/dispatch_log.jsonl       inference: the steps
    <dump_path>/rank<R>/prefill_logprobs.jsonl   log-probs; the training side's file may hold both sides' lines

also one folder further down. Files are streamed; a last line that was being written when the process ended is a note, anything
else that is wrong is a problem with its place, and the line is left out. No token id is kept; a text in an id's place is hashed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from locales import _
from stages.dumps import jsonl
from stages.dumps.jsonl import WrongLine, listed, optional, required
from stages.dumps.problem import ERROR, NOTE, WARNING, Problem
from stages.dumps.request_ids import request_name
from stages.sides import INFER, TRAIN

STEP_LOGS = {TRAIN: "update_actor_log.jsonl", INFER: "dispatch_log.jsonl"}
PREFILL_LOG = "prefill_logprobs.jsonl"
MOST_LINES = 500_000
MOST_LOGPROBS = 8_000_000
_MOST_PROBLEMS = 20
"""Of one file; the rest is counted."""
_RANK_FOLDER = re.compile(r"rank_?(\d{1,7})")


@dataclass(frozen=True, slots=True)
class Line:
    """One step of a log. ``step`` counts the captured forwards of a process. The tuples have one element for each request, in the
    order of the input. Tokens: ``token_count`` of the whole input, ``computed`` before this step, ``scheduled`` in it."""

    side: str
    path: Path
    number: int
    rank: int | None
    pid: int | None
    step: int
    phase: str | None
    request_ids: tuple[str | None, ...]
    prompt_sha256: tuple[str | None, ...]
    prompt_tokens: tuple[int | None, ...]
    computed: tuple[int, ...] | None = None
    scheduled: tuple[int, ...] | None = None
    token_count: int | None = None
    time: str | None = None
    phases: tuple[str | None, ...] | None = None
    prompts_only: bool | None = None

    @property
    def where(self) -> str:
        return f"{self.path}:{self.number}"

    def phase_of(self, index: int) -> str | None:
        """That of one request: a step may mix them."""
        return self.phase if self.phases is None else self.phases[index]


@dataclass(frozen=True, slots=True)
class Prefill:
    """Log-probs of tokens 1 to ``n_tokens`` - 1 of one prompt. They may hold NaN and infinities: whoever computes has to look."""

    side: str
    path: Path
    number: int
    rank: int | None
    pid: int | None
    request_id: str | None
    n_tokens: int
    prompt_sha256: str | None
    logprobs: tuple[float, ...]
    mode: str | None
    temperature: float | None

    @property
    def where(self) -> str:
        return f"{self.path}:{self.number}"


@dataclass(frozen=True)
class Records:
    lines: tuple[Line, ...]
    prefills: tuple[Prefill, ...]
    problems: tuple[Problem, ...]


def read_records(dump_path: Path, side: str) -> Records:
    """All logs of a side, files in the order of rank. Nothing is raised for what is in them."""
    reading = _Reading(side)
    found = 0
    for folder in rank_folders(dump_path):
        for name, take in ((STEP_LOGS[side], reading.step), (PREFILL_LOG, reading.prefill)):
            path = folder / name
            if not os.path.lexists(path):
                continue
            if os.path.isfile(path):
                found += 1
                reading.file(path, take)
            else:
                reading.problem("log-not-a-file", ERROR, _("{name} is not a file").format(name=name), str(path))
        other = folder / STEP_LOGS[INFER if side == TRAIN else TRAIN]
        if os.path.isfile(other):
            what = _("the log of the other side's steps lies in the {side} side's folder").format(side=side)
            reading.problem("shared-dump-path", ERROR, what, str(other), _("give each side a dump_path of its own"))
    if not found:
        what = _("the {side} side wrote no log: its requests are unknown").format(side=side)
        todo = _("an engine's own dump has none; patched ones need DUMP_ON=1 in the process that runs the model")
        reading.problem("no-log", NOTE, what, str(dump_path), todo)
    reading.processes()
    return Records(tuple(reading.lines), tuple(reading.last_prefills()), tuple(reading.problems))


def rank_folders(dump_path: Path) -> list[Path]:
    """``rank*`` here and one folder down, each once, by rank."""
    found: dict[tuple[int, int], tuple[int, str, Path]] = {}
    for parent in (dump_path, *_folders(dump_path)):
        for folder in _folders(parent):
            match = _RANK_FOLDER.fullmatch(folder.name)
            if match:
                with suppress(OSError):  # it went away
                    status = folder.stat()
                    found.setdefault((status.st_dev, status.st_ino), (int(match[1]), str(folder), folder))
    return [folder for _rank, _name, folder in sorted(found.values())]


def _folders(parent: Path) -> list[Path]:
    try:
        return sorted(entry for entry in parent.iterdir() if os.path.isdir(entry))
    except OSError:
        return []


class ContradictionError(WrongLine):
    """Two lines say different things of one step, or of one request."""


@dataclass
class _Reading:
    side: str
    lines: list[Line] = field(default_factory=list)
    prefills: list[Prefill] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    logprobs: int = 0
    seen: dict[tuple[Any, ...], Line | Prefill] = field(default_factory=dict)
    contradicted: set[tuple[Any, ...]] = field(default_factory=set)
    strings: dict[str, str] = field(default_factory=dict)

    def problem(self, name: str, level: str, what: str, where: str, todo: str = "") -> None:
        self.problems.append(Problem(name, level, what, where, todo))

    def file(self, path: Path, take: Callable[[Path, int, dict[str, Any]], None]) -> None:
        """One unreadable line does not hide the others, but a hundred are named by their number only."""
        wrong = 0
        try:
            for number, text, whole in jsonl.lines(path):
                try:
                    take(path, number, jsonl.parse(text))
                except WrongLine as error:
                    if not whole and error.name == "log-not-json":
                        what = _("the last line is torn: its process ended while it wrote; it is left out")
                        self.problem("torn-last-line", NOTE, what, f"{path}:{number}")
                        continue
                    wrong += 1
                    if wrong <= _MOST_PROBLEMS:
                        self.problem(error.name, error.level, str(error), f"{path}:{number}", _("the line is left out"))
                    if error.name == "log-too-long":
                        break
        except OSError as error:
            self.problem("log-unreadable", ERROR, _("cannot be read: {why}").format(why=error.strerror), str(path))
        if wrong > _MOST_PROBLEMS:
            what = _("{count} more lines are wrong").format(count=wrong - _MOST_PROBLEMS)
            self.problem("more-wrong-lines", ERROR, what, str(path))

    def processes(self) -> None:
        """msprobe names a folder by rank where there is one: of several processes' dumps of a step the last one is left."""
        found: dict[tuple[Path, int], set[int | None]] = {}
        for line in self.lines:
            found.setdefault((line.path, line.step), set()).add(line.pid)
        clashes = {path: len(pids) for (path, _step), pids in found.items() if len(pids) > 1}
        for path, count in clashes.items():
            what = _("{count} processes logged the same step here: an earlier run's, or several engines'").format(
                count=count
            )
            todo = _("a folder step*/rank* holds the dump of the last one only: empty the folder, or give each its own")
            self.problem("several-processes", WARNING, what, str(path), todo)

    def step(self, path: Path, number: int, data: dict[str, Any]) -> None:
        if len(self.lines) >= MOST_LINES:
            raise WrongLine("log-too-long", _("more than {count} steps; the rest is not read").format(count=MOST_LINES))
        ids = listed(data, "request_ids", jsonl.word)
        count = len(ids)
        line = Line(
            side=self.side,
            path=path,
            number=number,
            rank=_rank(data, path),
            pid=optional(data, "pid", jsonl.count),
            step=required(data, "step", jsonl.count),
            phase=self._same(optional(data, "phase", jsonl.word)),
            request_ids=tuple(self._same(None if one is None else request_name(one)) for one in ids),
            prompt_sha256=tuple(map(self._same, listed(data, "prompt_sha256", jsonl.sha256, count))),
            prompt_tokens=listed(data, "prompt_tokens", jsonl.count, count),
            computed=jsonl.counts(data, "computed_tokens", count),
            scheduled=jsonl.counts(data, "scheduled_tokens", count),
            token_count=optional(data, "token_count", jsonl.count),
            time=optional(data, "time", jsonl.word),
            phases=tuple(map(self._same, listed(data, "phases", jsonl.word, count))) if "phases" in data else None,
            prompts_only=optional(data, "prompts_only", jsonl.flag),
        )
        try:
            self._once(line, (line.path, line.rank, line.pid, line.step), "step")
        except ContradictionError:
            self.lines.append(line)  # with both of them there, neither is taken for the dump's
            raise
        self.lines.append(line)

    def prefill(self, path: Path, number: int, data: dict[str, Any]) -> None:
        logprobs = required(data, "logprobs", jsonl.floats)
        self.logprobs += len(logprobs)
        if self.logprobs > MOST_LOGPROBS or len(self.prefills) >= MOST_LINES:
            what = _("more than {count} log-probs, or more than {lines} lines; the rest is not read")
            raise WrongLine("log-too-long", what.format(count=MOST_LOGPROBS, lines=MOST_LINES))
        line = Prefill(
            side=required(data, "side", _side),
            path=path,
            number=number,
            rank=_rank(data, path),
            pid=optional(data, "pid", jsonl.count),
            request_id=None if (name := optional(data, "request_id", jsonl.word)) is None else request_name(name),
            n_tokens=required(data, "n_tokens", jsonl.positive),
            prompt_sha256=optional(data, "prompt_sha256", jsonl.sha256),
            logprobs=logprobs,
            mode=optional(data, "logprobs_mode", jsonl.word),
            temperature=optional(data, "temperature", jsonl.number),
        )
        if line.request_id is not None:
            try:
                self._once(line, _prefill_key(line), "prefill")
            except ContradictionError:
                self.contradicted.add(_prefill_key(line))
                raise
        self.prefills.append(line)

    def last_prefills(self) -> list[Prefill]:
        """Those that no other line contradicts; of several runs one after the other in a file, the last run's."""
        kept = [one for one in self.prefills if _prefill_key(one) not in self.contradicted]
        spans: dict[Path, dict[int | None, list[int]]] = {}
        for one in kept:
            spans.setdefault(one.path, {}).setdefault(one.pid, [one.number, one.number])[1] = one.number
        last: dict[Path, int | None] = {}
        for path, runs in spans.items():
            ordered = sorted(runs.items(), key=lambda run: run[1])
            if len(ordered) > 1 and all(before[1][1] < after[1][0] for before, after in pairwise(ordered)):
                last[path] = ordered[-1][0]
                what = _("the log-probs of {count} processes, one after the other: those of the last are taken")
                self.problem("earlier-runs", NOTE, what.format(count=len(ordered)), str(path))
        return [one for one in kept if last.get(one.path, one.pid) == one.pid]

    def _once(self, line: Line | Prefill, key: tuple[Any, ...], name: str) -> None:
        """A copy says nothing new. Where two lines say different things, nobody knows which one the dump goes with."""
        first = self.seen.setdefault(key, line)
        if first is line:
            return
        if _content(first) == _content(line):
            raise WrongLine(f"{name}-logged-twice", _("a copy of line {first}").format(first=first.number), WARNING)
        what = _("line {first} says something else about the same {name}").format(first=first.number, name=name)
        raise ContradictionError(f"{name}-lines-differ", what)

    def _same(self, text: str | None) -> str | None:
        return text if text is None else self.strings.setdefault(text, text)


def _prefill_key(line: Prefill) -> tuple[Any, ...]:
    return (line.path, line.side, line.pid, line.request_id)


def _content(line: Line | Prefill) -> tuple[Any, ...]:
    left_out = ("number", "time")
    return tuple(repr(getattr(line, name)) for name in line.__slots__ if name not in left_out)


def _rank(data: dict[str, Any], path: Path) -> int | None:
    """The folder's, which the line may only confirm."""
    match = _RANK_FOLDER.fullmatch(path.parent.name)
    said = optional(data, "rank", jsonl.count)
    if match and said not in (None, int(match[1])):
        what = _("`rank` is {said}, but the folder is {folder}").format(said=said, folder=path.parent.name)
        raise WrongLine("log-rank-differs", what)
    return int(match[1]) if match else said


def _side(value: Any) -> str:
    if value not in (TRAIN, INFER):
        raise ValueError(_("train or infer"))
    return str(value)
