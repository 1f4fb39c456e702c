"""One life of a runner from one of the trees: `python runner.py MODULE CLASS SETTINGS STEP ...`; prints what happened.

SETTINGS is JSON of the runner's settings; each STEP is the name of one of the engine steps below, in order.
"""

from __future__ import annotations

import importlib
import json
import sys
from types import SimpleNamespace

from shapes import Broken

SHORT, LONG = [5, 6, 7], list(range(20, 31))


def scheduled(counts, new=(), cached=None, finished=()):
    """A scheduler's account of a step: tokens for each request; ``new`` are (id, prompt, computed)."""
    fields = ("req_id", "prompt_token_ids", "num_computed_tokens")
    cached = cached or {}
    return SimpleNamespace(
        scheduled_new_reqs=[SimpleNamespace(**dict(zip(fields, request, strict=True))) for request in new],
        scheduled_cached_reqs=SimpleNamespace(req_ids=list(cached), num_computed_tokens=list(cached.values())),
        num_scheduled_tokens=counts,
        total_num_scheduled_tokens=sum(counts.values()),
        finished_req_ids=set(finished),
    )


STEPS = {
    "warm-up": scheduled({"_warmup_0_": 3}, new=[("_warmup_0_", SHORT, 0)]),
    "mixed-warm-up": scheduled({"_v2_mixed_warmup_decode_": 3}, new=[("_v2_mixed_warmup_decode_", SHORT, 0)]),
    "prefill": scheduled({"a": 3}, new=[("a", SHORT, 0)]),
    "two": scheduled({"a": 3, "b": 11}, new=[("a", SHORT, 0), ("b", LONG, 0)]),
    "cached-prefix": scheduled({"b": 3}, new=[("b", LONG, 8)]),
    "chunk": scheduled({"a": 3, "b": 5}, new=[("a", SHORT, 0), ("b", LONG, 0)]),
    "mixed": scheduled({"b": 6, "a": 1}, cached={"b": 5, "a": 3}),
    "decode": scheduled({"a": 1}, cached={"a": 3}),
    "speculative": scheduled({"a": 4}, cached={"a": 3}),
    "again": scheduled({"a": 5}, cached={"a": 0}),  # after preemption: the prompt and two tokens of the answer
    "embedded": scheduled({"e": 2}, new=[("e", None, 0)]),
    "empty": scheduled({}, finished=["a"]),
}
STEPS["embedded"].scheduled_new_reqs[0].prompt_embeds = [[0.0], [0.0]]


def main(module: str, name: str, settings: str, *steps: str) -> None:
    defaults = {"role": "last", "fails": False, "eager": True, "nested": False, "dump_config_path": None}
    seen: dict = {"returned": []}
    try:
        runner = getattr(importlib.import_module(module), name)(
            SimpleNamespace(**defaults | json.loads(settings)), "cpu"
        )
        for step in steps:
            seen["returned"].append(run(runner, step))
    except RuntimeError as error:
        seen["error"] = str(error)
    debugger = sys.modules.get("msprobe.pytorch")
    print(json.dumps(seen | {"events": debugger.EVENTS if debugger else None}))


def run(runner, step: str):
    if step == "dummy":
        return runner._dummy_run(STEPS["prefill"])
    try:
        out = runner.execute_model(STEPS[step])
        return sorted(runner.sample_tokens(None) or {}) if out is None else out if isinstance(out, str) else sorted(out)
    except Broken:
        return "broken"


if __name__ == "__main__":
    main(*sys.argv[1:])
