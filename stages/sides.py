"""A side of the capture and how to reach it: a tested prefix (ssh HOST, docker exec C, conda run -n E) and its interpreter.

Many containers and environments on one host are normal, and the wrong one gives the opposite answer; so every question
about a side goes through here.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import shlex
import subprocess
import zlib
from dataclasses import dataclass
from typing import Any

from codemods.errors import RefusedError, UsageError
from locales import _
from stages.card.card import Card
from stages.card.credentials import without_secrets
from stages.running import TooMuchError, run

TRAIN, INFER = "train", "infer"
_LIMIT = 120.0  # seconds
_LARGEST = 128 << 20  # bytes of an answer: the packed copy of a source tree is one
_LONGEST = 100_000  # characters of an argument; Linux takes 131071
_SHELLS = ("sh", "bash", "zsh", "dash", "ash", "ksh", "su", "runuser")
_WITH_VALUE = "BbcDEeFIiJLlmOoPpQRSWw"  # options of ssh that take a word


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

    def command(self, *words: str) -> list[str]:
        """The words behind the prefix, quoted for every shell that parses them on their way: one that ends the prefix with ``-c``
        takes them as one word, and each ssh in it joins them and hands them to a shell on the other end."""
        out = list(words)
        if _ends_in_shell(self.prefix):
            out = [shlex.join(out)]
        for _each in range(_connections(self.prefix)):
            out = [shlex.quote(word) for word in out]
        return [*self.prefix, *out]

    def run(self, *words: str, given: bytes = b"", limit: float = _LIMIT) -> subprocess.CompletedProcess[bytes]:
        """Run a command on the side. Raises SideError when it does not start or end."""
        shown = without_secrets(shlex.join([*self.prefix, *words][:8]))
        try:
            return run(self.command(*words), given, limit, _LARGEST)
        except subprocess.TimeoutExpired as error:
            raise SideError(
                _("{command} gave no answer in {limit:.0f} s").format(command=shown, limit=limit),
                todo=_("run it by hand: it may wait for a password, a host key or a lock"),
            ) from error
        except TooMuchError as error:
            raise SideError(
                _("{command} says more than {size} bytes").format(command=shown, size=_LARGEST),
                todo=_("run it by hand; a prefix has to be quiet"),
            ) from error
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise SideError(_("{command} does not run").format(command=shown), why=why) from error

    def ask(self, script: str, given: Any = None, limit: float = _LIMIT) -> Any:
        """The JSON value that ``script`` passes to ``answer(value)``. It runs in the side's interpreter, from standard input, with
        ``GIVEN`` as the value handed over; whatever else it prints is ignored. Where standard input does not get through (docker
        exec without -i, conda run, ssh -n), it goes as an argument. Raises SideError."""
        mark = secrets.token_hex(16)
        head = (
            "import json as _json, sys as _sys\n"
            f"GIVEN = _json.loads({json.dumps(json.dumps(given))})\n"
            f"def answer(value): print('\\n{mark}' + _json.dumps(value), flush=True)\n"
        )
        source = (head + script).encode()
        done = self.run(self.python, "-", given=source, limit=limit)
        told = _told(done.stdout, mark)
        packed = base64.b64encode(zlib.compress(source)).decode()
        if told is None and done.returncode == 0 and len(packed) < _LONGEST:
            unpack = f"exec(__import__('zlib').decompress(__import__('base64').b64decode('{packed}')))"
            done = self.run(self.python, "-c", unpack, limit=limit)
            told = _told(done.stdout, mark)
        if told is not None:
            return told[0]
        said = [line for line in (done.stderr or done.stdout).decode("utf-8", "replace").splitlines() if line.strip()]
        raise SideError(
            _("the interpreter of the {side} side does not answer: {command}").format(
                side=self.name, command=without_secrets(shlex.join([*self.prefix, self.python]))
            ),
            why=_clean(said[-1]) if said else _("exit code {code}, without a word").format(code=done.returncode),
            todo=_("`probepatch task set {side}.prefix=… {side}.python=…`").format(side=self.name),
        )


def _told(output: bytes, mark: str) -> tuple[Any] | None:
    """The answer after the mark, in a tuple of its own, as it may be null."""
    for line in reversed(output.split(b"\n")):
        if line.startswith(mark.encode()):
            try:
                return (json.loads(line[len(mark) :]),)
            except (ValueError, RecursionError):
                return None
    return None


def _clean(line: str) -> str:
    return without_secrets("".join(c if c.isprintable() else "?" for c in line.strip()[:300]))


def _ends_in_shell(prefix: tuple[str, ...]) -> bool:
    """``docker exec C bash -lc``, ``su USER -c``: the next word alone is the command."""
    named = any(word.rpartition("/")[2] in _SHELLS for word in prefix[:-1])
    return named and re.fullmatch(r"-[a-z]*c|--command", prefix[-1]) is not None


def _connections(prefix: tuple[str, ...]) -> int:
    """How many times ssh is called; its options and the host's name are no call."""
    count, at = 0, 0
    while at < len(prefix):
        at += 1
        if prefix[at - 1].rpartition("/")[2] != "ssh":
            continue
        count += 1
        while at < len(prefix) and prefix[at].startswith("-"):
            at += 2 if prefix[at][-1] in _WITH_VALUE and len(prefix[at]) == 2 else 1
        at += 1
    return count
