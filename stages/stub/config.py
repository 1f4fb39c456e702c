"""The target's msprobe config for a stub round: that of the first capture, a dump_path of its own, and what is to be loaded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codemods.errors import InvalidError, RefusedError, UsageError
from locales import _
from stages.dumps.streaming import open_regular
from stages.instrument.configs import show
from stages.msprobe_config import MODULE_LEVELS, check_config
from stages.params.waivers import write_json
from stages.preflight.asking import ask
from stages.sides import Side
from stages.stub.manifest import Manifest
from stages.stub.target import places

INSTALL = "mindstudio-probe==26.2.0"
"""The first release whose wheel has module_load; 26.1 lacks it."""
_LARGEST = 4 << 20  # bytes


class StubConfigError(InvalidError):
    """The config would load nothing, or is none."""


class LoadMissingError(RefusedError):
    """The side's msprobe cannot override inputs."""


@dataclass(frozen=True)
class Made:
    """``notes``: where it differs from the first config in more than the override."""

    config: dict[str, Any]
    notes: tuple[str, ...]


def make_stub_config(first: Mapping[str, Any], manifest: Manifest, dump_path: Path, world_size: int) -> Made:
    """Raises StubConfigError."""
    config: dict[str, Any] = {**first, "dump_path": str(dump_path), "load": _load(manifest)}
    notes = []
    if config.get("level") not in MODULE_LEVELS:
        notes.append(_("level L0 in place of {level}, which has no module inputs").format(level=config.get("level")))
        config["level"] = "L0"
    if manifest.dump_after_load and config.get("task") != "tensor":
        notes.append(
            _("task tensor in place of {task}: without tensors nobody can prove the override").format(
                task=config.get("task")
            )
        )
        config["task"] = "tensor"
        config.setdefault("tensor", {"scope": [], "list": [], "data_mode": ["all"]})
    steps = check_config(config, world_size).steps
    if not _reaches(steps, manifest):
        notes.append(_("step [{step}], that of the entries").format(step=manifest.step))
        config["step"] = [manifest.step]
    checked = check_config(config, world_size)
    if not checked.valid:
        error = checked.errors[0]
        raise StubConfigError(error.what, where=error.key, todo=error.todo or None)
    return Made(config, tuple(notes))


def world_of(manifest: Manifest, first: Mapping[str, Any]) -> int:
    """How many processes there are at least: by the dump that the round was prepared on, and by the ranks that the config names."""
    seen = [one.rank for one in places(Path(manifest.target)) if one.rank is not None]
    named = check_config({**first, "rank": first.get("rank") or []}, 1 << 20).ranks
    return max([1, *(one + 1 for one in (*seen, *named))])


def _reaches(steps: tuple[int, ...], manifest: Manifest) -> bool:
    """Whether msprobe gets to the override's step. Without a dump it must be the first that it starts: once a step was left out by
    load.step, msprobe starts none again."""
    if manifest.dump_after_load:
        return not steps or manifest.step in steps
    return steps == (manifest.step,)


def _load(manifest: Manifest) -> dict[str, Any]:
    """``rank`` only where ranks are left out: a process without a rank would never be one of a list."""
    return {
        "path": str(manifest.folder.resolve()),
        "modules": manifest.entries,
        "step": [manifest.step],
        "rank": [] if manifest.ranks is None or manifest.all_ranks else manifest.ranks,
        "dump_after_load": manifest.dump_after_load,
    }


def read_config(path: Path) -> dict[str, Any]:
    """Raises UsageError, StubConfigError."""
    try:
        with open_regular(path) as file:
            text = file.read(_LARGEST + 1)
    except OSError as error:
        raise UsageError(_("{path} cannot be read").format(path=path), why=error.strerror or str(error)) from error
    try:
        data = json.loads(text[:_LARGEST].decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise StubConfigError(_("the msprobe config is no JSON"), where=str(path), why=str(error)[:200]) from error
    if not isinstance(data, dict):
        raise StubConfigError(_("the config holds no object"), where=str(path))
    return data


def require_load(side: Side) -> None:
    """Raises LoadMissingError, SideError."""
    told = ask(side, "msprobe", {"pythonpath": [], "workdir": None}, limit=300.0)
    if told["imported"] and told["load"]:
        return
    todo = _("in that environment: pip install {package}").format(package=INSTALL)
    if not told["imported"]:
        raise LoadMissingError(
            _("msprobe cannot be imported on the {side} side").format(side=side.name), why=told["error"], todo=todo
        )
    raise LoadMissingError(
        _("msprobe {version} on the {side} side has no module_load").format(version=told["version"], side=side.name),
        why=_("it would ignore the section `load` without a word; 26.2.0 and later have it"),
        todo=todo,
    )


def accepted_by(side: Side, config: Mapping[str, Any], root: Path) -> str | None:
    """The version of the side's msprobe, which read the config. Raises ConfigRefusedError, SideError."""
    return show(side, config, str(root), None).version


def write_stub_config(path: Path, config: Mapping[str, Any], dump_path: Path) -> None:
    """Once a run has left a dump under a config, that config stays. Raises RefusedError."""
    if path.exists() and read_config(path) == config:
        return
    try:
        taken = dump_path.is_dir() and any(dump_path.iterdir())
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RefusedError(_("{path} cannot be written").format(path=path), why=error.strerror) from error
    if taken:
        raise RefusedError(
            _("there is a dump of this round already"),
            where=str(dump_path),
            why=_("another run would mix with it"),
            todo=_("verify it, or move it away and run this again"),
        )
    write_json(path, config)
