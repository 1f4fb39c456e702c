"""Engines that dump with msprobe themselves: which flag names the config, in the words of whoever starts the engine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stages.inputs.launch import SLIME, VERL, VIME
from stages.inputs.quoting import override

SGLANG, ASCEND = "sglang", "vllm_ascend"
_ENGINE_KWARGS = "actor_rollout_ref.rollout.engine_kwargs"


def is_native(scene: Mapping[str, Any]) -> bool:
    """Whether the side's engine has an integration of msprobe that is used: SGLang from 0.5.11 on, vllm-ascend from 0.12."""
    return bool(scene["framework"] in (SGLANG, ASCEND) and scene["native_msprobe"])


@dataclass(frozen=True)
class Native:
    """An engine that is to dump by itself, by the config at this path."""

    engine: str
    config: str
    version: str | None

    def words(self, trainer: str | None) -> list[str]:
        """The arguments, unquoted. ``trainer``: slime, vime or verl when it is they who start the engine, None for the engine's own
        command line. JSON is compact: it has to survive a second parse."""
        if self.engine == SGLANG:
            if trainer == VERL:
                return [override(f"{_ENGINE_KWARGS}.sglang.msprobe_dump_config", self.config, "++")]
            return ["--sglang-msprobe-dump-config" if trainer == SLIME else "--msprobe-dump-config", self.config]
        key = "dump_config" if (self.version or "").startswith("0.12.0rc1") else "dump_config_path"
        if trainer == VERL:
            whole = override(f"{_ENGINE_KWARGS}.vllm.additional_config", {key: self.config}, "++")
            return [whole, override("actor_rollout_ref.rollout.enforce_eager", True)]
        dash = "--vllm-" if trainer == VIME else "--"
        return [
            f"{dash}additional-config",
            json.dumps({key: self.config}, separators=(",", ":")),
            f"{dash}enforce-eager",
        ]


def put(words: Sequence[str], flags: Sequence[str]) -> list[str] | None:
    """A command's words with the flags: an option that is there gets their value, and a JSON object of the user's keeps its other
    keys. None where the two cannot be joined."""
    out, left = list(words), list(flags)
    while left:
        name = left.pop(0)
        valued = name.startswith("--") and bool(left) and not left[0].startswith("--")
        value = left.pop(0) if valued else None
        at = next((n for n, word in enumerate(out) if word == name or (valued and word.startswith(f"{name}="))), None)
        if at is None:
            out += [name] if value is None else [name, value]
        elif value is not None:
            joined = out[at] != name
            place = at if joined else at + 1
            before = out[place].partition("=")[2] if joined else "".join(out[place : place + 1])
            whole = _joined(before, value)
            if whole is None:
                return None
            out[place : place + 1] = [f"{name}={whole}" if joined else whole]
    return out


def _joined(before: str, value: str) -> str | None:
    if not value.startswith("{"):
        return value
    try:
        return json.dumps({**json.loads(before), **json.loads(value)}, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError):
        return None
