"""The places of a model at which the two sides are laid side by side: embedding, every layer's input and output, the final norm.

Only shapes are looked at here; whether the numbers agree is the analysis side's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stages.dumps.entry import FORWARD, Entry, Name, Tensor, make_entry, parse_name
from stages.dumps.reading import Source
from stages.dumps.workers import spread

_STACK = r"(?:^|\.)(?:layers|layer|h|blocks|block)\.(\d{1,6})"
_LAYER, _INSIDE = re.compile(rf"{_STACK}$"), re.compile(rf"{_STACK}\.")
_OTHER_TOWERS = re.compile(r"(?:^|\.)(?:visual|vision\w*|audio\w*|image\w*|mtp|draft\w*)(?:\.|$)")
_WRAPPERS = re.compile(r"\._(?:fsdp_wrapped_module|checkpoint_wrapped_module|orig_mod)(?=\.|$)")
_EMBEDDINGS = ("embed_tokens", "word_embeddings", "tok_embeddings", "wte", "embed_in")
_NORMS = ("norm", "final_layernorm", "final_norm", "ln_f", "norm_f")
_SEVERAL = 32 << 20  # bytes of files for which more processes are worth their start


@dataclass(frozen=True)
class Boundary:
    """``name``: ``embed.in``, ``layers.3.out``, ``norm.in``; ``entry``: msprobe's name of the call; ``tensor``: ``input.0``."""

    name: str
    entry: str
    tensor: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def ids(self) -> bool:
        return "int" in self.dtype

    @property
    def rows(self) -> int:
        """Tokens: the product of all axes but the hidden one."""
        rows = 1
        for size in self.shape if self.ids else self.shape[:-1]:
            rows *= size
        return rows

    @property
    def width(self) -> int:
        """1 for token ids."""
        return 1 if self.ids or not self.shape else self.shape[-1]

    def as_json(self) -> dict[str, Any]:
        return {"entry": self.entry, "tensor": self.tensor, "shape": list(self.shape), "dtype": self.dtype}


@dataclass(frozen=True)
class Row:
    """One boundary of a pair of ranks; ``equal`` None where one side lacks it."""

    name: str
    train_rank: str
    infer_rank: str
    train: Boundary | None
    infer: Boundary | None

    @property
    def equal(self) -> bool | None:
        if self.train is None or self.infer is None:
            return None
        return (self.train.rows, self.train.width) == (self.infer.rows, self.infer.width)

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "train_rank": self.train_rank,
            "infer_rank": self.infer_rank,
            "train": self.train.as_json() if self.train is not None else None,
            "infer": self.infer.as_json() if self.infer is not None else None,
            "equal": self.equal,
        }


def side_by_side(train: Mapping[str, Boundary], infer: Mapping[str, Boundary], ranks: tuple[str, str]) -> list[Row]:
    """In the order of the model."""
    names = sorted({*train, *infer}, key=_order)
    return [Row(name, *ranks, train.get(name), infer.get(name)) for name in names]


def boundaries_of(dumps: Iterable[Path], processes: int = 2) -> Iterator[dict[str, Boundary]]:
    """Of each dump.json, in their order; large ones in processes of their own. Raises WorkerError."""
    return spread(boundaries, list(dumps), processes, _SEVERAL)


def boundaries(dump: Path) -> dict[str, Boundary]:
    """Of the first call of each module; what a file holds raises nothing. One entry is in memory at a time."""
    found: dict[str, Boundary] = {}
    for text, raw in Source(dump).entries():
        name = parse_name(text)
        place = _place(name) if name is not None and name.module and name.kind == FORWARD and not name.call else None
        if place is None:
            continue
        entry = make_entry(text, raw)
        for part, tensor in (("in", _given(entry, place)), ("out", _hidden(entry.outputs))):
            if tensor is not None:
                boundary = Boundary(f"{place}.{part}", text, tensor.name, tensor.shape, tensor.dtype)
                found.setdefault(boundary.name, boundary)
    return found


def _place(name: Name) -> str | None:
    path = _WRAPPERS.sub("", name.path)
    layer = _LAYER.search(path)
    if _OTHER_TOWERS.search(path) or (_INSIDE.search(path) and not layer):
        return None
    if layer:
        return f"layers.{int(layer[1])}"
    last = path.rpartition(".")[2]
    if last in _EMBEDDINGS:
        return "embed"
    return "norm" if last in _NORMS else None


def _given(entry: Entry, place: str) -> Tensor | None:
    """What goes on through the model: token ids into the embedding, hidden states into the rest."""
    if place == "embed":
        return next((one for one in (*entry.inputs, *entry.kwargs.values()) if one.whole), None)
    named = entry.kwargs.get("hidden_states")
    return named if named is not None else _hidden((*entry.inputs, *entry.kwargs.values()))


def _hidden(tensors: Iterable[Tensor]) -> Tensor | None:
    fit = (one for one in tensors if len(one.shape) in (2, 3) and "float" in one.dtype and "mask" not in one.name)
    return next(fit, None)


def _order(name: str) -> tuple[int, int, bool]:
    place, _dot, part = name.rpartition(".")
    layer = int(place.partition(".")[2]) if place.startswith("layers.") else 0
    return ({"embed": 0, "norm": 2}.get(place, 1), layer, part == "out")
