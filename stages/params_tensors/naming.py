"""One side under plain names: renamed, fused tensors split, the pieces of all ranks put together. No tensor is read for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase, translate

from locales import _
from stages.params_tensors.rules import Rules, Split, filled
from stages.params_tensors.tensors import Leaf, Problem, Shard, Side, View, joined

EXPERT_COUNTS = ("num_experts", "n_routed_experts", "num_local_experts", "num_moe_experts")


@dataclass(frozen=True)
class Piece:
    """A plain tensor, or a part of one, as one rank has it. ``shard`` is where it belongs; None: it is the whole."""

    view: View
    shard: Shard | None
    rank: int | None


@dataclass
class Named:
    """``views`` by plain name; ``replicas`` are pairs that the ranks should hold alike; ``ignored`` maps a name to the reason;
    ``alone`` are patterns of names that only one side may have."""

    views: dict[str, View] = field(default_factory=dict)
    replicas: list[tuple[View, View]] = field(default_factory=list)
    ignored: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    alone: tuple[str, ...] = ()


class Numbers:
    """Numbers of the model: what the user said, else the side's own config, else the other side's."""

    def __init__(self, said: Mapping[str, int], *sides: Side) -> None:
        self._said, self._sides = said, sides

    def get(self, text: str) -> int | None:
        """A number by its name, or a sum of names; None when one of them is unknown."""
        found = [self._one(word.strip()) for word in text.split("+")]
        return None if any(one is None for one in found) else sum(one for one in found if one is not None)

    def first(self, names: Iterable[str]) -> int | None:
        return next((one for name in names if (one := self._one(name)) is not None), None)

    def _one(self, name: str) -> int | None:
        if name in self._said:
            return self._said[name]
        return next((one for side in self._sides if (one := side.number(name)) is not None), None)


def named(side: Side, rules: Rules, numbers: Numbers) -> Named:
    """The side's tensors by plain name."""
    out = Named(alone=rules.ignore_alone)
    pieces: dict[str, list[Piece]] = {}
    ignored = re.compile("|".join(map(translate, rules.ignore))) if rules.ignore else None
    for stored, leaves in side.leaves.items():
        if ignored is not None and ignored.match(stored):
            out.ignored[stored] = _("by rule")
            continue
        for leaf in leaves:
            for name, piece in _plain(leaf, side, rules, numbers, out):
                pieces.setdefault(name, []).append(piece)
                if leaf.alias_of:
                    out.aliases[name] = leaf.alias_of
    for name, found in pieces.items():
        _together(name, found, out)
    return out


def _plain(leaf: Leaf, side: Side, rules: Rules, numbers: Numbers, out: Named) -> list[tuple[str, Piece]]:
    """The plain names that a leaf stands for."""
    stored = leaf.name
    for text in rules.strip:
        stored = stored.replace(text, "")
    ranks = side.parallel.get(leaf.rank, {}) if leaf.rank is not None else {}
    shard = leaf.shard or _by_rule(stored, rules, ranks)
    first = _first_expert(ranks, numbers)
    words: Mapping[str, str]
    for pattern, to in rules.rename:
        if found := pattern.fullmatch(stored):
            words = _counted(found.groupdict(), first)
            stored = filled(to, words)
            break
    for split in rules.split:
        if found := split.pattern.fullmatch(stored):
            words = _counted(found.groupdict(), first)
            parts = _parts(leaf, split, shard, words, numbers, first)
            if isinstance(parts, str):
                out.notes.append(f"{leaf.name}: {parts}")
                break
            return parts
    return [(stored, Piece(View.of(leaf, stored), shard, leaf.rank))]


def _by_rule(stored: str, rules: Rules, ranks: Mapping[str, int]) -> Shard | None:
    count = ranks.get("tp", 1)
    if count < 2:
        return None
    dim = next((dim for pattern, dim in rules.join if fnmatchcase(stored, pattern)), None)
    return None if dim is None else Shard(dim, ranks.get("tp_rank", 0), count)


def _first_expert(ranks: Mapping[str, int], numbers: Numbers) -> int:
    """The number of this rank's first expert: every rank of an expert-parallel group counts its own from 0."""
    count = ranks.get("ep", 1)
    total = numbers.first(EXPERT_COUNTS) if count > 1 else None
    return ranks.get("ep_rank", 0) * (total // count) if total else 0


def _counted(words: Mapping[str, str], first: int) -> Mapping[str, str]:
    return {**words, "expert": str(int(words["expert"]) + first)} if "expert" in words else words


# --- fused tensors ----------------------------------------------------------------------------------------------------


def _parts(
    leaf: Leaf, split: Split, shard: Shard | None, words: Mapping[str, str], numbers: Numbers, first: int
) -> list[tuple[str, Piece]] | str:
    """The parts of a fused tensor by plain name, or why it cannot be split."""
    if not leaf.shape or (shard is not None and shard.dim == 0 and split.layout == "experts"):
        return _("not split: it has no rows that could be")
    sizes = [numbers.get(text) for text in split.sizes] or [1] * len(split.to)
    if unknown := [text for text, size in zip(split.sizes, sizes, strict=False) if size is None]:
        return _("not split: {names} unknown").format(names=", ".join(dict.fromkeys(unknown)))
    known = [size for size in sizes if size is not None]
    if split.layout == "experts":
        return _experts(leaf, split, shard, words, known, first)
    count = shard.count if shard is not None and shard.dim == 0 else 1
    heads = split.layout in ("qkv", "gqa")
    local = [max(size // count, 1) for size in known] if heads else known
    groups = local[1] if split.layout == "gqa" else 1
    cut = _cut(leaf, [size // groups for size in local] if groups > 1 or heads else local, groups)
    if cut is None:
        return _uneven(leaf.shape[0], local)
    out = []
    for template, size, leaves in zip(split.to, known, cut, strict=True):
        name = filled(template, words)
        place = shard
        if shard is not None and heads and count > size:
            place = Shard(shard.dim, shard.index * size // count, size)
        rows = sum(one.shape[0] for one in leaves)
        view = View(name, leaf.dtype, (rows, *leaf.shape[1:]), tuple(leaves), 0, leaf.unsupported)
        out.append((name, Piece(view, place, leaf.rank)))
    return out


def _cut(leaf: Leaf, sizes: Sequence[int], groups: int) -> list[list[Leaf]] | None:
    """The rows of each part, group after group; None when they do not come out even."""
    unit, rest = divmod(leaf.shape[0], groups * sum(sizes)) if groups * sum(sizes) else (0, 1)
    if rest or not unit:
        return None
    out: list[list[Leaf]] = [[] for _size in sizes]
    at = 0
    for _group in range(groups):
        for part, size in zip(out, sizes, strict=True):
            part.append(leaf.rows(at, at + size * unit, (size * unit, *leaf.shape[1:])))
            at += size * unit
    return out


def _uneven(rows: int, sizes: Sequence[int]) -> str:
    return _("not split: {rows} rows do not come out even in parts of {sizes}").format(
        rows=rows, sizes=" : ".join(map(str, sizes))
    )


def _experts(
    leaf: Leaf, split: Split, shard: Shard | None, words: Mapping[str, str], sizes: Sequence[int], first: int
) -> list[tuple[str, Piece]] | str:
    if len(leaf.shape) < 2:
        return _("not split: it has no dimension of experts")
    place = None if shard is None else replace(shard, dim=shard.dim - 1)
    out = []
    for number in range(leaf.shape[0]):
        one = leaf.rows(number, number + 1, leaf.shape[1:])
        cut = _cut(one, sizes, 1)
        if cut is None:
            return _uneven(one.shape[0], sizes)
        for template, leaves in zip(split.to, cut, strict=True):
            name = filled(template, {**words, "expert": str(first + number)})
            view = View(name, leaf.dtype, leaves[0].shape, tuple(leaves), 0, leaf.unsupported)
            out.append((name, Piece(view, place, leaf.rank)))
    return out


# --- the pieces of all ranks ------------------------------------------------------------------------------------------


def _together(name: str, pieces: list[Piece], out: Named) -> None:
    """One view of a name from all ranks; what several ranks hold alike is remembered, to be compared."""
    stored = {one for piece in pieces for one in piece.view.stored_as}
    by_rank = [piece.rank for piece in pieces]
    if len(stored) > 1 and len(set(by_rank)) < len(by_rank):
        what = _("{names} all come to be {name}").format(names=", ".join(sorted(stored)), name=name)
        out.problems.append(Problem("same-name", what, tensors=(name,)))
    places: dict[int, Piece] = {}
    for piece in pieces:
        index = piece.shard.index if piece.shard else 0
        if index in places:
            out.replicas.append((places[index].view, piece.view))
        else:
            places[index] = piece
    first = pieces[0]
    if first.shard is None:
        out.views[name] = first.view
        return
    count = first.shard.count
    lacking = [index for index in range(count) if index not in places]
    if lacking or any(piece.shard is None or piece.shard.count != count for piece in pieces):
        why = _("the ranks do not agree on its pieces")
        if lacking:
            why = _("{some} of {all} pieces are missing").format(some=len(lacking), all=count)
        out.views[name] = replace(first.view, unsupported=why)
        return
    view = joined(name, [places[index].view for index in range(count)], first.shard.dim)
    out.views[name] = replace(view, name=name)
