"""A job's log, line by line: bounded, without colours, and with what a progress bar wrote over as lines of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

LONGEST = 1 << 18
"""Bytes; a longer line comes in pieces."""
_COLOUR = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def log_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number from 1 and text. Bytes that are no UTF-8 are replaced. Raises OSError."""
    with path.open("rb") as file:
        number = 1
        while piece := file.readline(LONGEST):
            text = _COLOUR.sub("", piece.decode("utf-8", errors="replace"))
            for part in text.split("\r"):
                if part.strip():
                    yield number, part.rstrip("\n")
            number += piece.endswith(b"\n")
