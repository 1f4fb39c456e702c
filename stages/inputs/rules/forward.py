"""The forward that is captured really runs, and no other one before it."""

from __future__ import annotations

from locales import _
from stages.inputs.facts import within
from stages.inputs.rules.rule import Rule, Set, Verdict, failed, open_, passed, wants
from stages.inputs.run import Run


def _validation(run: Run) -> Verdict | None:
    reason = _("a validation before the first step generates, too, and its forwards get into the dump")
    if run.framework == "verl":
        return wants("val_before_train", False, reason)(run)
    interval, skip = run.get("eval_interval"), run.get("skip_eval")
    if interval is None or skip is None:
        return None
    if skip.known and skip.value:
        return passed(reason, skip)
    if interval.known and interval.value is None:
        return passed(_("no --eval-interval, no evaluation"), interval)
    if not interval.known and interval.entry is None:
        return open_(interval.why, interval)
    return failed(reason, interval, skip, wishes=[Set("skip_eval", True)])


def _bypass(run: Run) -> Verdict | None:
    if run.framework == "verl":
        return wants(
            "bypass", False, _("in bypass mode the rollout's log-probs are taken, and no log-prob forward runs")
        )(run)
    rollout, metrics = run.get("bypass"), run.get("mismatch_metrics")
    if rollout is None or metrics is None:
        return None
    reason = _(
        "with --use-rollout-logprobs the log-prob forward is left out, unless --get-mismatch-metrics asks for it"
    )
    if not rollout.known or not metrics.known:
        return open_(rollout.why or metrics.why, rollout, metrics)
    if not rollout.value or metrics.value:
        return passed(reason, rollout, metrics)
    return failed(reason, rollout, metrics, wishes=[Set("bypass", False)])


def _main_forward(run: Run) -> Verdict | None:
    metrics = run.get("mismatch_metrics")
    if metrics is None:
        return None
    if not metrics.known:
        return open_(metrics.why, metrics)
    if metrics.value:
        tis = run.get("tis_function")
        if tis is not None and tis.known and tis.value is None:
            return failed(_("--get-mismatch-metrics stops at once without --custom-tis-function-path"), metrics, tis)
        return passed(_("--get-mismatch-metrics forces the main log-prob forward"), metrics)
    if run.facts.version is None:
        return open_(
            _(
                "from 0.3 on the main log-prob forward is left out where its result can be reused; the version is not known"
            ),
            metrics,
        )
    if run.framework == "slime" and within(run.facts.version, "<0.3"):
        return passed(_("slime before 0.3 always runs the log-prob forward"), metrics)
    reason = _("the main log-prob forward is left out where its result can be reused (can_reuse_log_probs_in_loss)")
    tis = run.get("tis_function")
    forced = [Set("mismatch_metrics", True)] if tis is not None and tis.entry is not None else []
    if not forced:
        reason += _("; --get-mismatch-metrics forces it, and needs --custom-tis-function-path")
    return failed(reason, metrics, wishes=forced)


RULES = (
    Rule(
        "no-validation",
        "both",
        _("no validation before the first step"),
        _("the first forwards that are dumped have to be those of the step"),
        _validation,
    ),
    Rule("bypass", "train", _("bypass mode is off"), _("the captured forward has to run at all"), _bypass),
    Rule(
        "main-forward",
        "train",
        _("slime, vime: the main log-prob forward is forced (--get-mismatch-metrics)"),
        _(
            "where its result can be reused it is skipped, and with PROMPTS_ONLY=0 nothing is dumped; "
            "the extra pass of PROMPTS_ONLY=1 runs in any case"
        ),
        _main_forward,
    ),
)
