"""What is to be verified: the dumps, logs and interpreters of both sides, as the task card has them or as files were named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codemods.errors import RefusedError, UsageError
from locales import _
from stages.card.card import Card
from stages.card.evidence import evidence
from stages.card.order import INSTRUMENT, STUB
from stages.dumps.situation import Situation
from stages.dumps.verify import Source
from stages.sides import INFER, TRAIN, Side

SIDES = (TRAIN, INFER)
_LARGEST = 16 << 20  # bytes of a config
_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")


@dataclass(frozen=True)
class Given:
    """``root``: where the report goes; ``layers`` of the model, None where that is unknown."""

    sources: Mapping[str, Source]
    root: Path
    round: int
    layers: int | None


def from_folders(
    dumps: Mapping[str, Path],
    logs: Mapping[str, Path | None],
    pythons: Mapping[str, str | None],
    root: Path,
    round_: int,
) -> Given:
    """Without a card. Raises UsageError for a log that is not there; a dump that is not there is a finding."""
    sources = {}
    for side in SIDES:
        python = pythons[side]
        known = Situation(
            name=side, side=Side(side, (), python) if python is not None else None, log=_there(logs[side])
        )
        sources[side] = Source(dumps[side].absolute(), known)
    return Given(sources, root.absolute(), round_, None)


def from_card(card: Card, round_: int, dumps: Mapping[str, Path | None], logs: Mapping[str, Path | None]) -> Given:
    """By the evidence of stage 6, and of stage 8 for a later round. Raises UsageError, RefusedError."""
    made = evidence(card, INSTRUMENT)
    sides: Mapping[str, Any] = made.result.get("sides", {}) if made is not None else {}
    runs: list[Any] = list(made.result.get("runs", ())) if made is not None else []
    paths = _paths(card, round_, sides)
    sources = {}
    for side in SIDES:
        path = dumps[side] or paths.get(side)
        if path is None:
            raise UsageError(
                _("where the {side} side dumps is not on the card").format(side=side),
                todo=_("`probepatch capture prepare`, or --train DIR --infer DIR"),
            )
        known = _situation(card, side, sides.get(side) or {}, runs, logs[side])
        sources[side] = Source(path.absolute(), known, card.fact(f"{side}.version"))
    root = card.fact("artifacts")
    if root is None:
        raise UsageError(
            _("the folder of the capture is unknown"), todo=_("`probepatch task set artifacts=/absolute/folder`")
        )
    return Given(sources, Path(root), round_, layers_of(card.fact("model.path")))


def _paths(card: Card, round_: int, sides: Mapping[str, Any]) -> dict[str, Path]:
    """dump_path by side. A later round runs the target side again; the other side's dump is the first round's."""
    paths = {side: Path(one["dump_path"]) for side, one in sides.items() if one and one.get("dump_path")}
    if round_ == 0:
        return paths
    stub = evidence(card, STUB)
    if stub is None or stub.result.get("round") != round_:
        known = stub.result.get("round") if stub is not None else None
        raise RefusedError(
            _("round {wanted} is not the one that the card tells of").format(wanted=round_),
            why=_("it tells of round {known}").format(known=known)
            if known is not None
            else _("it tells of no stub round"),
            todo=_("`probepatch stub prepare` begins one"),
        )
    target, own = stub.result.get("target_side"), stub.result.get("dump_path")
    if target in SIDES and isinstance(own, str):
        paths[str(target)] = Path(own)
    return paths


def _situation(card: Card, side: str, made: Mapping[str, Any], runs: list[Any], log: Path | None) -> Situation:
    last = next((run for run in reversed(runs) if side in run.get("sides", ())), None)
    job, ended = ((last or {}).get(key) or {} for key in ("job", "ended"))
    environment = {**(made.get("environment") or {})}
    recipes = made.get("recipes")
    code = ended.get("code")
    return Situation(
        name=side,
        side=Side.of(card, side) if card.fact(f"{side}.python") is not None else None,
        framework=card.fact(f"{side}.framework"),
        native=bool(made.get("native")),
        recipes=tuple(recipes) if recipes is not None else None,
        launch=job.get("command") or card.fact("baseline_command"),
        environment=environment,
        workdir=card.fact(f"{side}.workdir"),
        config=read_json(made.get("config")),
        world_size=made.get("world_size"),
        log=_there(log) or _first_file(job.get("log"), card.fact(f"{side}.log")),
        job_rc=code if isinstance(code, int) else None,
    )


def _there(log: Path | None) -> Path | None:
    if log is not None and not log.is_file():
        raise UsageError(_("{path} is not a file").format(path=log), todo=_("name the log, or leave it out"))
    return log.absolute() if log is not None else None


def _first_file(*paths: Any) -> Path | None:
    """A log may lie on another machine."""
    for path in paths:
        if isinstance(path, str) and Path(path).is_file():
            return Path(path)
    return None


def layers_of(model: str | None) -> int | None:
    """By the model's config.json, as far as it is readable here."""
    config = read_json(str(Path(model) / "config.json")) if model else None
    for part in (config, config.get("text_config") if isinstance(config, dict) else None):
        for name in _LAYERS:
            number = part.get(name) if isinstance(part, dict) else None
            if type(number) is int and 0 < number < 1 << 20:
                return number
    return None


def read_json(path: Any) -> Any:
    """None where it cannot be read."""
    try:
        file = Path(path)
        return json.loads(file.read_text("utf-8")) if file.stat().st_size <= _LARGEST else None
    except (OSError, ValueError, TypeError, RecursionError):
        return None
