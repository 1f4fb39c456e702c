"""The variables that switch the capture on, for each side."""

from __future__ import annotations

from collections.abc import Iterable

from codemods.recipe import Heading
from stages.instrument.choosing import LOGPROBS
from stages.sides import INFER

ACTOR, ENGINE = "MSPROBE_ACTOR_CONFIG", "MSPROBE_INFER_CONFIG"
PREFILL = "prefill"  # DUMP_PHASE of an engine that runs in the trainer's own process


def switches(phase: str, logprobs: bool) -> dict[str, str]:
    """Those of the whole capture. ``phase``: log_prob, update_actor or all."""
    return {
        "DUMP_ON": "1",
        "PROMPTS_ONLY": "1",
        "DUMP_PHASE": phase,
        LOGPROBS: "1" if logprobs else "0",
        "TORCHDYNAMO_DISABLE": "1",
    }


def of_side(side: str, recipes: Iterable[Heading], all_switches: dict[str, str], config: str) -> dict[str, str]:
    """What the side's processes need: the switches that its recipes read, and where msprobe's config is. Without a recipe (plain
    Transformers) what its helpers read."""
    chosen = list(recipes)
    read = {name for one in chosen for name in one.switches} or {"DUMP_ON", LOGPROBS}
    read |= {"TORCHDYNAMO_DISABLE"}
    names = [one.env for recipe in chosen for one in recipe.parameters if one.env in (ACTOR, ENGINE)]
    found = {name: value for name, value in all_switches.items() if name in read}
    if side == INFER and "DUMP_PHASE" in found:
        found["DUMP_PHASE"] = PREFILL
    return found | dict.fromkeys(names or [ENGINE if side == INFER else ACTOR], config)


def union(train: dict[str, str], infer: dict[str, str]) -> dict[str, str] | None:
    """The environment of one job that runs both sides; None when they contradict each other (one debugger a process: two runs)."""
    clash = any(train.get(name, value) != value for name, value in infer.items())
    return None if clash else {**train, **infer}
