"""What was found in a script: its commands, the files it is made of, and what could not be read."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from codemods.errors import FindingError
from locales import _
from stages.inputs.shell.nodes import Simple, Source
from stages.inputs.shell.values import Arg, Value

_LARGEST = 1 << 19  # bytes
_MOST = 2_000_000  # pieces of text that are put together in all


class TooLongError(FindingError):
    """A script that goes on and on."""


@dataclass(frozen=True)
class Command:
    """A command that the script starts. ``env``: what it gets besides the environment of the script. ``maybe``: why it is not
    certain that it is started. ``open``: the arguments of the script come last. ``started``: what was started before it."""

    args: tuple[Arg, ...]
    env: dict[str, Value]
    source: Source
    node: Simple
    maybe: str
    open: bool
    folder: Value
    started: int


@dataclass
class Reading:
    """All that was found in a script. ``notes``: (line, sentence); ``missing``: files that it would go on in, empty where the name
    is not known."""

    commands: list[Command] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    spent: int = 0

    def spend(self, pieces: int, where: str) -> None:
        """Raises TooLongError."""
        self.spent += pieces
        if self.spent > _MOST:
            raise TooLongError(_("the script puts together more than can be followed"), where=where)


def read_text(path: Path) -> str:
    """Raises OSError, ValueError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # never waits for the other end of a pipe
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(_("it is no regular file"))
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError(_("it is larger than {size} bytes").format(size=_LARGEST))
    if b"\0" in data:
        raise ValueError(_("it holds NUL bytes: it is no text"))
    return data.decode("utf-8", "surrogateescape")
