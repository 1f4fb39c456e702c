"""How many processes each side of a run has, as far as its settings tell: what ranks of a dump can be."""

from __future__ import annotations

from collections.abc import Sequence

from stages.inputs.rules.numbers import Number, world
from stages.inputs.run import Run


def worlds(found: Sequence[Run]) -> dict[str, int | None]:
    """``train``: all processes; ``infer``: those of one engine (TP x PP), for each data-parallel engine counts its ranks from 0."""
    training = next((run for run in found if run.trains), None)
    engine = next((run for run in found if not run.trains), training)
    return {
        "train": world(training).value if training is not None else None,
        "infer": _engine(engine).value if engine is not None else None,
    }


def _engine(run: Run) -> Number:
    if run.framework in ("slime", "vime"):
        return Number.of(run.get("infer.per_engine"), "")
    return Number.of(run.get("infer.tp"), "").times(Number.of(run.get("infer.pp"), ""))
