"""Backward entries that a stub round lacks. At an override the gradient ends, so that those of it and of what runs before it are
missing: that is how `load` works, and no sign of a fault."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from locales import _
from stages.dumps.entry import BACKWARD, FORWARD, PARAMETERS, parse_name
from stages.dumps.problem import NOTE, WARNING, Problem


def missing_backward(before: Sequence[str], after: Sequence[str], entries: Sequence[str]) -> Iterator[Problem]:
    """``before``, ``after``: the entries' names of both dumps in their order."""
    there = set(after)
    lacking = [name for name in before if _kind(name) in (BACKWARD, PARAMETERS) and name not in there]
    if not lacking:
        return
    order = {_path(name): number for number, name in enumerate(before) if _kind(name) == FORWARD}
    last = max((order.get(_path(entry), -1) for entry in entries), default=-1)
    inside = tuple(_path(entry) + "." for entry in entries)
    late = [name for name in lacking if order.get(_path(name), -1) > last and not _path(name).startswith(inside)]
    early = [name for name in lacking if name not in set(late)]
    if early:
        what = _("{count} backward entries at and above the override are missing: the gradient ends there ({names})")
        yield Problem("backward-missing", NOTE, what.format(count=len(early), names=_few(early)))
    if late:
        what = _("{count} backward entries after the override are missing, which it does not explain ({names})")
        yield Problem("backward-missing-below", WARNING, what.format(count=len(late), names=_few(late)))


def _kind(name: str) -> str:
    found = parse_name(name)
    return found.kind if found else ""


def _path(name: str) -> str:
    found = parse_name(name)
    return found.path if found else name


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
