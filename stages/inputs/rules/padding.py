"""Padding: the inputs of both sides are as long as the prompt really is."""

from __future__ import annotations

from locales import _
from stages.inputs.rules.rule import Rule, Set, Verdict, failed, open_, passed, unknown_of, wants
from stages.inputs.run import Run


def _remove_padding(run: Run) -> Verdict | None:
    reason = _("padding has to be removed, or the inputs of the two sides have different shapes (256 against 190, say)")
    if run.framework == "verl":
        if run.backend not in ("fsdp", "megatron"):
            entry = run.facts.entry("actor_rollout_ref.model.use_remove_padding")
            if entry is None or entry.text is None:
                return open_(
                    _("whether {backend} removes padding is not known here").format(backend=run.backend or "?")
                )
            ok = entry.text.lower() == "true"
            return Verdict("PASS" if ok else "FAIL", reason, entry.written, entry.where, assumes=entry.assumes)
        return wants("remove_padding", True, reason)(run)
    layout = run.get("qkv_format")
    if layout is None:
        return None
    if not layout.known:
        return open_(layout.why, layout)
    if layout.value == "thd":
        return passed(_("thd packs the sequences without padding between them"), layout)
    return failed(reason, layout, wishes=[Set("qkv_format", "thd")])


def _multiplier(run: Run) -> Verdict | None:
    """pad_size = TP x multiplier (slime, vime); the other side has to pad alike."""
    multiplier, tp = run.get("pad_multiplier"), run.get("train.tp")
    if multiplier is None:
        if run.framework == "verl" and run.backend == "megatron":
            return _megatron(run)
        return None
    missing = unknown_of(multiplier)
    if missing is not None:
        return missing
    reason = _("a packed batch is padded to a multiple of TP x this number")
    if multiplier.value != 1:
        return failed(reason, multiplier, tp, wishes=[Set("pad_multiplier", 1)])
    if tp is None or not tp.known:
        return open_(tp.why if tp else "", multiplier, tp)
    if tp.value == 1:
        return passed(reason, multiplier, tp)
    text = _(
        "TP is {tp}: the training side pads to a multiple of {tp}; both sides need the same pad_size, "
        "which only the shapes in the dumps show"
    )
    return open_(text.format(tp=tp.value), multiplier, tp)


def _megatron(run: Run) -> Verdict | None:
    tp, cp = run.get("train.tp"), run.get("train.cp")
    missing = unknown_of(tp, cp)
    if missing is not None or tp is None or cp is None:
        return missing
    assert isinstance(tp.value, int) and isinstance(cp.value, int)
    size = tp.value * cp.value * 2 if cp.value > 1 else tp.value
    if size == 1:
        return passed(_("TP and CP are 1: packed sequences are not padded"), tp, cp)
    text = _(
        "packed sequences are padded to a multiple of {size} (TP, or TP x 2 CP): both sides need the same pad_size, "
        "which only the shapes in the dumps show"
    )
    return open_(text.format(size=size), tp, cp)


RULES = (
    Rule(
        "remove-padding",
        "train",
        _("padding is removed"),
        _("the training input then is as long as the prompt really is, token by token comparable"),
        _remove_padding,
    ),
    Rule(
        "pad-multiplier",
        "train",
        _("packed batches are not padded (multiplier 1); with TP > 1 the same pad_size on both sides"),
        _("rest padding at the end of a packed batch makes the shapes differ"),
        _multiplier,
    ),
)
