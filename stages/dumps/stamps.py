"""Whether a file was written to while it was read: what was found of it is then of no run at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from locales import _
from stages.dumps.problem import ERROR, Problem

STILL_WRITTEN = "still-written"


def stamped(files: Iterable[Path]) -> dict[Path, tuple[int, int] | None]:
    """Size and time of change in ns; None where there is no such file."""
    return {file: _stamp(file) for file in files}


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def written_since(stamps: Mapping[Path, tuple[int, int] | None], files: Iterable[Path]) -> Iterator[Problem]:
    """Of the files that were stamped before they were read, those that look otherwise now."""
    for file in sorted(files):
        if file in stamps and stamps[file] != _stamp(file):
            what = _("{name} was written to while it was read").format(name=file.name)
            yield Problem(STILL_WRITTEN, ERROR, what, str(file), _("wait until the run has ended, and verify again"))
