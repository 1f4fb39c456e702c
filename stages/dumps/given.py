"""What is to be verified: the dumps, logs and interpreters of both sides, as the task card has them or as files were named."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codemods.errors import RefusedError, UsageError
from locales import _
from stages.card.card import Card, CardError
from stages.card.evidence import evidence
from stages.card.order import INPUTS, INSTRUMENT, STUB
from stages.dumps.situation import Situation
from stages.dumps.streaming import open_regular
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
    sides, runs = instrumented(card)
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
    return Given(sources, root_of(card), round_, layers_of(card.fact("model.path")))


def root_of(card: Card) -> Path:
    """The capture's folder. Raises UsageError."""
    root = card.fact("artifacts")
    if root is None or not root.startswith("/") or "\0" in root:
        raise UsageError(
            _("the folder of the capture is unknown") if root is None else _("artifacts is no absolute folder"),
            todo=_("`probepatch task set artifacts=/absolute/folder`"),
        )
    return Path(root)


def instrumented(card: Card) -> tuple[dict[str, Mapping[str, Any]], list[Mapping[str, Any]]]:
    """What stage 6 left: the sides by name, and the runs. A card is a file that anybody may have edited: raises CardError."""
    made = evidence(card, INSTRUMENT)
    result: Mapping[str, Any] = made.result if made is not None else {}
    sides, runs = result.get("sides") or {}, result.get("runs") or []
    fit = isinstance(sides, dict) and all(one is None or isinstance(one, dict) for one in sides.values())
    fit = fit and isinstance(runs, list) and all(isinstance(one, dict) for one in runs)
    known = {name: one for name, one in sides.items() if name in SIDES and one} if fit else {}
    if not fit or not all(_as_written(one) for one in known.values()):
        raise CardError(
            _("what stage 6 left on the task card is not of its form"),
            where=str(card.path) if card.path is not None else None,
            todo=_("`probepatch capture prepare` writes it again"),
        )
    return known, runs


def _as_written(side: Mapping[str, Any]) -> bool:
    """Whether what is used of a side has its type."""
    shapes = {"dump_path": str, "config": str, "checkout": str, "environment": dict, "recipes": list, "world_size": int}
    found = ((side.get(name), kind) for name, kind in shapes.items())
    return all(value is None or (isinstance(value, kind) and "\0" not in str(value)) for value, kind in found)


def _paths(card: Card, round_: int, sides: Mapping[str, Any]) -> dict[str, Path]:
    """dump_path by side. A later round runs the target side again; the other side's dump is the first round's."""
    paths = {side: Path(one["dump_path"]) for side, one in sides.items() if one.get("dump_path")}
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
    if target in SIDES and isinstance(own, str) and "\0" not in own:
        paths[str(target)] = Path(own)
    return paths


def _script_checked(card: Card, side: str, command: str | None) -> bool:
    """Whether stage 4 found that this side's script imports the checkout; of another command than the baseline it says nothing."""
    found, baseline = evidence(card, INPUTS), card.fact("baseline_command")
    if found is None or (command is not None and (baseline is None or baseline not in command)):
        return False
    return side in (found.result.get("imports") or ())


def _situation(card: Card, side: str, made: Mapping[str, Any], runs: list[Any], log: Path | None) -> Situation:
    last = next((run for run in reversed(runs) if side in (run.get("sides") or ())), None)
    job, ended = (_object((last or {}).get(key)) for key in ("job", "ended"))
    environment = {name: str(value) for name, value in (made.get("environment") or {}).items()}
    recipes = made.get("recipes")
    code = ended.get("code")
    return Situation(
        name=side,
        side=Side.of(card, side) if card.fact(f"{side}.python") is not None else None,
        framework=card.fact(f"{side}.framework"),
        native=bool(made.get("native")),
        recipes=tuple(recipes) if recipes is not None else None,
        launch=_text(job.get("command")) or card.fact("baseline_command"),
        environment=environment,
        workdir=card.fact(f"{side}.workdir"),
        config=read_json(made.get("config")),
        world_size=made.get("world_size"),
        log=_there(log) or _first_file(job.get("log"), card.fact(f"{side}.log")),
        job_rc=code if isinstance(code, int) else None,
        script_checked=_script_checked(card, side, _text(job.get("command"))),
    )


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _there(log: Path | None) -> Path | None:
    if log is not None and not log.is_file():
        raise UsageError(_("{path} is not a file").format(path=log), todo=_("name the log, or leave it out"))
    return log.absolute() if log is not None else None


def _first_file(*paths: Any) -> Path | None:
    """A log may lie on another machine."""
    for path in paths:
        if isinstance(path, str) and os.path.isfile(path):
            return Path(path)
    return None


def layers_of(model: str | None) -> int | None:
    """By the model's config.json, as far as it is readable here."""
    config = read_json(Path(model) / "config.json") if model else None
    for part in (config, config.get("text_config") if isinstance(config, dict) else None):
        for name in _LAYERS:
            number = part.get(name) if isinstance(part, dict) else None
            if type(number) is int and 0 < number < 1 << 20:
                return number
    return None


def no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is no number")
    return value


def read_json(path: Any, strict: bool = False) -> Any:
    """None where it cannot be read. NaN and infinities pass, as models' configs have them, but not with ``strict``."""
    try:
        with open_regular(Path(path)) as file:
            if os.fstat(file.fileno()).st_size > _LARGEST:
                return None
            text = file.read().decode("utf-8")
        return json.loads(text, parse_constant=no_constant, parse_float=_finite) if strict else json.loads(text)
    except (OSError, ValueError, TypeError, RecursionError):
        return None
