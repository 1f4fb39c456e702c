"""A program's arguments as named settings, each with its value and the place where it was written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stages.inputs.launch import VERL, Launch, after
from stages.inputs.shell.values import Arg, Value, assumptions, shown, text_of, why_unknown

_OVERRIDE = re.compile(r"(\+\+|\+|~)?([A-Za-z_][\w.@/\-]*)(=)?")


@dataclass(frozen=True)
class Entry:
    """One flag or override. ``name`` without its prefix (``+``); ``value`` None for a flag without one.

    ``arg`` holds the name, ``values`` the arguments behind it (none when the value is in ``arg``). ``maybe`` as of
    :class:`Arg`. ``where`` is file:line.
    """

    name: str
    value: Value | None
    arg: Arg | None
    values: tuple[Arg, ...] = ()
    prefix: str = ""
    maybe: str = ""
    where: str | None = None

    @property
    def text(self) -> str | None:
        """The value; None when it is unknown, or there is none."""
        return text_of(self.value) if self.value is not None else None

    @property
    def known(self) -> bool:
        return not self.maybe and (self.value is None or text_of(self.value) is not None)

    @property
    def why(self) -> str:
        return self.maybe or (why_unknown(self.value) if self.value is not None else "")

    @property
    def assumes(self) -> frozenset[str]:
        return assumptions(self.value) if self.value is not None else frozenset()

    @property
    def written(self) -> str:
        """As people would write it, on one line."""
        value = "" if self.value is None else " ".join(shown(self.value).split())
        if self.arg is not None and not self.values and self.value is not None:
            return f"{self.prefix}{self.name}={value}"
        return f"{self.name} {' '.join(shown(one.value) for one in self.values)}".strip()


def entries(launch: Launch) -> tuple[Entry, ...]:
    """In order; of two of one name the later one holds."""
    return tuple(_overrides(launch.args) if launch.framework == VERL else _flags(launch.args))


def _flags(args: Sequence[Arg]) -> Iterator[Entry]:
    at = 0
    while at < len(args):
        arg, text = args[at], shown(args[at].value)
        at += 1
        if not text.startswith("--"):
            continue
        name, equals, _value = text.partition("=")
        if equals:
            yield Entry(name, after(arg.value, len(name) + 1), arg, maybe=arg.maybe, where=arg.where)
            continue
        begin = at
        while at < len(args) and not shown(args[at].value).startswith("--"):
            at += 1
        values = tuple(args[begin:at])
        maybe = arg.maybe or next((one.maybe for one in values if one.maybe), "")
        yield Entry(name, values[0].value if values else None, arg, values, maybe=maybe, where=arg.where)


def _overrides(args: Sequence[Arg]) -> Iterator[Entry]:
    """hydra: ``key=value``, ``+key=value``, ``++key=value``, ``~key``; and its own ``--config-name X``."""
    at = 0
    while at < len(args):
        arg, text = args[at], shown(args[at].value, "\0")
        at += 1
        if text.startswith("-"):
            name, equals, _value = text.partition("=")
            if equals:
                yield Entry(name, after(arg.value, len(name) + 1), arg, maybe=arg.maybe, where=arg.where)
            elif at < len(args):
                yield Entry(name, args[at].value, arg, (args[at],), maybe=arg.maybe, where=arg.where)
                at += 1
            continue
        found = _OVERRIDE.match(text)
        if found is None:
            continue
        prefix, name = found.group(1) or "", found.group(2)
        value = after(arg.value, found.end()) if found.group(3) else None
        yield Entry(name, value, arg, prefix=prefix, maybe=arg.maybe, where=arg.where)
