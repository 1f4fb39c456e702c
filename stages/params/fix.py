"""One instruction as edits of one file: a key of a config, a flag of a launch script, or a name in a bridge."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from codemods.errors import FindingError
from codemods.splice import PlannedEdit, Splice, render
from locales import _
from stages.inputs.fix import put
from stages.inputs.run import Known, parse
from stages.params.actions import Action
from stages.params.keys import NotSettableError, set_key
from stages.params.renaming import find_places, prove

RECIPE = "params-fix"
CONFIGS = (".json", ".yaml", ".yml")


@dataclass(frozen=True)
class Planned:
    """``edits`` in offsets of the file without our edits; none where it is as it should be. ``notes`` for the user."""

    edits: tuple[PlannedEdit, ...]
    notes: tuple[str, ...] = ()


def plan_action(action: Action, base: bytes, known: Known) -> Planned:
    """Raises FindingError, RefusedError, ConfigError."""
    suffix = action.file.suffix.lower()
    if action.rename is not None:
        if suffix != ".py":
            raise NotSettableError(
                _("{path} is no Python source: a `rename` is of a bridge").format(path=action.file.name),
                where=str(action.file),
            )
        return _renamed(action, base, *action.rename)
    if suffix == ".py":
        raise NotSettableError(
            _("{path} is a program, not a config").format(path=action.file.name),
            where=str(action.file),
            todo=_("method code: `rename` or `recipe` in the instruction"),
        )
    if suffix in CONFIGS:
        return _key_set(action, base)
    if not isinstance(action.value, (bool, int, float, str)):
        raise NotSettableError(
            _("{key}: a launch script takes a number, a flag or a text").format(key=action.key), where=str(action.file)
        )
    script = parse(action.file, base.decode("utf-8", "surrogateescape"), known)
    return Planned(put(script, known, action.key, action.value, RECIPE))


def _key_set(action: Action, base: bytes) -> Planned:
    try:
        text = base.decode("utf-8")
    except UnicodeDecodeError as error:
        what = _("{path} is no UTF-8 text").format(path=action.file.name)
        raise FindingError(what, where=str(action.file)) from error
    change = set_key(action.file, text, action.key, action.value)
    if change is None:
        return Planned(())
    start, removed = len(text[: change.start].encode()), text[change.start : change.end].encode()
    why = _("{point}: {key} = {value}").format(point=action.point, key=action.key, value=change.new.strip()[:80])
    name = f"{_slug(action.file.name)}-{_slug(action.key)}"
    return Planned((_edit(name, Splice(start, removed, change.new.encode()), base, why, 0),))


def _renamed(action: Action, base: bytes, old: str, new: str) -> Planned:
    found = find_places(action.file, base, old, new)
    why = _("{point}: {old} is no field of the provider, {new} is").format(point=action.point, old=old, new=new)
    name = f"{_slug(action.file.name)}-{_slug(old)}"
    edits = tuple(
        _edit(f"{name}-{number}", Splice(place.start, old.encode(), new.encode()), base, why, number)
        for number, place in enumerate(found.places, 1)
    )
    prove(action.file, base, render(base, edits), old, new)
    text = _("{name} is only read in line {lines}, of something else: it stays there")
    lines = ", ".join(map(str, found.kept[:8]))
    return Planned(edits, (text.format(name=old, lines=lines),) if found.kept else ())


def _edit(name: str, splice: Splice, base: bytes, why: str, number: int) -> PlannedEdit:
    digest = hashlib.sha256(b"\0".join([RECIPE.encode(), name.encode(), splice.removed, splice.inserted])).hexdigest()
    line = base.count(b"\n", 0, splice.start) + 1
    return PlannedEdit(RECIPE, name, digest, (1, number), line=line, why=why, splices=(splice,))


def _slug(text: str) -> str:
    words = "".join(c.lower() if c.isascii() and c.isalnum() else "-" for c in text)
    return "-".join(part for part in words.split("-") if part) or "x"


def joined(kept: Sequence[PlannedEdit], new: Sequence[PlannedEdit]) -> tuple[PlannedEdit, ...]:
    """Earlier edits and new ones: of one place the newer."""
    places = {(splice.start, splice.end) for edit in new for splice in edit.splices if splice.removed}
    ids = {edit.id for edit in new}
    stay = [
        edit
        for edit in kept
        if edit.id not in ids and not any((splice.start, splice.end) in places for splice in edit.splices)
    ]
    return (*stay, *new)
