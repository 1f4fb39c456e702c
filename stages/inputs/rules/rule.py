"""What a rule is, what it says, and the words that most rules need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from locales import _
from stages.inputs.facts import Found
from stages.inputs.run import Run
from stages.inputs.settings import Scalar
from stages.inputs.shell.expand import ARGUMENTS

PASS, FAIL, UNKNOWN = "PASS", "FAIL", "UNKNOWN"


@dataclass(frozen=True)
class Set:
    """A wish: this setting is to have this value."""

    setting: str
    value: Scalar


@dataclass(frozen=True)
class SetEnv:
    """A wish: this variable is to reach the workers."""

    name: str
    value: str


@dataclass(frozen=True)
class OnPath:
    """A wish: this folder is to come first on PYTHONPATH."""

    folder: str
    name: str = "PYTHONPATH"


Wish = Set | SetEnv | OnPath


@dataclass(frozen=True)
class Verdict:
    """``value`` and ``where``: what was found and its file:line; ``assumes``: variables that were taken as not set."""

    state: str
    reason: str
    value: str | None = None
    where: str | None = None
    wishes: tuple[Wish, ...] = ()
    assumes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Rule:
    """``judge`` gives None where the rule has nothing to say (another framework). ``side``: train, infer or both."""

    id: str
    side: str
    what: str
    why: str
    judge: Callable[[Run], Verdict | None] = field(repr=False)


def passed(reason: str, *found: Found | None) -> Verdict:
    return _verdict(PASS, reason, found)


def failed(reason: str, *found: Found | None, wishes: Sequence[Wish] = ()) -> Verdict:
    verdict = _verdict(FAIL, reason, found)
    return Verdict(FAIL, reason, verdict.value, verdict.where, tuple(wishes), verdict.assumes)


def open_(reason: str, *found: Found | None) -> Verdict:
    """UNKNOWN."""
    return _verdict(UNKNOWN, reason, found)


def _verdict(state: str, reason: str, found: Sequence[Found | None]) -> Verdict:
    given = [one for one in found if one is not None]
    written = [one.written for one in given if one.written and one.entry is not None]
    places = list(dict.fromkeys(one.where for one in given if one.where))
    assumed = frozenset().union(*(one.assumes for one in given))
    defaults = [_("{value} (default)").format(value=one.written) for one in given if one.default and one.written]
    value = ", ".join(dict.fromkeys([*written, *defaults])) or None
    return Verdict(state, reason, value, ", ".join(places) or None, assumes=assumed)


def unknown_of(*found: Found | None) -> Verdict | None:
    """UNKNOWN when one of these settings is; None when all are known."""
    missing = [one for one in found if one is not None and not one.known]
    return open_("; ".join(dict.fromkeys(one.why for one in missing if one.why)), *found) if missing else None


def wants(setting: str, value: Scalar, why: str) -> Callable[[Run], Verdict | None]:
    """A rule that one setting has one value."""

    def judge(run: Run) -> Verdict | None:
        found = run.get(setting)
        if found is None:
            return None
        if not found.known:
            return open_(found.why, found)
        if found.value == value:
            return passed(why, found)
        return failed(why, found, wishes=[Set(setting, value)])

    return judge


def assumed_text(names: frozenset[str]) -> str:
    """What a value rests on, for people."""
    variables = sorted(name for name in names if name != ARGUMENTS)
    parts = []
    if variables:
        parts.append(_("unless {names} is set in the environment").format(names=", ".join(variables)))
    if ARGUMENTS in names:
        parts.append(_("unless the script is given arguments"))
    return "; ".join(parts)
