"""All rules, in the order of a report."""

from __future__ import annotations

from stages.inputs.rules import batch, engine, forward, graphs, package, padding, parallel, ray
from stages.inputs.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    *batch.RULES,
    *padding.RULES,
    *graphs.RULES,
    *parallel.RULES,
    *forward.RULES,
    *engine.RULES,
    *ray.RULES,
    *package.RULES,
)
