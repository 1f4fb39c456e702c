"""What msprobe said about the override in a run's log: lines that mean it did not take effect, and those that mean it did."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from codemods.errors import UsageError
from locales import _
from stages.dumps.problem import ERROR, NOTE, WARNING, Problem
from stages.dumps.streaming import open_regular
from stages.stub.manifest import Manifest

_LONGEST = 1 << 16  # bytes of a line that are looked at
_ANSI = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
_MARK = b"[load]"
_MOST = 20  # problems of a kind
_SAID = {
    "never-matched": re.compile(r"configured but never matched during this step: \[(?P<it>.*)\]"),
    "source-missing": re.compile(r"source data missing: (?P<it>.+?\.pt)\b"),
    "invalid-module": re.compile(r"invalid module: (?P<it>\S+)"),
    "tensor-mismatch": re.compile(r"tensor mismatch for (?P<it>\S+):"),
    "load-failed": re.compile(r"failed to load (?P<it>.+?\.pt): "),
    "no-process-folder": re.compile(r"no proc\* directory found in (?P<it>\S+?)\.? "),
}
_VALID = re.compile(r"module validation: (\d{1,9})/(\d{1,9}) modules valid")
_DONE = re.compile(r"override (?P<it>\S+) <- ")
_NAME = re.compile(r"Module\.[^'\",\s]+")


@dataclass
class Log:
    """``confirmed``: slots (ENTRY.input.0) that a debug line says were overridden; ``validated``: (valid, all) of the entries;
    ``lines``: how many were about the override."""

    problems: list[Problem] = field(default_factory=list)
    confirmed: set[str] = field(default_factory=set)
    validated: tuple[int, int] | None = None
    lines: int = 0


def read_log(path: Path, manifest: Manifest) -> Log:
    """Streams the file. Raises UsageError."""
    log = Log()
    counts: dict[tuple[str, str], int] = {}
    try:
        with open_regular(path) as file:
            for number, line in _lines(file):
                text = _ANSI.sub(b"", line).decode("utf-8", "replace").strip()
                log.lines += 1
                _confirmations(text, log)
                for one in _problems(text, f"{path}:{number}", manifest):
                    key = one.name, one.level
                    counts[key] = counts.get(key, 0) + 1
                    if counts[key] <= _MOST:
                        log.problems.append(one)
    except OSError as error:
        raise UsageError(_("{path} cannot be read").format(path=path), why=error.strerror or str(error)) from error
    return log


def _lines(file: io.RawIOBase | object) -> Iterator[tuple[int, bytes]]:
    """Those that have msprobe's mark, numbered; of an endless line its beginning."""
    assert isinstance(file, io.RawIOBase)
    buffered = io.BufferedReader(file, 1 << 20)
    number, beginning = 0, True
    while line := buffered.readline(_LONGEST):
        number += beginning
        if beginning and _MARK in line:
            yield number, line
        beginning = line.endswith(b"\n")


def _confirmations(text: str, log: Log) -> None:
    valid, done = _VALID.search(text), _DONE.search(text)
    if valid:
        log.validated = int(valid[1]), int(valid[2])
    if done:
        log.confirmed.add(done["it"])


def _problems(text: str, where: str, manifest: Manifest) -> Iterator[Problem]:
    for name, form in _SAID.items():
        match = form.search(text)
        if match:
            yield _judged(name, match["it"], where, manifest)


def _judged(name: str, it: str, where: str, manifest: Manifest) -> Problem:
    if name == "source-missing":
        return _source_missing(it, where, manifest)
    if name == "never-matched":
        names = _NAME.findall(it)
        ours = [one for one in names if one in set(manifest.entries)]
        what = _("msprobe never matched: {names}").format(names=_few(ours or names))
        return Problem(name, ERROR if ours else WARNING, what, where)
    if name == "invalid-module":
        # only rank 0 looks, and with pipeline parallelism it need not have the module
        elsewhere = manifest.ranks is not None and 0 not in manifest.ranks
        what = _("msprobe found no such module: {name}").format(name=it[:240])
        return Problem(name, NOTE if elsewhere else ERROR, what, where)
    if name == "tensor-mismatch":
        what = _("what was prepared has another shape or dtype than the input: {slot}").format(slot=it[:240])
        todo = _("in this run the module got another input than in the target's last dump")
        return Problem(name, ERROR, what, where, todo)
    if name == "load-failed":
        return Problem(name, ERROR, _("msprobe could not open {path}").format(path=it[-240:]), where)
    return _no_process_folder(it, where, manifest)


def _no_process_folder(path: str, where: str, manifest: Manifest) -> Problem:
    """In a step that is not dumped msprobe looks as well, and before the first one that is in ``stepNone``."""
    name = "no-process-folder"
    if path.rpartition("/")[2] != f"step{manifest.step}":
        return Problem(
            name,
            NOTE,
            _("nothing was overridden in another step, as it should be: {path}").format(path=path[-240:]),
            where,
        )
    what = _("the target ran without a group, and nothing is prepared for that: {path}").format(path=path[-240:])
    return Problem(name, ERROR, what, where, _("run it as in its last dump"))


def _source_missing(path: str, where: str, manifest: Manifest) -> Problem:
    """Arguments that the instruction does not name, and other steps, keep their values as intended."""
    prepared = {one.path for one in manifest.files}
    end = "/".join(path.split("/")[-4:])
    if end in prepared:
        what = _("msprobe did not find what was prepared: {path}").format(path=end)
        return Problem("source-missing", ERROR, what, where)
    names = {one.rpartition("/")[2] for one in prepared}
    if end.rpartition("/")[2] in names and end.startswith(f"step{manifest.step}/"):
        what = _("msprobe looked for {path}, where nothing was prepared").format(path=end)
        return Problem(
            "source-missing", ERROR, what, where, _("run the target as in its last dump, with the same ranks")
        )
    return Problem("source-missing", NOTE, _("kept its own value, as it should: {path}").format(path=end), where)


def _few(names: list[str]) -> str:
    return ", ".join(one[:240] for one in names[:4]) + (" …" if len(names) > 4 else "")
