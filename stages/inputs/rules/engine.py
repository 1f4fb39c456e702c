"""The engine's prefill: the whole prompt in one forward, every token computed."""

from __future__ import annotations

from locales import _
from stages.inputs.facts import Found
from stages.inputs.rules.reach import reached
from stages.inputs.rules.rule import Rule, Set, Verdict, failed, open_, passed, wants
from stages.inputs.run import Run


def _chunked(run: Run) -> Verdict | None:
    """Off, or the chunk holds the longest prompt."""
    chunked, tokens, length = run.get("chunked_prefill"), run.get("chunk_tokens"), run.get("prompt_length")
    if run.engine == "sglang" or run.framework in ("slime", "sglang"):
        return _sglang(run)
    if chunked is None:
        return None
    reason = _("a prompt that is computed in chunks is dumped in pieces, and no piece has the prompt's shape")
    if not chunked.known:
        return open_(chunked.why, chunked)
    if not chunked.value:
        return passed(reason, chunked)
    return _large_enough(reason, run, tokens, length, Set("chunked_prefill", False))


def _sglang(run: Run) -> Verdict | None:
    tokens, length = run.get("chunk_tokens"), run.get("prompt_length")
    if tokens is None:
        return None
    reason = _("SGLang computes a prompt in chunks of chunked_prefill_size tokens; -1: in one")
    wish = Set("chunk_tokens", -1)
    if tokens.known and isinstance(tokens.value, int) and tokens.value <= 0:
        return passed(reason, tokens)
    if not tokens.known and tokens.entry is None and not run.facts.base_unknown:
        text = _("chunked_prefill_size is not given, and SGLang's default depends on the device's memory")
        return failed(text, tokens, wishes=[wish])
    return _large_enough(reason, run, tokens, length, wish)


def _large_enough(reason: str, run: Run, tokens: Found | None, length: Found | None, wish: Set | None) -> Verdict:
    wishes = [wish] if wish is not None else []
    if tokens is None or length is None or not tokens.known or not length.known or length.value is None:
        why = next((one.why for one in (tokens, length) if one is not None and not one.known), "")
        text = _("chunked prefill is on; whether a chunk holds the longest prompt is not known")
        return open_(f"{text}: {why}" if why else text, tokens, length)
    assert isinstance(tokens.value, int) and isinstance(length.value, int)
    if tokens.value >= length.value:
        text = _("a chunk of {tokens} tokens holds the longest prompt of {length}")
        return passed(text.format(tokens=tokens.value, length=length.value), tokens, length)
    return failed(reason, tokens, length, wishes=wishes)


def _prompt_logprobs(run: Run) -> Verdict | None:
    """The recipes ask for them where PREFILL_LOGPROB_DIFF is on."""
    switch = reached(run, "PREFILL_LOGPROB_DIFF")
    if switch.state == "UNKNOWN":
        return open_(switch.reason)
    if switch.state == "PASS" and switch.value not in ("", "0"):
        reason = _("PREFILL_LOGPROB_DIFF is on: the recipes ask the engine for prompt_logprobs")
        return Verdict("PASS", reason, f"PREFILL_LOGPROB_DIFF={switch.value}", switch.where, assumes=switch.assumes)
    return passed(_("PREFILL_LOGPROB_DIFF is off: no metric needs the engine's prompt_logprobs"))


RULES = (
    Rule(
        "prefix-caching",
        "infer",
        _("prefix caching is off"),
        _("a cached prefix is not computed again: its tokens are missing from the dump"),
        wants("prefix_caching", False, _("tokens of a cached prefix are not computed, and not dumped")),
    ),
    Rule(
        "chunked-prefill",
        "infer",
        _("chunked prefill is off, or a chunk holds the longest prompt"),
        _("the prompt has to be one forward"),
        _chunked,
    ),
    Rule(
        "prompt-logprobs",
        "infer",
        _("prompt_logprobs are asked for where the metric needs them"),
        _("without the engine's log-probs of the prompt the prefill log-prob difference is not computed"),
        _prompt_logprobs,
    ),
)
