"""The disk: what the dumps of both sides need, against what is free where they go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from locales import _
from stages.preflight.finding import OK, PROBLEM, UNKNOWN, Finding
from stages.preflight.size import estimate, longest
from stages.sides import INFER, TRAIN


@dataclass(frozen=True)
class Plan:
    """What shall be captured: ``tokens`` of the prompt, None when it is not known; ``ranks`` of each side that dump."""

    level: str = "L0"
    task: str = "tensor"
    tokens: int | None = None
    ranks: int = 1


def check(
    plan: Plan, models: Mapping[str, Mapping[str, Any]], roots: Mapping[str, Mapping[str, Any]], shared: bool
) -> list[Finding]:
    """``models``: the folder of weights as each side sees it; ``roots``: the artefact root, likewise; ``shared``: both sides write
    to one disk."""
    names = [name for name in (TRAIN, INFER) if name in roots]
    if not names:
        return [
            Finding(
                "disk", TRAIN, UNKNOWN, _("where the dumps go is not known"), _("`probepatch task set artifacts=/…`")
            )
        ]
    if shared and len(names) == 2:
        return [_one(plan, models, roots[names[0]], ", ".join(names), 2)]
    return [_one(plan, models, roots[name], name, 1) for name in names]


def _one(
    plan: Plan, models: Mapping[str, Mapping[str, Any]], root: Mapping[str, Any], place: str, sides: int
) -> Finding:
    free = root.get("free")
    model = next((one for one in models.values() if one.get("config") is not None), None)
    facts: dict[str, Any] = {**vars(plan), "free_bytes": free, "needed_bytes": None, "fits_tokens": None}
    todo = _("`probepatch preflight --tokens N` with the length of the prompt")
    if model is None:
        what = _("what the dump needs is not known: no config.json could be read; free: {free}").format(
            free=human(free)
        )
        return Finding("disk", place, UNKNOWN, what, _("mend the model's folder first"), facts)
    size, lacking = estimate(model["config"], model["bytes"], plan.level, plan.task)
    if size is None:
        what = _("what the dump needs is not known: config.json has no usable {keys}; free: {free}").format(
            keys=", ".join(lacking), free=human(free)
        )
        return Finding("disk", place, UNKNOWN, what, _("see yourself that the space will do"), facts)
    if free is None:
        return Finding("disk", place, UNKNOWN, _("the free space is not known"), _("look there with df"), facts)
    copies = sides * plan.ranks
    fits = None if not size.per_token else max(0, (free // copies - size.once) // size.per_token)
    most = longest(model["config"])
    tokens = plan.tokens if plan.tokens is not None else 0 if not size.per_token else most
    what = _("{task} at {level}, {ranks} rank(s) of {sides} side(s): {once} and {token} a token; free: {free}").format(
        task=plan.task,
        level=plan.level,
        ranks=plan.ranks,
        sides=sides,
        once=human(copies * size.once),
        token=human(copies * size.per_token),
        free=human(free),
    )
    facts |= {"once_bytes": copies * size.once, "per_token_bytes": copies * size.per_token, "fits_tokens": fits}
    if tokens is not None:
        facts["needed_bytes"] = copies * size.of(tokens)
    if most is not None and plan.tokens is not None and plan.tokens > most:
        what += _("; {tokens} tokens are more than the {most} that the model takes").format(
            tokens=plan.tokens, most=most
        )
        return Finding("disk", place, PROBLEM, what, _("--tokens is the length of the prompt"), facts)
    if free < copies * size.of(plan.tokens or 0):
        return Finding(
            "disk", place, PROBLEM, what, _("free some space, name another root, or take `statistics`"), facts
        )
    if tokens is not None and free >= copies * size.of(tokens):
        return Finding("disk", place, OK, what, facts=facts)
    return Finding("disk", place, UNKNOWN, what + _("; enough for {fits} tokens").format(fits=fits), todo, facts)


def human(count: int | None) -> str:
    if count is None:
        return "?"
    value, units = float(count), ["B", "kB", "MB", "GB", "TB", "PB"]
    while value >= 1000 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.0f} {units[0]}" if units[0] in ("B", "kB") else f"{value:.1f} {units[0]}"


def same_disk(roots: Sequence[Mapping[str, Any]], same_host: bool) -> bool:
    """Whether both sides are taken to write to one disk: on one host, and disks of one size. If they are two, more is asked for
    than is needed."""
    return same_host and len(roots) == 2 and roots[0].get("total") == roots[1].get("total")
