"""The folders of a dump as they are found: ``step0/rank0``, ``step0/proc123``, ``step_0/rank_0``, and whatever is above them.

A folder per process (``123/step0/rank0``), per phase (``update_actor/step0/rank0``) or per profile step may lie in between.
Links are not followed.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from locales import _, ngettext
from stages.dumps.problem import ERROR, NOTE, WARNING, Problem
from stages.dumps.reading import said
from stages.dumps.streaming import open_regular

FILLED, EMPTY, WITHOUT = "filled", "empty", "without"
_STEP = re.compile(r"step_?(\d{1,9})")
_PROCESS = re.compile(r"(rank|proc)_?(\d{1,9})")
_TENSORS = "dump_tensor_data"
_DEEPEST = 8
_MOST = 200_000  # folders looked at
_HEADER = 4096  # bytes: a dump.json that holds no entry is smaller
Key = TypeVar("Key")


@dataclass(frozen=True)
class Folder:
    """The dump of one process at one step. ``above``: the folders between the dump path and the step. ``state``: filled; empty
    (its dump.json has no entry, or no byte); without (no dump.json)."""

    path: Path
    step: int
    rank: int | None
    pid: int | None
    above: str = ""
    state: str = FILLED

    @property
    def dump(self) -> Path:
        return self.path / "dump.json"

    @property
    def process(self) -> str:
        """``rank0`` or ``proc123``."""
        return f"rank{self.rank}" if self.rank is not None else f"proc{self.pid}"


def find_folders(dump_path: Path) -> tuple[tuple[Folder, ...], tuple[Problem, ...]]:
    """All of them, by what is above, step and process; a step folder or a process's own may be given as well."""
    problems: list[Problem] = []
    found = list(_within(dump_path, problems))
    found.sort(key=lambda one: (one.above, one.step, one.rank is None, one.rank or 0, one.pid or 0))
    if not found:
        problems.append(_nothing(dump_path))
    for group in _by(found, lambda one: one.above).values():
        problems += _gaps(group)
        if len(found) > 1:
            problems += _unequal(group)
    return tuple(found), tuple(problems)


def _within(given: Path, problems: list[Problem]) -> Iterator[Folder]:
    try:
        root = given.resolve(strict=True)
    except (OSError, RuntimeError):
        return
    own = _STEP.fullmatch(root.parent.name)
    if own and _PROCESS.fullmatch(root.name):
        yield _folder(root, int(own[1]), "")
        return
    own = _STEP.fullmatch(root.name)
    waiting: list[tuple[Path, int, int | None, str]] = [(root, 0, int(own[1]) if own else None, "")]
    looked = 0
    while waiting:
        path, depth, step, above = waiting.pop()
        looked += 1
        if looked > _MOST:
            problems.append(Problem("too-many-folders", ERROR, _("there are too many folders"), str(root)))
            return
        names = _folders_in(path, problems)
        if step is not None and not names:
            what = _("{name} is empty: no process left a folder in it").format(name=said(path.name))
            problems.append(Problem("empty-step", WARNING, what, str(path)))
        for name in names:
            place = path / name
            if step is not None and _PROCESS.fullmatch(name):
                yield _folder(place, step, above)
                continue
            match = _STEP.fullmatch(name)
            if not match and name.lower().startswith("step"):
                what = _("{name} is no step folder of msprobe's, and was not looked into").format(name=said(name))
                problems.append(Problem("odd-folder", NOTE, what, str(place)))
            elif depth < _DEEPEST:
                under = above if step is None else f"{above}/{path.name}".lstrip("/")
                under = under if match else f"{under}/{name}".lstrip("/")
                waiting.append((place, depth + 1, int(match[1]) if match else None, under))


def _folders_in(path: Path, problems: list[Problem]) -> list[str]:
    """Names of the folders in it but those of tensors; links are left out and told."""
    found = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name == _TENSORS:
                    continue
                if entry.is_symlink():
                    if entry.is_dir() or _STEP.fullmatch(entry.name) or _PROCESS.fullmatch(entry.name):
                        what = _("{name} is a link, and was not followed").format(name=said(entry.name))
                        problems.append(Problem("link", WARNING, what, entry.path, _("give the folder it leads to")))
                elif entry.is_dir(follow_symlinks=False):
                    found.append(entry.name)
    except OSError as error:
        what = _("{name} cannot be read: {why}").format(name=said(path.name), why=error.strerror)
        problems.append(Problem("unreadable", ERROR, what, str(path)))
    return sorted(found)


def _folder(path: Path, step: int, above: str) -> Folder:
    match = _PROCESS.fullmatch(path.name)
    kind, number = (match[1], int(match[2])) if match else ("proc", 0)
    rank, pid = (number, None) if kind == "rank" else (None, number)
    return Folder(path, step, rank, pid, above, _state(path / "dump.json"))


def _state(dump: Path) -> str:
    """A look at the file's beginning, if it is as small as a header; a link is no dump."""
    try:
        if dump.is_symlink() or not dump.exists():
            return WITHOUT
        with open_regular(dump) as file:
            head = file.read(_HEADER + 1)
    except OSError:
        return FILLED  # whoever reads it says why it cannot be read
    if len(head) > _HEADER:
        return FILLED
    try:
        read = json.loads(head) if head else {"data": {}}
    except (ValueError, RecursionError):
        return FILLED
    return EMPTY if isinstance(read, dict) and read.get("data") == {} else FILLED


def _by(folders: Iterable[Folder], key: Callable[[Folder], Key]) -> dict[Key, list[Folder]]:
    groups: dict[Key, list[Folder]] = defaultdict(list)
    for one in folders:
        groups[key(one)].append(one)
    return groups


def _gaps(group: list[Folder]) -> Iterator[Problem]:
    """What has no entries: usual at the end of a process's steps, a loss before or without others."""
    for own in _by(group, lambda one: one.process).values():
        last = max((one.step for one in own if one.state == FILLED), default=-1)
        for one in own:
            name = f"step{one.step}/{one.process}"
            if one.state == WITHOUT:
                what = _("{name} has no dump.json").format(name=name)
                todo = _("level debug, and tasks that check, write none")
                yield Problem("no-dump-json", ERROR, what, str(one.path), todo)
            elif one.state == EMPTY and one.step > last >= 0:
                what = _("{name} is the last step and empty: it was started and never flushed").format(name=name)
                yield Problem("trailing-step-empty", NOTE, what, str(one.path))
            elif one.state == EMPTY:
                what = _("{name} is empty: its forward ran no hooked module, or ended with an error").format(name=name)
                todo = _("see the log of that process; graphs and compiled models pass hooks by")
                yield Problem("empty-step", ERROR, what, str(one.path), todo)


def _unequal(group: list[Folder]) -> Iterator[Problem]:
    """Ranks that are missing at a step where others are; both kinds of folder in one step."""
    ranks = {one.rank for one in group if one.rank is not None}
    absent = (
        [str(one) for one in range(max(ranks, default=-1) + 1) if one not in ranks][:8] if len(ranks) < 1000 else []
    )
    if absent:
        what = _("no folder of rank {ranks}, but of rank {last}").format(ranks=", ".join(absent), last=max(ranks))
        where = str(group[0].path.parent.parent)
        yield Problem("rank-missing", WARNING, what, where, _("is `rank` of msprobe's config a list?"))
    for step, own in _by(group, lambda one: one.step).items():
        here = {one.rank for one in own if one.rank is not None}
        without = len(ranks) - len(here)
        if here and without:
            what = ngettext(
                "step{step} has no folder of {count} rank that other steps have",
                "step{step} has no folder of {count} ranks that other steps have",
                without,
            ).format(step=step, count=without)
            yield Problem("ranks-differ", WARNING, what, str(own[0].path.parent))
        if here and any(one.pid is not None for one in own):
            what = _("step{step} has folders by rank and by process").format(step=step)
            todo = _(
                "a debugger was started before torch.distributed, or another job wrote here: empty the folder first"
            )
            yield Problem("ranks-and-processes", WARNING, what, str(own[0].path.parent), todo)


def _nothing(dump_path: Path) -> Problem:
    path = said(str(dump_path), 300)
    if not dump_path.exists():
        what = _("there is no {path}: nothing was dumped").format(path=path)
    else:
        what = _("there is no dump in {path}: no step folder with a rank or a process in it").format(path=path)
    return Problem("no-dump", ERROR, what, str(dump_path))
