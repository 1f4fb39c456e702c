"""How far the two sides' probabilities of the responses are apart, as the training log says: verl's rollout_probs_diff, slime's
train_rollout_logprob_abs_diff.

What decides whether it was measured is whether the response mask had tokens. A zero that nothing speaks for is no agreement.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from locales import _
from stages.dumps.logs import log_lines
from stages.dumps.problem import ERROR, Problem

MEASURED, EVIDENCE_MISSING = "measured", "evidence_missing"
PROBS, LOGPROBS = "rollout_probs_diff", "train_rollout_logprob_abs_diff"
_NUMBER = r"(?:np\.float\d+\(|tensor\()?([-+]?\d[\d.]*(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)|NaN|null|None)"
_VALUE = re.compile(
    rf"(?<![\w.])(?:(?:training|train|actor)/)?(rollout_probs_diff_(?:valid|mean|max|std)|rollout_actor_probs_pearson_corr"
    rf"|train_rollout_logprob_abs_diff|entropy_loss|ppo_kl|pg_loss)['\"]?\s*[:=]\s*{_NUMBER}"
)
_STEP = re.compile(r"\bstep['\"]?\s*[:= ]\s*(\d{1,12})")
_WITNESSES = ("entropy_loss", "ppo_kl", "pg_loss")
"""slime's means over the tokens of the same mask: where one is not zero, there were tokens."""
_KEYS = {
    PROBS: {
        "mean": "rollout_probs_diff_mean",
        "max": "rollout_probs_diff_max",
        "std": "rollout_probs_diff_std",
        "pearson_corr": "rollout_actor_probs_pearson_corr",
    },
    LOGPROBS: {"mean": LOGPROBS},
}
_MOST_READINGS = 10_000


@dataclass(frozen=True)
class Reading:
    """One line of a log. ``values``: mean, max, std, pearson_corr, as far as printed and finite; empty unless measured."""

    name: str
    status: str
    values: Mapping[str, float]
    step: int | None
    where: str
    reason: str


@dataclass(frozen=True)
class Metric:
    """``readings``: every line that has it; ``chosen``: the first that was measured."""

    name: str
    status: str
    chosen: Reading | None
    readings: tuple[Reading, ...]
    reason: str
    problems: tuple[Problem, ...] = ()


def response_metrics(logs: Iterable[Path]) -> dict[str, Metric]:
    """Both metrics by name, from what the console shows or from files of JSON lines."""
    readings: dict[str, list[Reading]] = {name: [] for name in _KEYS}
    problems: list[Problem] = []
    for log in logs:
        try:
            for reading in _readings(log):
                if len(readings[reading.name]) < _MOST_READINGS:
                    readings[reading.name].append(reading)
        except OSError as error:
            what = _("cannot be read: {why}").format(why=error.strerror)
            problems.append(Problem("log-unreadable", ERROR, what, str(log)))
    return {name: _metric(name, found, tuple(problems)) for name, found in readings.items()}


def _metric(name: str, readings: list[Reading], problems: tuple[Problem, ...]) -> Metric:
    chosen = next((one for one in readings if one.status == MEASURED), None)
    if chosen:
        return Metric(name, MEASURED, chosen, tuple(readings), chosen.reason, problems)
    reason = _("no log has it; it needs the rollout's log-probs and a standard step with PROMPTS_ONLY=0")
    if readings:
        told = _("{reason}; run a standard step with PROMPTS_ONLY=0")
        reason = told.format(reason=readings[-1].reason)
    return Metric(name, EVIDENCE_MISSING, None, tuple(readings), reason, problems)


def _readings(log: Path) -> Iterator[Reading]:
    for number, text in log_lines(log):
        if PROBS not in text and LOGPROBS not in text:
            continue
        found = {match[1]: match[2] for match in _VALUE.finditer(text)}
        step = _STEP.search(text)
        for name, keys in _KEYS.items():
            if any(key in found for key in keys.values()):
                status, reason = _judge(found, keys)
                values = {short: _float(found[key]) for short, key in keys.items() if key in found}
                finite = {short: value for short, value in values.items() if math.isfinite(value)}
                shown = finite if status == MEASURED else {}
                yield Reading(name, status, shown, int(step[1]) if step else None, f"{log}:{number}", reason)


def _judge(found: Mapping[str, str], keys: Mapping[str, str]) -> tuple[str, str]:
    """Whether the response mask had tokens, by what stands in the same line."""
    mean = _float(found.get(keys["mean"], "nan"))
    valid = None if keys["mean"] == LOGPROBS else found.get("rollout_probs_diff_valid")
    if valid is not None and _float(valid) != 1:
        return EVIDENCE_MISSING, _("valid is {valid}: the response mask has no tokens").format(valid=valid)
    if not math.isfinite(mean):
        return EVIDENCE_MISSING, _("the mean is {mean}: nothing was measured").format(mean=found.get(keys["mean"], "?"))
    if valid is not None:
        return MEASURED, _("valid is 1: the response mask has tokens")
    if mean != 0:
        return MEASURED, _("the mean is not zero, so there were tokens")
    witness = next((name for name in _WITNESSES if _is_nonzero(found.get(name))), None)
    if witness and keys["mean"] == LOGPROBS:
        return MEASURED, _("{name} is a mean over the same tokens and not zero").format(name=witness)
    return EVIDENCE_MISSING, _("a zero, and nothing says that the response mask has tokens")


def _is_nonzero(text: str | None) -> bool:
    value = math.nan if text is None else _float(text)
    return math.isfinite(value) and value != 0


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
