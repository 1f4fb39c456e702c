"""Our own marker comments in a hand-edited file: taken off before it is compared, and read again for the names of the edits."""

from __future__ import annotations

import re

_NAME = rb"import|[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._-]*"
_BEHIND = re.compile(rb"  # probepatch: (%s)(?=\r?$)" % _NAME, re.MULTILINE)
_ALONE = re.compile(rb"[ \t]*# probepatch: (%s)\r?\n" % _NAME)


def without_markers(data: bytes, base: bytes = b"") -> bytes:
    """The file without the markers that ``base`` does not hold as well."""
    if b"# probepatch: " not in data:
        return data
    kept = set(base.splitlines()) if b"# probepatch: " in base else set()
    lines = (line for line in data.splitlines(keepends=True) if not _ALONE.fullmatch(line) or line.rstrip() in kept)
    return b"".join(line if line.rstrip(b"\r\n") in kept else _BEHIND.sub(b"", line) for line in lines)


def marked_lines(data: bytes) -> list[str]:
    """For each line that stays when the markers go: the marker's name, empty without one."""
    found, pending = [], ""
    for line in data.splitlines():
        alone = _ALONE.fullmatch(line + b"\n")
        if alone is not None:
            pending = alone.group(1).decode()
            continue
        behind = _BEHIND.search(line)
        found.append(behind.group(1).decode() if behind else pending)
        pending = ""
    return found
