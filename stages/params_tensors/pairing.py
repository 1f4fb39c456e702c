"""Which tensors belong together, and what their names, shapes and dtypes alone say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from locales import _
from stages.params_tensors.dtypes import FLOATS, PACKED, READABLE
from stages.params_tensors.naming import Named
from stages.params_tensors.tensors import BUFFER, View
from stages.params_tensors.verdicts import (
    DTYPE_DIFF,
    EXACT,
    EXACT_UP_TO_PADDING,
    MISSING_SIDE,
    QUANTIZED,
    SHAPE_DIFF,
    UNSUPPORTED,
    Finding,
    Pair,
    Pairing,
)

TRAIN, INFER = "train", "infer"
HEAD, EMBEDDING = "lm_head.weight", "embed_tokens.weight"
_SCALES = ("_scale_inv", "_scale", "_scales")


@dataclass(frozen=True)
class Wish:
    """``vocab`` are the names whose first dimension is the vocabulary, of ``vocab_size`` used rows (None: unknown). ``tied`` says
    by side whether the head is the embedding; None: not known."""

    vocab: tuple[str, ...]
    vocab_size: int | None
    tied: Mapping[str, bool | None]


def pair(train: Named, infer: Named, wish: Wish) -> Pairing:
    """All pairs, and all names that are on one side only."""
    both = sorted(set(train.views) & set(infer.views))
    ignored = {TRAIN: dict(train.ignored), INFER: dict(infer.ignored)}
    pairs = [_pair(name, train.views[name], infer.views[name], train, infer, wish) for name in both]
    missing: list[Finding] = []
    for side, own, other in ((TRAIN, train, infer), (INFER, infer, train)):
        for name in sorted(set(own.views) - set(other.views)):
            found = _alone(name, side, own, other, wish, ignored[side])
            if isinstance(found, Pair):
                pairs.append(found)
            elif found is not None:
                missing.append(found)
        pairs += _own_head(side, own, wish)
        pairs += _replicas(side, own, wish)
    notes = [f"{side}: {note}" for side, own in ((TRAIN, train), (INFER, infer)) for note in own.notes]
    return Pairing(tuple(pairs), tuple(missing), ignored, tuple(notes))


def _pair(name: str, a: View, b: View, train: Named, infer: Named, wish: Wish) -> Pair:
    why = a.unsupported or b.unsupported or _unreadable(a) or _unreadable(b)
    if why:
        return Pair(name, a, b, UNSUPPORTED, why)
    note = ""
    if a.kind and b.kind and a.kind != b.kind:
        note = _("a {a} on the train side, a {b} on the infer side").format(a=a.kind, b=b.kind)
    verdict, rows = EXACT, None
    is_vocab = any(fnmatchcase(name, pattern) for pattern in wish.vocab)
    if (
        is_vocab
        and wish.vocab_size is not None
        and a.shape
        and b.shape
        and min(a.shape[0], b.shape[0]) >= wish.vocab_size
    ):
        rows = wish.vocab_size if max(a.shape[0], b.shape[0]) > wish.vocab_size else None
    if a.shape != b.shape:
        if rows is None or a.shape[1:] != b.shape[1:]:
            unknown = _("; the vocabulary's size is not known") if is_vocab and wish.vocab_size is None else ""
            return Pair(name, a, b, SHAPE_DIFF, note + unknown)
        verdict = EXACT_UP_TO_PADDING
    scale = _scale(name, a, train) or _scale(name, b, infer)
    if a.dtype != b.dtype:
        packed = (a.dtype in PACKED and b.dtype in FLOATS) or (b.dtype in PACKED and a.dtype in FLOATS)
        verdict = QUANTIZED if packed and (scale is not None or not {a.dtype, b.dtype} <= FLOATS) else DTYPE_DIFF
    return Pair(name, a, b, verdict, note, rows, scale if verdict == QUANTIZED else None)


def _unreadable(view: View) -> str:
    return "" if view.dtype in READABLE else _("dtype {dtype}").format(dtype=view.dtype)


def _scale(name: str, view: View, own: Named) -> View | None:
    """The scale that belongs to a quantised tensor of the same side."""
    if view.dtype not in PACKED:
        return None
    return next((own.views[name + end] for end in _SCALES if name + end in own.views), None)


# --- on one side only -------------------------------------------------------------------------------------------------


def _alone(
    name: str, side: str, own: Named, other: Named, wish: Wish, ignored: dict[str, str]
) -> Pair | Finding | None:
    """A finding, or a pair with what it is tied to; None for what is listed as ignored."""
    view = own.views[name]
    if name in own.aliases and not name.endswith(HEAD):
        ignored[name] = _("the same memory as {name}").format(name=own.aliases[name])
        return None
    if any(fnmatchcase(name, pattern) for pattern in own.alone):
        ignored[name] = _("by rule: the other side has none")
        return None
    if view.kind == BUFFER and not view.persistent:
        ignored[name] = _("a buffer that is not part of the state dict")
        return None
    lacking = INFER if side == TRAIN else TRAIN
    if name.endswith(HEAD) and wish.tied[lacking]:
        embedding = next((one for one in sorted(other.views) if one.endswith(EMBEDDING)), None)
        if embedding is not None:
            views = (view, other.views[embedding]) if side == TRAIN else (other.views[embedding], view)
            found = _pair(name, *views, *((own, other) if side == TRAIN else (other, own)), wish)
            return replace(
                found, note=_("tied: the {side} side has {name} in its place").format(side=lacking, name=embedding)
            )
    note = _("only on the {side} side").format(side=side)
    for end in _SCALES:
        base = name.removesuffix(end)
        if base != name and base in own.views:
            note += _("; the scale of {name}").format(name=base)
    packed = name.removesuffix("weight") + "qweight"
    if name.endswith(".weight") and packed in other.views:
        views = (view, other.views[packed]) if side == TRAIN else (other.views[packed], view)
        why = _("the {side} side holds {name}, which needs a rule to be dequantised").format(side=lacking, name=packed)
        return Pair(name, *views, QUANTIZED, why)
    return Finding(name, MISSING_SIDE, view if side == TRAIN else None, view if side == INFER else None, note)


def _own_head(side: str, own: Named, wish: Wish) -> list[Pair]:
    """A head that is stored although it is tied has to be the embedding: a loader drops it."""
    head = next((one for one in sorted(own.views) if one.endswith(HEAD)), None)
    embedding = next((one for one in sorted(own.views) if one.endswith(EMBEDDING)), None)
    if not wish.tied[side] or head is None or embedding is None or head in own.aliases:
        return []
    found = _pair(f"{head} = {embedding} ({side})", own.views[head], own.views[embedding], own, own, wish)
    return [
        replace(
            found,
            note=_("the {side} side is tied, but stores a head of its own, which a loader drops").format(side=side),
        )
    ]


def _replicas(side: str, own: Named, wish: Wish) -> list[Pair]:
    out = []
    for first, second in own.replicas:
        ranks = _("rank {a} and rank {b}").format(a=first.leaves[0].rank, b=second.leaves[0].rank)
        found = _pair(f"{first.name} ({side}: {ranks})", first, second, own, own, wish)
        out.append(replace(found, note=found.note or _("copies of one piece")))
    return out
