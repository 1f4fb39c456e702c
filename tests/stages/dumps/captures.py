"""Small captures of two sides, as msprobe and the patched frameworks write them: [1, P, H] in training, [P, H] in inference."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HIDDEN, LAYERS = 8, 3
PROMPT = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]


def sha256(prompt: Sequence[int]) -> str:
    return hashlib.sha256(",".join(map(str, prompt)).encode()).hexdigest()


def tensor(shape: Sequence[int], dtype: str = "torch.float32", **more: Any) -> dict[str, Any]:
    return {
        "type": "torch.Tensor",
        "dtype": dtype,
        "shape": list(shape),
        "Max": 1.0,
        "Min": -1.0,
        "Mean": 0.0,
        "Norm": 1.0,
        "requires_grad": False,
        **more,
    }


def _entry(inputs: list[Any], output: list[Any]) -> dict[str, Any]:
    return {"input_args": inputs, "input_kwargs": {}, "output": output}


def entries(side: str, rows: int, layers: Sequence[int] = range(LAYERS)) -> dict[str, Any]:
    """The data of a dump.json: embedding, layers, final norm."""
    train = side == "train"
    ids, hidden = ([1, rows], [1, rows, HIDDEN]) if train else ([rows], [rows, HIDDEN])
    kind = {"embed": "FSDPEmbedding", "layer": "FSDPQwen2DecoderLayer", "norm": "Qwen2RMSNorm"}
    if not train:
        kind = {"embed": "VocabParallelEmbedding", "layer": "Qwen2DecoderLayer", "norm": "RMSNorm"}
    dtype = "torch.int64" if train else "torch.int32"
    data = {
        f"Module.model.embed_tokens.{kind['embed']}.forward.0": _entry([tensor(ids, dtype)], [tensor(hidden)]),
    }
    for number in layers:
        name = f"Module.model.layers.{number}"
        data[f"{name}.mlp.down_proj.Linear.forward.0"] = _entry([tensor(hidden)], [tensor(hidden)])
        given = [tensor(hidden)] if train else [tensor([rows], "torch.int64"), tensor(hidden), tensor(hidden)]
        taken = [tensor(hidden)] if train else [tensor(hidden), tensor(hidden)]
        data[f"{name}.{kind['layer']}.forward.0"] = _entry(given, taken)
    data[f"Module.model.norm.{kind['norm']}.forward.0"] = _entry([tensor(hidden)], [tensor(hidden)])
    return data


def dump(folder: Path, data: Mapping[str, Any], task: str = "statistics", level: str = "L0") -> None:
    folder.mkdir(parents=True)
    document = {"task": task, "level": level, "framework": "pytorch", "dump_data_dir": None, "data": data}
    (folder / "dump.json").write_text(json.dumps(document, indent=1))


def log(side: str, dump_path: Path, rank: int, **fields: Any) -> None:
    """Append a line, in the side's own words."""
    folder = dump_path / f"rank{rank}"
    folder.mkdir(parents=True, exist_ok=True)
    name = "update_actor_log.jsonl" if side == "train" else "dispatch_log.jsonl"
    line = {"time": "2026-11-29T17:00:00+00:00", "rank": rank, "pid": 100 + rank, **fields}
    with (folder / name).open("a") as file:
        file.write(json.dumps(line) + "\n")


def step(
    side: str,
    dump_path: Path,
    number: int,
    requests: Mapping[str, Sequence[int]],
    *,
    rank: int = 0,
    phase: str | None = None,
    rows: int | None = None,
    layers: Sequence[int] = range(LAYERS),
    computed: int = 0,
    **more: Any,
) -> None:
    """One captured forward with its line: of these requests (id -> prompt)."""
    prompts = list(requests.values())
    count = sum(map(len, prompts)) - computed
    dump(dump_path / f"step{number}/rank{rank}", entries(side, rows if rows is not None else count, layers))
    line: dict[str, Any] = {
        "step": number,
        "phase": phase or ("log_prob" if side == "train" else "prefill"),
        "request_ids": list(requests),
        "prompt_sha256": [sha256(prompt) for prompt in prompts],
        "prompt_tokens": [len(prompt) for prompt in prompts],
        "token_count": count,
    }
    if side == "infer":
        line["computed_tokens"] = [computed for _prompt in prompts]
        line["scheduled_tokens"] = [len(prompt) - computed for prompt in prompts]
    log(side, dump_path, rank, **{**line, **more})


def prefill(side: str, dump_path: Path, request: str, prompt: Sequence[int], shift: float = 0.0, **more: Any) -> None:
    folder = dump_path / "rank0"
    folder.mkdir(parents=True, exist_ok=True)
    line = {
        "rank": 0,
        "pid": 100,
        "side": side,
        "request_id": request,
        "n_tokens": len(prompt),
        "prompt_sha256": sha256(prompt),
        "logprobs": [math.log(0.2 + 0.01 * at + shift) for at in range(len(prompt) - 1)],
        "logprobs_mode": "raw",
        "temperature": 1.0,
        **more,
    }
    with (folder / "prefill_logprobs.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def capture(root: Path, ranks: int = 1) -> tuple[Path, Path]:
    """Both sides of one request, ``req-7`` in training, with the engine's suffix in inference; a warm-up before and a decode step
    after it."""
    train, infer = root / "dump/train", root / "dump/infer"
    for rank in range(ranks):
        step("train", train, 0, {"req-7": PROMPT}, rank=rank)
        dump(infer / f"step0/rank{rank}", entries("infer", 512))
        step("infer", infer, 1, {"req-7-1a2b3c4d": PROMPT}, rank=rank)
        step("infer", infer, 2, {"req-7-1a2b3c4d": PROMPT}, rank=rank, phase="decode", rows=1, computed=len(PROMPT) - 1)
    prefill("train", train, "req-7", PROMPT)
    prefill("infer", infer, "req-7-1a2b3c4d", PROMPT, 1e-6)
    return train, infer
