"""Which line of a log belongs to which folder of a dump: by rank or process, and step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from locales import _
from stages.dumps.layout import FILLED, Folder
from stages.dumps.problem import ERROR, NOTE, Problem
from stages.dumps.records import Line

Places = Mapping[tuple[str, int | None, int], Sequence[Line]]
"""Lines by rank or process (``("rank", 0, step)``, ``("proc", 4711, step)``)."""


def lines_by_place(lines: Sequence[Line]) -> tuple[Places, list[Problem]]:
    """Where a log holds several runs one after the other, the lines of the last: its dumps replaced the others'."""
    spans: dict[tuple[Path, int | None], dict[int | None, list[int]]] = defaultdict(dict)
    for line in lines:
        span = spans[line.path, line.rank].setdefault(line.pid, [line.number, line.number])
        span[0], span[1] = min(span[0], line.number), max(span[1], line.number)
    last: dict[tuple[Path, int | None], int | None] = {}
    problems: list[Problem] = []
    for (path, rank), own in spans.items():
        ordered = sorted(own.items(), key=lambda one: one[1])
        if any(before[1][1] > after[1][0] for before, after in pairwise(ordered)):
            what = _("several processes wrote to this log at once, and to the same dump folders")
            problems.append(Problem("two-writers", ERROR, what, str(path), _("a dump_path for each of them")))
            continue
        last[path, rank] = ordered[-1][0]
        if len(ordered) > 1:
            what = _("the log holds {count} runs; the last one is taken, as its dumps replaced the others'")
            problems.append(Problem("earlier-runs", NOTE, what.format(count=len(ordered)), str(path)))
    places: dict[tuple[str, int | None, int], list[Line]] = defaultdict(list)
    for line in lines:
        if last.get((line.path, line.rank), line.pid) == line.pid:
            places["rank", line.rank, line.step].append(line)
            places["proc", line.pid, line.step].append(line)
    return places, problems


def line_of(folder: Folder, places: Places) -> tuple[Line | None, str]:
    """The line, or why it cannot be told."""
    key = ("rank", folder.rank, folder.step) if folder.rank is not None else ("proc", folder.pid, folder.step)
    found = list(places.get(key, ()))
    if len(found) > 1 and folder.above:  # a folder for each process or phase
        found = [one for one in found if _under(folder, one)] or found
    if len(found) > 1:
        return None, _("{count} lines of the log say that they are this step").format(count=len(found))
    return (found[0] if found else None), ""


def alone(named: Sequence[tuple[Folder, tuple[Line | None, str]]]) -> dict[Path, tuple[Line | None, str]]:
    """By the folder's path. A line tells of one folder: of several that it would fit the one that lies under its own process or
    phase, or none of them."""
    claims: dict[int, list[Folder]] = defaultdict(list)
    for folder, (line, _why) in named:
        if line is not None and folder.state == FILLED:
            claims[id(line)].append(folder)
    out = {}
    for folder, (line, why) in named:
        rivals = claims[id(line)] if line is not None else []
        if line is not None and len(rivals) > 1:
            own = [one for one in rivals if _under(one, line)]
            if own != [folder]:
                text = _("{count} folders are step {step} of one process, and the log has one line for them")
                why = (
                    text.format(count=len(rivals), step=folder.step)
                    if len(own) != 1
                    else _("the log's line is another's")
                )
                line = None
        out[folder.path] = line, why
    return out


def _under(folder: Folder, line: Line) -> bool:
    """Whether one of the folders above bears the line's process or phase, or the name of the folder that its log is in."""
    parts = set(folder.above.split("/")) if folder.above else set()
    return bool(parts & {str(line.pid), str(line.phase), line.path.parent.parent.name})
