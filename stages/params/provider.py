"""The training side's effective config: its own bridge, in its own interpreter, asked what it would build."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from codemods.errors import FindingError, UsageError
from locales import _
from stages.params.reading import EFFECTIVE
from stages.sides import Side, SideError

BRIDGE = "DeepSeekV4FlashBridge"
SOURCES = ("/workspace/Megatron-Bridge/src", "/workspace/MindSpeed-Bridge")
_LIMIT = 600.0  # seconds; importing a trainer takes minutes on a slow disk
_PAYLOAD = Path(__file__).parent / "payloads" / "dump_provider.py"


class BridgeError(FindingError):
    """The bridge does not give a provider."""


def effective_config(side: Side, hf_dir: str, bridge: str, sources: tuple[str, ...]) -> dict[str, Any]:
    """The provider's config as a document of the format ``probepatch/effective-config/1``. Raises BridgeError, SideError."""
    source = _PAYLOAD.read_text("utf-8")
    script = (
        "_names = {'__name__': 'dump_provider'}\n"
        f"exec(compile({source!r}, 'dump_provider.py', 'exec'), _names)\n"
        "answer(_names['main'](GIVEN))\n"
        "__import__('os')._exit(0)\n"  # threads of the side's code end with it
    )
    told = side.ask(script, {"hf_dir": hf_dir, "bridge": bridge, "sources": list(sources)}, limit=_LIMIT)
    if not isinstance(told, dict):
        raise SideError(_("the interpreter of the {side} side gives an answer of another form").format(side=side.name))
    if "error" in told:
        raise _error(told["error"], bridge, side)
    try:
        json.dumps(told, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise SideError(
            _("the interpreter of the {side} side gives an answer of another form").format(side=side.name),
            why=str(error)[:200],
        ) from error
    if told.get("format") != EFFECTIVE:
        raise SideError(_("the interpreter of the {side} side gives an answer of another form").format(side=side.name))
    return told


def _error(told: dict[str, Any], bridge: str, side: Side) -> BridgeError | UsageError:
    text, where = _line(told.get("text")), _line(told.get("where")) or None
    if told.get("kind") == "import":
        return BridgeError(
            _("the training side's interpreter has no module {name}").format(name=_line(told.get("module"))),
            where=where,
            why=_("the bridge imports it; only nvidia_resiliency_ext is done without"),
            todo=_(
                "install it in that environment, or name the interpreter of the training itself: {python} answered"
            ).format(python=side.python),
        )
    if told.get("kind") == "no-config":
        return UsageError(_("there is no config to build from: {text}").format(text=text))
    if told.get("kind") == "no-bridge":
        from difflib import get_close_matches

        names = [str(name) for name in told.get("near") or ()]
        near = get_close_matches(bridge.rpartition(".")[2], names, 3)
        todo = _("--bridge names the class, --bridge-src its sources")
        if near:
            todo = _("near: {names}; {todo}").format(names=", ".join(near), todo=todo)
        return BridgeError(_("there is no bridge {name}").format(name=bridge), why=text, todo=todo)
    return BridgeError(_("the bridge {name} failed: {text}").format(name=bridge, text=text), where=where)


def _line(value: Any) -> str:
    return " ".join(str(value or "").split())[:400]
