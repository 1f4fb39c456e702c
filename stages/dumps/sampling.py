"""Whether two sides' log-probs mean the same: before temperature and cuts (raw) or after them (processed)."""

from __future__ import annotations

from dataclasses import dataclass

from locales import _
from stages.sides import INFER, TRAIN

RAW, PROCESSED = "raw", "processed"
_WHOLE_VOCABULARY = 1 << 20
"""A top_k from here on cuts nothing (SGLang says 1 << 30)."""


@dataclass(frozen=True)
class Sampling:
    """``mode``: raw or processed, with vLLM's ending _logprobs or without; a trainer that divides its logits by the temperature is
    processed. None is unknown; top_p and top_k that nobody set are 1 and off."""

    mode: str | None
    temperature: float | None
    top_p: float | None = None
    top_k: int | None = None

    @property
    def kind(self) -> str:
        return (self.mode or "").removesuffix("_logprobs")

    @property
    def cuts(self) -> bool:
        return self.top_p not in (None, 1) or 0 < (self.top_k or 0) < _WHOLE_VOCABULARY

    @property
    def plain(self) -> bool:
        """At temperature 1 without cuts, raw and processed are the same."""
        return self.temperature == 1 and not self.cuts


@dataclass(frozen=True)
class Semantics:
    """``reasons``: why nothing may be computed; ``notes``: what to know about what is."""

    reasons: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def comparable(self) -> bool:
        return not self.reasons


def check_semantics(train: Sampling, infer: Sampling) -> Semantics:
    """Raw at temperature 1 on both sides is what is asked for; processed on both sides in the same way passes with a note."""
    reasons = [reason for name, one in ((TRAIN, train), (INFER, infer)) for reason in _reasons(name, one)]
    if None not in (train.temperature, infer.temperature) and train.temperature != infer.temperature:
        told = _("the temperatures differ: {train:g} and {infer:g}")
        reasons.append(told.format(train=train.temperature, infer=infer.temperature))
    if {train.kind, infer.kind} == {RAW, PROCESSED} and not (train.plain and infer.plain):
        told = _("sampling semantics differ: {train} on the training side, {infer} on the inference side")
        reasons.append(told.format(train=train.kind, infer=infer.kind))
    notes = []
    if not reasons and not train.plain:
        told = _("processed at temperature {temperature:g} on both sides: not the model's own log-probs")
        notes.append(told.format(temperature=train.temperature))
    return Semantics(tuple(dict.fromkeys(reasons)), tuple(notes))


def _reasons(side: str, one: Sampling) -> list[str]:
    found = []
    if one.kind not in (RAW, PROCESSED):
        told = _("the {side} side does not say whether its log-probs are raw or processed")
        if one.mode:
            told = _("the {side} side gives {mode}, which are no log-probs")
        found.append(told.format(side=side, mode=one.mode))
    if one.temperature is None:
        found.append(_("the {side} side does not say its temperature").format(side=side))
    elif one.temperature <= 0:
        told = _("temperature {temperature:g} on the {side} side: no distribution is left")
        found.append(told.format(temperature=one.temperature, side=side))
    elif one.kind == RAW and one.temperature != 1:
        told = _("temperature {temperature:g} with raw log-probs on the {side} side: they come before the temperature")
        found.append(told.format(temperature=one.temperature, side=side))
    if one.cuts:
        told = _("top_p {top_p} and top_k {top_k} on the {side} side cut the distribution: 1 and off are needed")
        found.append(told.format(top_p=1 if one.top_p is None else one.top_p, top_k=one.top_k or _("off"), side=side))
    return found
