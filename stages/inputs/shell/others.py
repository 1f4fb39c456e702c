"""Other files that a script sources or starts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from stages.inputs.shell.expand import Expander
from stages.inputs.shell.nodes import Source
from stages.inputs.shell.reading import read_text
from stages.inputs.shell.substitutions import expanded_path
from stages.inputs.shell.values import Arg, Value, text_of

_STARTERS = ("exec", "nohup", "command", "time", "bash", "sh", "/bin/bash", "/bin/sh", "/usr/bin/bash")


def called_script(words: Sequence[Arg]) -> list[Arg]:
    """The script and its arguments, where a command starts one; else nothing."""
    given = list(words)
    while given and given[0].text in _STARTERS:
        given.pop(0)
        while given and (given[0].text or "").startswith("-") and given[0].text not in ("-c", "-lc"):
            given.pop(0)
    return given if given and (given[0].text or "").endswith(".sh") else []


def find_file(value: Value, expander: Expander) -> Source | None:
    """By its path; a relative one counts from the script's own folder where the current one is not known."""
    path, name, own = expanded_path(expander, value), text_of(value), expander.source.path
    if path is None and name is not None and own is not None:
        path = str(own.parent / name)
    if path is None:
        return None
    try:
        file = Path(path)
        return Source(file, read_text(file)) if os.path.isfile(file) else None
    except (OSError, ValueError):
        return None
