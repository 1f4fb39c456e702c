"""A side of the capture and how to reach it: a tested prefix (ssh HOST, docker exec C, conda run -n E) and its interpreter.

Many containers and environments on one host are normal, and the wrong one gives the opposite answer; so every question
about a side goes through here.
"""

from __future__ import annotations

import json
import secrets
import shlex
import subprocess
from dataclasses import dataclass
from typing import Any

from codemods.errors import RefusedError, UsageError
from locales import _
from stages.card.card import Card

TRAIN, INFER = "train", "infer"
_LIMIT = 120.0  # seconds
_LARGEST = 64 << 20  # bytes of an answer


class SideError(RefusedError):
    """The side cannot be reached, or its interpreter does not answer."""


@dataclass(frozen=True)
class Side:
    """``prefix`` goes before every command; ``python`` is the interpreter's name as seen behind it."""

    name: str
    prefix: tuple[str, ...]
    python: str

    @classmethod
    def of(cls, card: Card, name: str) -> Side:
        """Raises UsageError when the interpreter is unknown."""
        python = card.fact(f"{name}.python")
        if python is None:
            raise UsageError(
                _("the interpreter of the {side} side is unknown").format(side=name),
                todo=_("`probepatch task set {side}.python=…` (and {side}.prefix, when it is elsewhere)").format(
                    side=name
                ),
            )
        return cls(name, card.words(f"{name}.prefix"), python)

    @property
    def remote(self) -> bool:
        """Whether the prefix ends in a shell of its own (ssh), which parses the words again."""
        return bool(self.prefix) and self.prefix[0].rpartition("/")[2] == "ssh"

    def command(self, *words: str) -> list[str]:
        """The words behind the prefix, quoted once more where a shell on the other end parses them."""
        return [*self.prefix, *((shlex.quote(word) for word in words) if self.remote else words)]

    def run(self, *words: str, given: bytes = b"", limit: float = _LIMIT) -> subprocess.CompletedProcess[bytes]:
        """Run a command on the side. Raises SideError when it does not start or end."""
        command = self.command(*words)
        try:
            return subprocess.run(command, input=given, capture_output=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired as error:
            raise SideError(
                _("{command} gave no answer in {limit:.0f} s").format(command=shlex.join(command[:6]), limit=limit)
            ) from error
        except (OSError, ValueError) as error:
            raise SideError(
                _("{command} does not run").format(command=shlex.join(command[:6])), why=str(error)
            ) from error

    def ask(self, script: str, given: Any = None, limit: float = _LIMIT) -> Any:
        """The JSON value that ``script`` passes to ``answer(value)``. It runs in the side's interpreter, from standard input, with
        ``GIVEN`` as the value handed over; whatever else it prints is ignored. Raises SideError."""
        mark = secrets.token_hex(16)
        head = (
            "import json as _json, sys as _sys\n"
            f"GIVEN = _json.loads({json.dumps(json.dumps(given))})\n"
            f"def answer(value): print('\\n{mark}' + _json.dumps(value), flush=True)\n"
        )
        done = self.run(self.python, "-", given=(head + script).encode(), limit=limit)
        for line in reversed(done.stdout[:_LARGEST].split(b"\n")):
            if line.startswith(mark.encode()):
                try:
                    return json.loads(line[len(mark) :])
                except (ValueError, RecursionError):
                    break
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
        raise SideError(
            _("the interpreter of the {side} side does not answer: {command}").format(
                side=self.name, command=shlex.join([*self.prefix, self.python])
            ),
            why="".join(c if c.isprintable() else "?" for c in said[-1][:300]) if said else None,
            todo=_("`probepatch task set {side}.prefix=… {side}.python=…`").format(side=self.name),
        )
