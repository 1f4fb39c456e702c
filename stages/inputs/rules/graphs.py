"""Eager execution and determinism: msprobe hooks modules, which a captured or compiled graph does not call."""

from __future__ import annotations

from locales import _
from stages.inputs.rules.reach import reaches
from stages.inputs.rules.rule import Rule, Set, Verdict, failed, open_, passed, unknown_of, wants
from stages.inputs.run import Run


def _eager(run: Run) -> Verdict | None:
    eager = run.get("eager")
    if eager is None:
        return None
    reason = _("the engine has to run eagerly: hooks see nothing inside a captured graph")
    graphs = [found for found in (run.get("decode_graph"), run.get("prefill_graph")) if found is not None]
    if len(graphs) == 2 and all(found.known and found.value == "disabled" for found in graphs):
        return passed(reason, *graphs)
    if not eager.known:
        return open_(eager.why, eager)
    return passed(reason, eager) if eager.value else failed(reason, eager, wishes=[Set("eager", True)])


def _dynamo(run: Run) -> Verdict | None:
    reason = _("TORCHDYNAMO_DISABLE=1 keeps torch.compile from replacing modules on either side")
    return reaches(run, "TORCHDYNAMO_DISABLE", "1", reason)


def _seed(run: Run) -> Verdict | None:
    seeds = [found for found in (run.get("seed"), run.get("train_seed")) if found is not None]
    if not seeds:
        return None
    reason = _("a fixed seed: the same prompts in the same order in every run")
    missing = unknown_of(*seeds)
    if missing is not None:
        return missing
    unset = [found for found in seeds if found.value is None]
    if unset:
        return failed(reason, *seeds, wishes=[Set(found.name, 42) for found in unset])
    return passed(reason, *seeds)


def _shuffle(run: Run) -> Verdict | None:
    both = [found for found in (run.get("shuffle"), run.get("actor_shuffle")) if found is not None]
    if not both:
        return None
    reason = _("no shuffling: the n-th request is the same on both sides and in every run")
    on = [found for found in both if found.known and found.value]
    if on:
        return failed(reason, *both, wishes=[Set(found.name, False) for found in on])
    return unknown_of(*both) or passed(reason, *both)


RULES = (
    Rule(
        "eager",
        "infer",
        _("the engine runs eagerly, graphs are off"),
        _("msprobe hooks modules; a captured graph does not call them, and the dump stays partial or empty"),
        _eager,
    ),
    Rule(
        "dynamo",
        "both",
        _("TORCHDYNAMO_DISABLE=1 reaches the workers"),
        _("torch.compile would replace modules and fuse operators"),
        _dynamo,
    ),
    Rule("seed", "train", _("seeds are fixed"), _("two runs, and the two sides, see the same samples"), _seed),
    Rule("shuffle", "train", _("nothing is shuffled"), _("a request is found again by its place"), _shuffle),
    Rule(
        "temperature",
        "both",
        _("temperature 1"),
        _("raw log-probs at temperature 1 on both sides, or the prefill log-prob difference is refused"),
        wants("temperature", 1.0, _("log-probs of the two sides are compared at temperature 1")),
    ),
)
