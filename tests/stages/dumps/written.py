"""Logs as the patched frameworks write them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stages.dumps.records import PREFILL_LOG, STEP_LOGS


def digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def step(
    ids: Sequence[str | None], *, phase: str = "prefill", prompt: str | None = None, **more: Any
) -> dict[str, Any]:
    """``prompt``: a name that stands for the prompts' tokens; without it nobody hashed them."""
    hashes = [None if prompt is None else digest(prompt)] * len(ids)
    line = {"pid": 7, "step": 0, "phase": phase, "request_ids": list(ids), "prompt_sha256": hashes}
    return line | {"prompt_tokens": [5] * len(ids)} | more


def prefill(request_id: str | None, logprobs: Sequence[float], side: str = "train", **more: Any) -> dict[str, Any]:
    line = {"side": side, "request_id": request_id, "n_tokens": len(logprobs) + 1, "prompt_sha256": None}
    return line | {"logprobs": list(logprobs), "logprobs_mode": "raw", "temperature": 1.0} | more


def write_steps(root: Path, side: str, lines: Sequence[Mapping[str, Any]], rank: int = 0) -> Path:
    """A dump_path whose rank's log has these lines; where they say step 0, it is counted on."""
    numbered = [{"rank": rank, **line, "step": line["step"] or at} for at, line in enumerate(lines)]
    return _write(root, STEP_LOGS[side], numbered, rank)


def write_prefills(root: Path, lines: Sequence[Mapping[str, Any]], rank: int = 0) -> Path:
    return _write(root, PREFILL_LOG, lines, rank)


def _write(root: Path, name: str, lines: Sequence[Mapping[str, Any]], rank: int) -> Path:
    folder = root / f"rank{rank}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return root
