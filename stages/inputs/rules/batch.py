"""Batches: every request alone in one micro-batch of one update, and on the rank where the other side has it."""

from __future__ import annotations

from locales import _
from stages.inputs.facts import Found
from stages.inputs.rules.numbers import Number, data_parallel, global_batch, sequences
from stages.inputs.rules.rule import Rule, Set, Verdict, failed, open_, passed, unknown_of, wants
from stages.inputs.run import Run


def _mini_batches(run: Run) -> Verdict | None:
    """mini_batch_num = 1."""
    if run.framework == "verl":
        prompts, mini = run.get("batch.prompts"), run.get("batch.mini")
        count = Number.of(prompts, _("train batch")).over(Number.of(mini, _("mini batch")))
        wished = [Set("batch.mini", prompts.value)] if prompts is not None and prompts.known else []
        return _must_be_one(count, _("mini-batches per step"), wished)
    if run.framework in ("slime", "vime"):
        steps, given = run.get("batch.steps"), run.get("batch.global")
        ranks = data_parallel(run).value  # the sequences of a rollout, once one prompt and n-samples = DP hold
        wished = [Set("batch.global", ranks)] if ranks and given is not None and given.value != ranks else []
        if steps is not None and steps.known and steps.value is not None:
            if steps.value != 1:
                wished.append(Set("batch.steps", 1))
            if given is None or not given.known or given.value is None:
                return _must_be_one(Number.of(steps, _("updates per rollout")), _("updates per rollout"), wished)
        return _must_be_one(sequences(run).over(global_batch(run)), _("updates per rollout"), wished)
    return None


def _must_be_one(count: Number, label: str, wishes: list[Set]) -> Verdict:
    if count.value is None:
        if count.wrong:
            return failed(_("{label}: {why}").format(label=label, why=count.why), *count.found, wishes=wishes)
        return open_(count.why, *count.found)
    reason = _("{label}: {number}").format(label=label, number=count)
    return passed(reason, *count.found) if count.value == 1 else failed(reason, *count.found, wishes=wishes)


def _accumulation(run: Run) -> Verdict | None:
    """gac = 1, from global, mini and micro batch and DP."""
    dynamic = run.get("batch.dynamic")
    if dynamic is None:
        return None
    if not dynamic.known or dynamic.value:
        why = _("with dynamic batches the number of micro-batches depends on the lengths of the sequences")
        return open_(why if dynamic.known else dynamic.why, dynamic)
    if run.framework == "verl":
        held = Number.of(run.get("batch.mini"), _("mini batch")).times(
            Number.of(run.get("batch.samples"), _("samples"))
        )
    else:
        held = global_batch(run)
    return _micro_batches(run, held, run.get("batch.micro"), "batch.micro", _("micro-batches of an update"))


def _log_prob_micro(run: Run) -> Verdict | None:
    """The forward that is captured: one micro-batch, so that step 0 holds it."""
    if run.framework != "verl":
        return None
    dynamic = _log_prob_dynamic(run)
    if not dynamic.known or dynamic.value:
        why = _("with dynamic batches the number of micro-batches depends on the lengths of the sequences")
        return open_(why if dynamic.known else dynamic.why, dynamic)
    micro, label = run.get("batch.log_prob_micro"), _("micro-batches of the log-prob forward")
    return _micro_batches(run, sequences(run), micro, "batch.log_prob_micro", label)


def _micro_batches(run: Run, held: Number, micro: Found | None, setting: str, label: str) -> Verdict:
    share = held.over(data_parallel(run))
    wanted = share.value if run.framework == "verl" else 1  # slime, vime: one sample for each rank
    wishes = [Set(setting, wanted)] if wanted and (micro is None or micro.value != wanted) else []
    if micro is not None and micro.known and micro.value is None:
        return failed(
            _("{label}: the micro-batch size per device is not given").format(label=label), micro, wishes=wishes
        )
    return _must_be_one(share.over(Number.of(micro, _("micro batch"))), label, wishes)


def _log_prob_dynamic(run: Run) -> Found:
    """verl's log-prob forward takes the actor's setting where it has none of its own."""
    own, actor = run.get("batch.log_prob_dynamic"), run.get("batch.dynamic")
    assert own is not None and actor is not None
    return own if own.entry is not None or run.facts.base_unknown else actor


def _dynamic(run: Run) -> Verdict | None:
    actor = run.get("batch.dynamic")
    if actor is None:
        return None
    reason = _("dynamic batches pack requests by length, so micro-batches of the two sides hold different requests")
    both = [actor] if run.framework != "verl" else [actor, _log_prob_dynamic(run)]
    on = [found for found in both if found.known and found.value]
    if on:
        wishes = [Set(found.name, False) for found in dict.fromkeys(on)]
        return failed(reason, *both, wishes=wishes)
    return unknown_of(*both) or passed(reason, *both)


def _one_prompt(run: Run) -> Verdict | None:
    if run.framework not in ("slime", "vime"):
        return None
    prompts = run.get("batch.prompts")
    assert prompts is not None
    reason = _("one prompt a step, so that every rank holds a sample of the same prompt")
    if not prompts.known:
        return open_(prompts.why, prompts)
    if prompts.value == 1:
        return passed(reason, prompts)
    ranks = data_parallel(run)  # alone it would leave a step without enough samples for the ranks
    return failed(reason, prompts, wishes=[Set("batch.prompts", 1)] if ranks.value is not None else [])


def _samples_per_rank(run: Run) -> Verdict | None:
    """n-samples = DP."""
    if run.framework not in ("slime", "vime"):
        return None
    samples, ranks = run.get("batch.samples"), data_parallel(run)
    if ranks.value is None:
        return open_(ranks.why, samples, *ranks.found)
    if samples is None or not samples.known:
        return open_(samples.why if samples else "", samples, *ranks.found)
    reason = _("samples per prompt has to be DP, one for each rank: DP = {ranks}").format(ranks=ranks)
    if samples.value == ranks.value:
        return passed(reason, samples, *ranks.found)
    return failed(reason, samples, *ranks.found, wishes=[Set("batch.samples", ranks.value)])


RULES = (
    Rule(
        "mini-batches",
        "train",
        _("one mini-batch a step (mini_batch_num = 1)"),
        _("a second mini-batch runs on changed weights, and its requests come in another order"),
        _mini_batches,
    ),
    Rule(
        "gradient-accumulation",
        "train",
        _("one micro-batch an update (gradient accumulation = 1)"),
        _(
            "the batch of a rank is one forward: global or mini batch / DP / micro batch = 1, DP = world / (TP x PP x CP)"
        ),
        _accumulation,
    ),
    Rule(
        "log-prob-micro-batches",
        "train",
        _("the log-prob forward is one micro-batch"),
        _("it is the forward that is captured; train batch x samples / DP / micro batch = 1"),
        _log_prob_micro,
    ),
    Rule(
        "dynamic-batch",
        "train",
        _("dynamic batches are off"),
        _("which requests share a micro-batch must not depend on their lengths"),
        _dynamic,
    ),
    Rule(
        "balance-batch",
        "train",
        _("balancing of batches is off"),
        _("it moves requests to other ranks by length: one request then sits on different cards on the two sides"),
        wants("batch.balance", False, _("balancing moves requests to other ranks")),
    ),
    Rule(
        "dynamic-sampling",
        "train",
        _("no prompts are filtered out or sampled again"),
        _("the trained batch would not be the generated one"),
        wants(
            "batch.filter",
            False,
            _("filtered groups are sampled again, so the batch is not the one that was asked for"),
        ),
    ),
    Rule(
        "one-prompt",
        "train",
        _("slime, vime: one prompt a rollout"),
        _("with n-samples = DP each rank then holds one sample of one and the same prompt"),
        _one_prompt,
    ),
    Rule(
        "samples-per-rank",
        "train",
        _("slime, vime: n-samples-per-prompt = DP"),
        _("each rank gets exactly one sample"),
        _samples_per_rank,
    ),
)
