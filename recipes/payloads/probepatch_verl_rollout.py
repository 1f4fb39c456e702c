"""Helpers of the msprobe instrumentation in verl's rollout workers that run vLLM themselves (rollout.mode=sync).

Added by probepatch; the debugger itself is built, started, stopped and stepped at the patched site. Switches, read from
the environment of each process:

    DUMP_ON     1: dump. Unset, empty and 0: everything here is inert, and msprobe is never imported.
    DUMP_PHASE  prefill: dump the prefill of the prompts. The actor lives in the same process, and msprobe allows one
                debugger per process: every other value leaves the rollout alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from datetime import datetime, timezone

import torch

PARAMETERS: dict = {}  # probepatch: parameters

_steps_taken = 0  # msprobe's step index, which only the patched site advances


def _switch(name: str) -> bool:
    value = os.environ.get(name, "").strip()
    if value not in ("", "0", "1"):
        raise ValueError(f"{name}={value!r}: say 1 or 0")
    return value == "1"


def captures_prefill(validates: bool) -> bool:
    """Whether the prompts of this rollout are dumped: never those of a validation."""
    return not validates and _switch("DUMP_ON") and os.environ.get("DUMP_PHASE", "").strip() == "prefill"


def _config() -> tuple[str, dict]:
    """Path and content of the msprobe config of the inference side."""
    name, value = PARAMETERS["infer_config"]
    path = os.environ.get(name) or value
    if not path:
        raise RuntimeError(f"DUMP_PHASE=prefill needs the msprobe config of the inference side: set {name} to its path")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    if not config.get("dump_path"):
        raise RuntimeError(f"{path}: `dump_path` is missing; give the inference side a folder of its own")
    return path, config


def debugger_settings(debugger_class, rollout) -> dict:
    """Arguments of PrecisionDebugger: the file, and task tensor, level L0, step [0] where it says nothing."""
    if getattr(debugger_class, "_instance", None) is not None:
        raise RuntimeError("DUMP_PHASE=prefill, but this process has another PrecisionDebugger, whose config would win")
    if not rollout.enforce_eager:
        raise RuntimeError("DUMP_PHASE=prefill sees no modules in captured graphs: set rollout.enforce_eager=True")
    path, config = _config()
    defaults = {"task": "tensor", "level": "L0", "step": [0]}
    return {"config_path": path, **{key: value for key, value in defaults.items() if key not in config}}


def rows_to_dump(inputs: list[dict]) -> list[int]:
    """Of equal prompts the first, in order, and no more than msprobe's `step` still asks for.

    The ranks of a tensor-parallel group have the same prompts, so all of them choose the same rows.
    """
    first = {}
    for row, one in enumerate(inputs):
        images = row if one.get("multi_modal_data") else None  # equal tokens say nothing about images
        first.setdefault((tuple(one["prompt_token_ids"]), images), row)
    rows = list(first.values())
    steps = _config()[1].get("step", [0])
    if steps and all(isinstance(step, int) for step in steps):
        rows = rows[: max(0, max(steps) + 1 - _steps_taken)]
    return rows


def _rest_load() -> None:
    """msprobe's `load` (a stub round) goes on overriding inputs after stop() and step(): in the ordinary forward, in decode steps.

    start() sets it to work again; with dump_after_load=false it does not, and the first step is the only one.
    """
    from msprobe.pytorch import PrecisionDebugger

    service = getattr(getattr(PrecisionDebugger, "_instance", None), "service", None)
    loader = getattr(getattr(service, "module_processor", None), "tensor_loader", None)
    if loader is not None:
        loader.active = False


def log_prefill(prompt: list[int], request_ids: list[str]) -> None:
    """Append the line of the step that just ended to <dump_path>/rank<R>/dispatch_log.jsonl: no text.

    ``prompt_sha256`` is the hash of the ids in decimal, joined by commas: the training side logs the same.
    """
    global _steps_taken
    _rest_load()
    rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
    ids = [int(token) for token in prompt]
    line = {
        "time": datetime.now(timezone.utc).isoformat(),
        "phase": "prefill",
        "step": _steps_taken,
        "rank": rank,
        "pid": os.getpid(),
        "request_ids": request_ids,
        "prompt_sha256": [hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest()],
        "prompt_tokens": [len(ids)],
        "token_count": len(ids),
    }
    if _switch("DUMP_TOKEN_IDS"):
        line["prompt_token_ids"] = [ids]
    _steps_taken += 1
    folder = os.path.join(_config()[1]["dump_path"], f"rank{rank}")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "dispatch_log.jsonl"), "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
