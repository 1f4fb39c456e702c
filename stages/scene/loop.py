"""The loop that the captured forward stands in: an explicit one over micro-batches, or a schedule that calls it back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from stages.scene.places import FOUND, Place
from stages.scene.reading import Line, Reading

LOOP, SCHEDULE, STEP = "micro-batch loop", "megatron schedule", "engine step"
_BATCHES = re.compile(r"(micro|mini)_?batch", re.IGNORECASE)
_SCHEDULE = r"^ *(?:\w[\w, ]*= *)?(?:get_forward_backward_func|forward_backward_func|self\.forward_backward_func)\("


@dataclass(frozen=True)
class Loop:
    """``shape`` is one of the three words; ``line`` is the loop's or the schedule's own; ``runs`` as of the capture place in it."""

    shape: str
    line: Line
    recipe: str
    runs: bool | None


def loops(captures: Iterable[Place], side: str, reading: Reading) -> tuple[Loop, ...]:
    """One for each recipe's capture place, where the tree tells it."""
    found: dict[str, Loop] = {}
    for place in captures:
        if place.state != FOUND or place.line is None or place.recipe in found:
            continue
        one = _engine_step(place) if side == "infer" else _loop(place, reading)
        if one is not None:
            found[place.recipe] = one
    return tuple(found.values())


def _engine_step(place: Place) -> Loop:
    assert place.line is not None
    return Loop(STEP, Line(place.file, place.line, place.code), place.recipe, place.runs)


def _loop(place: Place, reading: Reading) -> Loop | None:
    assert place.line is not None
    for node in reversed(reading.around(place.file, place.line)):
        if isinstance(node, ast.For) and _BATCHES.search(f"{ast.unparse(node.target)} {ast.unparse(node.iter)}"):
            line = Line(place.file, node.lineno, reading.statement(place.file, node.lineno))
            return Loop(LOOP, line, place.recipe, place.runs)
    schedule = reading.find((place.file,), _SCHEDULE)
    return Loop(SCHEDULE, schedule, place.recipe, place.runs) if schedule is not None else None
