"""What a side's modules hold: the model built without its weights in the side's own interpreter, and asked module by module."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codemods.errors import FindingError, RefusedError, UsageError
from locales import _
from stages.card.card import Card
from stages.params.modules import read_modules
from stages.params.waivers import write_json
from stages.sides import TRAIN, Side, SideError

LOADERS = ("transformers", "vllm")
PAYLOAD = Path(__file__).parent / "payloads" / "list_modules.py"
_LIMIT = 1800.0  # seconds; an engine compiles and reserves memory before it can be asked


class NotBuiltError(FindingError):
    """The side cannot build the model by itself."""


def loader_of(card: Card, side: str) -> str:
    """Who builds the side's model, where that is one of ours. Raises RefusedError."""
    framework = card.fact(f"{side}.framework")
    if framework in ("vllm", "vllm_ascend"):
        return "vllm"
    if framework == "transformers" or (side == TRAIN and card.fact("train.backend") == "fsdp"):
        return "transformers"
    raise RefusedError(
        _("what builds the {side} side's model is not built here: {framework}").format(
            side=side,
            framework=" ".join(filter(None, (framework, card.fact(f"{side}.backend") if side == TRAIN else None))),
        ),
        todo=_("`--payload FILE` writes the script that the job itself calls; --with says who builds the same modules"),
    )


def built_modules(side: Side, loader: str, model: str, settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """{path: {attribute: value}}. Raises NotBuiltError, SideError."""
    source = PAYLOAD.read_text("utf-8")
    script = (
        "_names = {'__name__': 'list_modules'}\n"
        f"exec(compile({source!r}, 'list_modules.py', 'exec'), _names)\n"
        "answer(_names['main'](GIVEN))\n"
        "__import__('os')._exit(0)\n"  # threads of the side's code end with it
    )
    told = side.ask(script, {"loader": loader, "model": model, "settings": dict(settings)}, limit=_LIMIT)
    if isinstance(told, dict) and isinstance(told.get("error"), str):
        raise NotBuiltError(
            _("{loader} does not build the model on the {side} side").format(loader=loader, side=side.name),
            why=" ".join(told["error"].split())[:400],
            todo=_("`--payload FILE` writes the script that the job itself calls, where the model is built"),
        )
    modules = told.get("modules") if isinstance(told, dict) else None
    if not isinstance(modules, dict) or not modules or not all(isinstance(one, dict) for one in modules.values()):
        raise SideError(_("the interpreter of the {side} side gives an answer of another form").format(side=side.name))
    return modules


def put_modules(path: Path, side: str, modules: Mapping[str, Any]) -> None:
    """This side's list into the file; what it says of the other stays. Raises ConfigError, RefusedError."""
    there = {name: one for name, one in read_modules([path]).items() if one} if path.exists() else {}
    write_json(path, {**there, side: modules})


def settings_of(text: str | None) -> dict[str, Any]:
    """Raises UsageError."""
    try:
        found = json.loads(text) if text is not None else {}
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise UsageError(_("--settings is a JSON object: {form}").format(form='{"dtype": "float32"}'))
    return found
