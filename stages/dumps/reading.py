"""dump.json, streamed: one entry in memory at a time, whatever the file holds.

msprobe rewrites the whole file at every flush, after a header without entries when the debugger starts; a process that dies in
between leaves the header, half a file, or nothing. What was read before is kept, and the rest is named.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from locales import _, ngettext
from stages.dumps.entry import Entry, make_entry, not_finite
from stages.dumps.problem import ERROR, NOTE, WARNING, Problem
from stages.dumps.streaming import CutError, JsonError, Stream, TooLargeError, open_regular

LARGEST_FILE = 10 << 30  # bytes; msprobe itself reads no larger ones
MOST_ENTRIES = 1_000_000
_FRESH = 60.0  # seconds
_HEAD = ("task", "level", "framework")


@dataclass(frozen=True)
class Dump:
    """``task`` and ``level`` as written: statistics, tensor, structure; L0, L1, mix."""

    path: Path
    task: str | None
    level: str | None
    framework: str | None
    entries: tuple[Entry, ...]
    problems: tuple[Problem, ...]


@dataclass
class _NotFinite:
    """``usual``: Infinity in masks, and in functions, some of which make masks. NaN is not, nor Infinity in a module."""

    count: int = 0
    first: str = ""
    usual: int = 0

    def note(self, entry: str, value: Any) -> None:
        for place, number in not_finite(value, ""):
            if not math.isnan(number) and ("mask" in place or not entry.startswith("Module.")):
                self.usual += 1
                continue
            self.count += 1
            self.first = self.first or f"{entry}.{place}"


@dataclass
class Source:
    """A file being read: ``entries()`` gives them as they come, ``problems`` and ``head`` are complete after the last one."""

    path: Path
    head: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    count: int = 0
    _seen: set[int] = field(default_factory=set)  # hashes: names may be long, and a million
    _twice: str | None = None
    _nan: _NotFinite = field(default_factory=_NotFinite)
    _has_data: bool = False

    def entries(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Name and value of each entry of ``data``; of two with one name, the first. Raises nothing for what a file holds."""
        try:
            with open_regular(self.path) as file:
                size = os.fstat(file.fileno()).st_size
                if not size:
                    self._say("empty-file", ERROR, _("{name} has no bytes"), self._until_when())
                elif size > LARGEST_FILE:
                    self._say("too-large", ERROR, _("{name} is larger than 10 GB"))
                else:
                    yield from self._read(Stream(file))
        except CutError as error:
            what = _("{name} ends after {count} entries, in the middle: {why}")
            self._say("truncated-json", ERROR, what, self._until_when(), why=error.why)
        except TooLargeError as error:
            self._say("too-large", ERROR, _("{name}: after {count} entries, {why}"), why=error.why)
        except JsonError as error:
            what = _("{name} is no JSON after {count} entries: {why}")
            self._say("broken-json", ERROR, what, _("capture again"), why=error.why)
        except OSError as error:
            self._say("unreadable", ERROR, _("{name} cannot be read: {why}"), why=error.strerror or str(error))
        self._summarize()

    def _read(self, stream: Stream) -> Iterator[tuple[str, dict[str, Any]]]:
        if not stream.enter():
            raise JsonError(_("it does not begin with an object"))
        for key in stream.members():
            if key != "data" or self._has_data or not stream.enter():
                value = stream.value()
                if key in _HEAD and isinstance(value, str):
                    self.head.setdefault(key, value[:40])
                elif key == "data" and self._has_data:
                    self._twice = self._twice or key
                continue
            self._has_data = True
            yield from self._data(stream)
        if not stream.done():
            raise JsonError(_("something follows after its end"))

    def _data(self, stream: Stream) -> Iterator[tuple[str, dict[str, Any]]]:
        for name in stream.members():
            value = stream.value()
            self.count += 1
            if self.count > MOST_ENTRIES:
                raise TooLargeError(_("there are more"))
            if stream.constants:
                self._nan.note(name, value)
            if hash(name) in self._seen:
                self._twice = self._twice or name
                continue
            self._seen.add(hash(name))
            if isinstance(value, dict):
                yield name, value

    def _summarize(self) -> None:
        self._seen.clear()
        if self._twice is not None:
            what = _("{name} holds a name twice: {entry}")
            self._say("duplicate-entry", ERROR, what, _("capture again"), entry=said(self._twice))
        self._say_nan()
        if any(one.level == ERROR for one in self.problems):
            return
        if not self._has_data:
            self._say("not-a-dump", ERROR, _("{name} has no `data`: no dump of modules"))
        elif not self.count:
            what = _("{name} has a header and no entries: the debugger was started, and nothing was flushed")
            todo = _("the process ended between start() and stop(), or no hooked module ran: see the log")
            self._say("never-flushed", WARNING, what, todo)

    def _say_nan(self) -> None:
        nan = self._nan
        if nan.count:
            what = ngettext(
                "{name} holds NaN or Infinity, which is no JSON, in {places} place: {place}",
                "{name} holds NaN or Infinity, which is no JSON, in {places} places, the first: {place}",
                nan.count,
            )
            todo = _("is it the model's own value? The readers of other tools may refuse the file")
            self._say("nan-in-json", WARNING, what, todo, places=nan.count, place=said(nan.first))
        elif nan.usual:
            what = _("{name} holds Infinity in the statistics of masks and functions, as usual: {places} places")
            self._say("nan-in-json", NOTE, what, places=nan.usual)

    def _until_when(self) -> str:
        """What to do about a file that is not whole: it may be about to be."""
        try:
            age = time.time() - self.path.stat().st_mtime
        except OSError:
            age = _FRESH
        if age < _FRESH:
            return _("it was written {age:.0f} s ago: wait until the run has ended, and verify again").format(age=age)
        return _("the process was killed while it wrote: capture again")

    def _say(self, name: str, level: str, what: str, todo: str = "", **values: Any) -> None:
        text = what.format(name=said(self.path.name), count=self.count, **values)
        self.problems.append(Problem(name, level, text, str(self.path), todo))


def read_dump(path: Path) -> Dump:
    """All entries of a dump.json, or of the one in a folder. Memory grows with the file; ``outline.py`` needs less."""
    source = Source(path / "dump.json" if path.is_dir() else path)
    entries = tuple(make_entry(name, raw) for name, raw in source.entries())
    head = source.head
    problems = tuple(source.problems)
    return Dump(source.path, head.get("task"), head.get("level"), head.get("framework"), entries, problems)


def said(text: str, limit: int = 160) -> str:
    """A name from a file, fit for one line."""
    shown = "".join(char if char.isprintable() else "?" for char in text[: limit + 1])
    return shown if len(shown) <= limit else f"{shown[:limit]}…"
