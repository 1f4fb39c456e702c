"""What stands for the contents of a file of weights that is too large to be hashed whole: its size, its time, and slices of it."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path
from typing import Any

SMALL = 16 << 20  # bytes; what is smaller is hashed whole
_SLICES, _SLICE = 64, 1 << 16  # how many, and bytes of each


def fingerprint(path: Path) -> dict[str, Any]:
    """``bytes``, ``mtime_ns`` and, of a large file, ``sample``: the SHA-256 of slices from its beginning to its end, which no copy
    with the old time passes. All None for what cannot be read."""
    try:
        status = path.stat()
        large = stat.S_ISREG(status.st_mode) and status.st_size > SMALL
        sample = _sample(path, status.st_size) if large else None
    except (OSError, ValueError):
        return {"bytes": None, "mtime_ns": None, "sample": None}
    return {"bytes": status.st_size, "mtime_ns": status.st_mtime_ns, "sample": sample}


def _sample(path: Path, size: int) -> str:
    sha = hashlib.sha256()
    with path.open("rb") as file:
        for number in range(_SLICES):
            file.seek((size - _SLICE) * number // (_SLICES - 1))
            sha.update(file.read(_SLICE))
    return sha.hexdigest()
