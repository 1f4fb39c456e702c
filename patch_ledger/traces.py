"""Whether anything of an edit is left in a file in which its text does not stand any more."""

from __future__ import annotations

import re
from collections import Counter

from codemods.splice import PlannedEdit, Splice

_NAME = re.compile(rb"[A-Za-z_]\w{2,}")


def is_gone(splice: Splice, base: bytes, rest: bytes, stretch: bytes) -> bool:
    """Whether nothing of a splice's text is left where it stood (``stretch``), nor all of it anywhere else.

    ``rest`` is the file without the edits that could be taken out.
    """
    text = splice.inserted.strip()
    if text and rest.count(text) > base.count(text):
        return False
    ours = _names(splice.inserted) - _names(base)
    if ours:
        return not ours & _names(stretch)
    removed = splice.removed.strip()
    return removed in stretch if removed else not stretch.strip()


def is_left(edit: PlannedEdit, base: bytes, rest: bytes) -> bool:
    """Whether a line of the edit, at any indentation, or its mark stands in ``rest`` more often than in the base."""
    mark = re.compile(rb"probepatch: " + re.escape(edit.name.encode()) + rb"(?![\w-])")
    if len(mark.findall(rest)) > len(mark.findall(base)):
        return True
    text = b"\n".join(splice.inserted for splice in edit.splices)
    ours = _names(text) - _names(base)
    lines = {line.strip() for line in text.split(b"\n") if _names(line) & (ours or _names(line))}
    before, after = _lines(base), _lines(rest)
    return any(after[line] > before[line] for line in lines)


def _names(data: bytes) -> set[bytes]:
    return set(_NAME.findall(data))


def _lines(data: bytes) -> Counter[bytes]:
    return Counter(line.strip() for line in data.split(b"\n"))
