"""What a script lost or changed against the one that works: flag by flag, variable by variable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stages.inputs.entries import Entry
from stages.inputs.facts import no
from stages.inputs.run import Run
from stages.inputs.settings import SETTINGS

LOST, CHANGED, ADDED = "lost", "changed", "added"


@dataclass(frozen=True)
class Difference:
    """``kind``: lost, changed or added; ``wanted``: a rule asks for it."""

    kind: str
    name: str
    before: str | None
    after: str | None
    where: str | None
    wanted: bool


def differences(base: Run, run: Run) -> list[Difference]:
    """Of the arguments, then of the runtime environment's variables."""
    return [*_arguments(base, run), *_variables(base, run)]


def _arguments(base: Run, run: Run) -> Iterator[Difference]:
    old, new = _last(base), _last(run)
    judged = _judged(run)
    for name in [*old, *(name for name in new if name not in old)]:
        before, after = old.get(name), new.get(name)
        if before is not None and after is not None and _same(before, after):
            continue
        kind = LOST if after is None else ADDED if before is None else CHANGED
        place = after or before
        assert place is not None
        yield Difference(
            kind,
            name,
            before.written if before is not None else None,
            after.written if after is not None else None,
            place.where,
            name in judged,
        )


def _last(run: Run) -> dict[str, Entry]:
    return {one.name: one for one in run.facts.entries}


def _same(a: Entry, b: Entry) -> bool:
    return a.written == b.written and bool(a.maybe) == bool(b.maybe)


def _judged(run: Run) -> set[str]:
    """The arguments that a rule may ask to be changed."""
    keys = (run.facts.key(name) for name in SETTINGS)
    return {name for key in keys if key is not None for name in (key.name, no(key.name), *key.also)}


def _variables(base: Run, run: Run) -> Iterator[Difference]:
    old, new = base.runtime_env(), run.runtime_env()
    before = {one.name: one.text for one in old.env_vars.members} if old is not None and old.env_vars else {}
    after = {one.name: one.text for one in new.env_vars.members} if new is not None and new.env_vars else {}
    for name in [*before, *(name for name in after if name not in before)]:
        if before.get(name) == after.get(name):
            continue
        kind = LOST if name not in after else ADDED if name not in before else CHANGED
        yield Difference(kind, f"env_vars.{name}", before.get(name), after.get(name), run.where, kind == ADDED)
