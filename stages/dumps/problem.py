"""What was found in a dump or beside it, by a name that stays the same from version to version."""

from __future__ import annotations

from dataclasses import dataclass

ERROR, WARNING, NOTE = "error", "warning", "note"


@dataclass(frozen=True)
class Problem:
    """``name``: kebab-case, stable; ``level``: error, warning or note; ``what`` and ``todo``: a sentence each;
    ``where``: a path, with ``:line`` where there is one."""

    name: str
    level: str
    what: str
    where: str = ""
    todo: str = ""
