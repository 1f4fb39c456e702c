"""The prefill_logprob_diff that the training side printed, held against what its records give."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from locales import _
from stages.dumps.logprobs import Compared, Differences, Spread, spread
from stages.dumps.logs import log_lines
from stages.dumps.problem import ERROR, NOTE, WARNING, Problem

_KEYS = ("mean", "max", "std")
_NUMBER = r"([-+]?(?:\d[\d.]*(?:[eE][-+]?\d+)?|nan|inf))"
_PRINT = re.compile(r"\s+".join(rf"prefill_logprob_diff_{key}\s*[=:]\s*{_NUMBER}" for key in _KEYS))
_NOT_COMPUTED = re.compile(r"prefill_logprob_diff:? not computed\D{1,8}(\d{1,9}) of (\d{1,9})")
_PID = re.compile(r"\bpid=(\d{1,9})\b")
_DIGITS = 6
"""Significant ones, of %g."""
_MOST_PRINTS = 10_000
_MOST_STRETCHES = 2_000_000
_MOST_VALUES = 20_000_000
_MOST_PROBLEMS = 20


@dataclass(frozen=True)
class Print:
    """One line of the log: of the requests of one process in one step. ``pid``: as Ray puts it before the line."""

    where: str
    mean: float
    max: float
    std: float
    pid: int | None = None

    @property
    def plausible(self) -> bool:
        return (
            all(map(math.isfinite, (self.mean, self.max, self.std)))
            and 0 <= self.mean <= self.max <= 1
            and self.std >= 0
        )


@dataclass(frozen=True)
class Printed:
    prints: tuple[Print, ...]
    problems: tuple[Problem, ...]


def read_printed(log: Path) -> Printed:
    prints: list[Print] = []
    problems: list[Problem] = []
    try:
        for number, text in log_lines(log):
            if "prefill_logprob_diff" not in text:
                continue
            where = f"{log}:{number}"
            if missing := _NOT_COMPUTED.search(text):
                what = _(
                    "the training job itself did not compute prefill_logprob_diff for {some} of {all} requests: see its log"
                )
                told = what.format(some=missing[1], all=missing[2])
                problems.append(Problem("prefill-print-missing", WARNING, told, where))
            pid = _PID.search(text)
            of = int(pid[1]) if pid else None
            found = (map(_float, match.groups()) for match in _PRINT.finditer(text))
            prints += [Print(where, mean, largest, deviation, of) for mean, largest, deviation in found]
            if max(len(prints), len(problems)) >= _MOST_PRINTS:
                break
    except OSError as error:
        problems.append(
            Problem("log-unreadable", ERROR, _("cannot be read: {why}").format(why=error.strerror), str(log))
        )
    return Printed(tuple(prints), tuple(problems[:_MOST_PROBLEMS]))


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def check_printed(printed: Printed, found: Differences) -> tuple[Problem, ...]:
    """What the log says and the records do not: each print has to be the difference of some requests that follow each other."""
    problems = list(printed.problems)
    if not printed.prints:
        what = _("the training log has no prefill_logprob_diff_mean")
        return (
            *problems,
            Problem("prefill-not-printed", NOTE, what, "", _("look for the log of the process that trains")),
        )
    budget = [_MOST_STRETCHES, _MOST_VALUES]
    for one in printed.prints:
        if not one.plausible:
            what = _("printed mean {mean:g}, max {max:g}, std {std:g}: no differences of probabilities")
            told = what.format(mean=one.mean, max=one.max, std=one.std)
            problems.append(Problem("prefill-print-implausible", ERROR, told, one.where))
        elif found.spread is not None and not any(
            _agree(one, of_some) for of_some in _stretches(one, found.compared, budget)
        ):
            if min(budget) < 0:
                what = _("too many requests and prints: the rest was not compared")
                problems.append(Problem("prefill-print-unchecked", NOTE, what, one.where))
                break
            what = _("printed mean {mean:g}, max {max:g}, std {std:g}; the records give {records}")
            told = what.format(mean=one.mean, max=one.max, std=one.std, records=_told(found.spread))
            todo = _("the log and the records may be of different runs")
            problems.append(Problem("prefill-print-differs", WARNING, told, one.where, todo))
    return tuple(problems[:_MOST_PROBLEMS])


def _told(of_all: Spread) -> str:
    return _("mean {mean:g}, max {max:g}, std {std:g} of {count} tokens").format(
        mean=of_all.mean, max=of_all.max, std=of_all.std, count=of_all.count
    )


def _stretches(one: Print, compared: Iterable[Compared], budget: list[int]) -> Iterator[Spread]:
    """Of requests that one process logged one after the other, those whose mean is the printed one. ``budget``: stretches and
    values that may still be looked at, of all prints together; below 0 nothing more is."""
    processes: dict[tuple[str, int | None], list[tuple[Spread, Compared]]] = {}
    for request in compared:
        if request.spread and (one.pid is None or request.train.pid in (None, one.pid)):
            key = (str(request.train.path), request.train.pid)
            processes.setdefault(key, []).append((request.spread, request))
    for requests in processes.values():
        for first in range(len(requests)):
            total, count = 0.0, 0
            for last in range(first, len(requests)):
                budget[0] -= 1
                if min(budget) < 0:
                    return
                of_one = requests[last][0]
                total, count = total + of_one.mean * of_one.count, count + of_one.count
                if _close(one.mean, total / count):
                    budget[1] -= count
                    both = spread([value for _spread, of in requests[first : last + 1] for value in of.differences])
                    if both is not None:
                        yield both


def _agree(one: Print, records: Spread) -> bool:
    return all(_close(getattr(one, key), getattr(records, key)) for key in _KEYS)


def _close(printed: float, value: float) -> bool:
    """Within one unit of the last digit that %g prints."""
    if printed == 0:
        return abs(value) < 1e-12
    unit = 10.0 ** (math.floor(math.log10(abs(printed))) - _DIGITS + 1)
    return abs(printed - value) <= unit
