"""Steps made by hand for the tests: a folder, a line and an outline each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stages.dumps.layout import Folder
from stages.dumps.outline import EMBEDDING, LAYER, Head, Outline
from stages.dumps.records import Line
from stages.dumps.steps import Step, label

SHA = "a" * 64
EMBEDDED = "Module.model.embed_tokens.Embedding.forward.0"


def folder(step: int = 0, rank: int | None = 0, pid: int | None = None, above: str = "") -> Folder:
    name = f"rank{rank}" if rank is not None else f"proc{pid}"
    return Folder(Path("/dump") / above / f"step{step}" / name, step, rank, pid, above)


def line(
    step: int = 0, requests: tuple[str, ...] = ("r",), prompts: tuple[int | None, ...] = (19,), **more: Any
) -> Line:
    given: dict[str, Any] = {
        "side": "infer",
        "path": Path("/dump/rank0/dispatch_log.jsonl"),
        "number": step + 1,
        "rank": 0,
        "pid": 4711,
        "step": step,
        "phase": "prefill",
        "request_ids": requests,
        "prompt_sha256": (SHA,) * len(requests),
        "prompt_tokens": prompts if requests else (),
    }
    return Line(**{**given, **more})


def outline(*shapes: tuple[int, ...], source: str = EMBEDDING, entries: int = 30, **more: Any) -> Outline:
    heads = tuple(
        Head(EMBEDDED, source, call, shape, "torch.int64" if source != LAYER else "torch.float32", False, None)
        for call, shape in enumerate(shapes)
    )
    layers = {"model.layers": {0: 13, 1: 13}}
    given: dict[str, Any] = {"path": Path("/dump/step0/rank0/dump.json"), "task": "tensor", "level": "L0"}
    given |= {"framework": "pytorch", "entries": entries, "modules": entries, "bare": (), "bare_count": 0}
    return Outline(**{**given, "stacks": layers, "heads": heads, "problems": (), **more})


def step(shape: tuple[int, ...], of: Line | None = None, number: int = 0, **more: Any) -> Step:
    return label(folder(number), of, outline(shape), **more)
