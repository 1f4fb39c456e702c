"""msprobe's config of each side: made for the job's world size, and shown to the msprobe that is installed there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codemods.errors import FindingError, RefusedError, UsageError
from locales import _
from stages.card.card import Card
from stages.card.evidence import evidence
from stages.card.order import INPUTS
from stages.instrument.asking import ask
from stages.instrument.probes.accept import mark
from stages.sides import Side

_LIMIT = 300.0  # seconds: a first import of torch from a cold disk is slow


class ConfigRefusedError(FindingError):
    """The side's msprobe does not take the config, or cannot be imported."""


class DumpPathError(RefusedError):
    """Something is at the dump_path already, or the side does not see the artefact root."""


@dataclass(frozen=True)
class Shown:
    """What the side's interpreter said of a config. ``holds``: names at its dump_path; ``usable``: it sees the artefact root
    that is here, and may write there."""

    version: str | None
    holds: tuple[str, ...]
    usable: bool


def as_text(config: Mapping[str, Any]) -> str:
    """As it is written."""
    return json.dumps(config, indent=2) + "\n"


def world_size(card: Card, side: str, given: int | None) -> int:
    """Processes of the side's job: as told, else as stage 4 read it from the scripts. Raises UsageError when neither tells."""
    if given is not None:
        return given
    found = evidence(card, INPUTS)
    told = found.result.get("world", {}).get(side) if found is not None else None
    if not isinstance(told, int) or told < 1:
        raise UsageError(
            _("how many processes the {side} side has is not known from its scripts").format(side=side),
            why=_("ranks that do not exist give an empty dump and no error"),
            todo=_("say --{side}-world N").format(side=side),
        )
    return told


def show(side: Side, config: Mapping[str, Any], root: str, workdir: str | None) -> Shown:
    """Have the side's own msprobe read the config; no dump is started. Raises ConfigRefusedError, SideError."""
    told = ask(side, "accept", _given(config, root, workdir, build=True), _LIMIT)
    if not told["accepted"]:
        missing = told["missing"]
        name = "mindstudio-probe" if missing and missing.partition(".")[0] == "msprobe" else missing
        install = _("install {name} into the {side} side's environment; engines swallow this error and dump nothing")
        raise ConfigRefusedError(
            _("msprobe {version} on the {side} side does not take the config").format(
                version=told["version"] or _("(not installed)"), side=side.name
            ),
            why=told["error"],
            todo=install.format(name=name, side=side.name)
            if name
            else _("`probepatch preflight` asks that interpreter for more"),
        )
    here, there = mark(root), told["root"]
    usable = there["writable"] and (here["path"], here["inode"]) == (there["path"], there["inode"])
    return Shown(told["version"], tuple(told["holds"]), bool(usable))


def holds(side: Side, dump_path: str, root: str) -> tuple[str, ...]:
    """The first names at a dump_path, as the side sees it."""
    return tuple(ask(side, "accept", _given({"dump_path": dump_path}, root, None, build=False))["holds"])


def _given(config: Mapping[str, Any], root: str, workdir: str | None, *, build: bool) -> dict[str, Any]:
    return {"config": dict(config), "root": root, "workdir": workdir, "build": build}


def expect_usable(side: str, shown: Shown, root: str) -> None:
    """Raises DumpPathError when the side does not see the artefact root that is here, or may not write there."""
    if not shown.usable:
        raise DumpPathError(
            _("the {side} side does not see {root} as it is here, or may not write there").format(side=side, root=root),
            why=_("configs are read and dumps are written there by the side's own processes"),
            todo=_("mount it into the side under the same path, or `probepatch task set artifacts=…`"),
        )


def expect_empty(side: str, dump_path: str, found: Sequence[str]) -> None:
    """Raises DumpPathError: msprobe overwrites what is there, and logs are appended to."""
    if found:
        raise DumpPathError(
            _("the dump_path of the {side} side is not empty").format(side=side),
            where=dump_path,
            why=_("an earlier run's steps would mix with this one's: {names}").format(names=", ".join(found)),
            todo=_("move it away: `mv {path} {path}.before`").format(path=dump_path),
        )
