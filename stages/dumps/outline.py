"""What the steps, the coverage and the comparability of a dump are told from: a few numbers of each dump.json.

Small whatever the size of the file, so that the dumps of many ranks and steps are held at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stages.dumps.entry import FORWARD, Name, Tensor, has_tensor, inputs_of, parse_name
from stages.dumps.problem import Problem
from stages.dumps.reading import Source
from stages.dumps.workers import spread

EMBEDDING, LAYER, FUNCTION = "embedding", "layer", "function"
_EMBEDDINGS = ("embed_tokens", "word_embeddings", "tok_embeddings", "wte", "embed_in", "embedding")
_OTHER_TOWERS = re.compile(r"(?:^|\.)(?:visual|vision\w*|audio\w*|image\w*|mtp|draft\w*)(?:\.|$)")
_IN_LAYER = re.compile(r"Module\.((?:[^.]+\.)*?(?:layers|layer|h|blocks|block))\.(\d{1,6})\.")
_SHOWN = 20
_MOST_HEADS = 1000
_SEVERAL = 128 << 20  # bytes of files for which more processes are worth their start


@dataclass(frozen=True)
class Head:
    """What a call of the model began with. ``source``: embedding (its token ids), layer (hidden states of the lowest layer),
    or function (of a dump without modules). ``shape``: [P] or [1, P] of ids, [P, H] or [1, P, H] of hidden states; of a jagged
    tensor that of its values."""

    entry: str
    source: str
    call: int
    shape: tuple[int, ...]
    dtype: str
    jagged: bool
    data_name: str | None

    @property
    def rows(self) -> int:
        """Tokens, padding and all: the product of the axes, the hidden one left out."""
        rows = 1
        for one in self.shape[:-1] if self.source == LAYER else self.shape:
            rows *= one
        return rows


@dataclass(frozen=True)
class Outline:
    """``stacks``: entries with tensors by layer number, by the path of the layers (``model.layers``); ``bare``: the first entries
    without any tensor, of ``bare_count``; ``heads`` in the order of the calls."""

    path: Path
    task: str | None
    level: str | None
    framework: str | None
    entries: int
    modules: int
    bare: tuple[str, ...]
    bare_count: int
    stacks: Mapping[str, Mapping[int, int]]
    heads: tuple[Head, ...]
    problems: tuple[Problem, ...]

    @property
    def empty(self) -> bool:
        return not self.entries

    @property
    def main(self) -> tuple[str, Mapping[int, int]] | None:
        """Path and layers of the language model's stack."""
        path = _main(self.stacks)
        return None if path is None else (path, self.stacks[path])


@dataclass
class _Tally:
    entries: int = 0
    modules: int = 0
    bare: list[str] = field(default_factory=list)
    bare_count: int = 0
    stacks: dict[str, dict[int, int]] = field(default_factory=dict)
    embeddings: dict[str, list[Head]] = field(default_factory=dict)
    lowest: dict[str, tuple[int, str, list[Head]]] = field(default_factory=dict)
    functions: list[Head] = field(default_factory=list)

    def note(self, text: str, raw: dict[str, Any]) -> None:
        """Called for every entry: no more is looked at than has to be."""
        self.entries += 1
        filled = has_tensor(raw)
        if not filled:
            self.bare_count += 1
            if len(self.bare) < _SHOWN:
                self.bare.append(text)
        if not text.startswith("Module."):
            if text.startswith("Functional.embedding.") and not self.functions:
                self._function(text, raw)
            return
        self.modules += 1
        if ".forward." not in text:
            return
        layer = _IN_LAYER.match(text)
        if layer:
            self._layer(text, raw, layer[1], int(layer[2]), filled)
        else:
            self._outside(text, raw)

    def _function(self, text: str, raw: dict[str, Any]) -> None:
        name = parse_name(text)
        if name is not None and name.kind == FORWARD:
            self.functions += _heads(text, name, raw, FUNCTION)

    def _outside(self, text: str, raw: dict[str, Any]) -> None:
        name = parse_name(text)
        if name is not None and name.kind == FORWARD and _is_embedding(name):
            heads = self.embeddings.setdefault(name.path, [])
            if len(heads) < _MOST_HEADS:
                heads += _heads(text, name, raw, EMBEDDING)

    def _layer(self, text: str, raw: dict[str, Any], stack: str, number: int, filled: bool) -> None:
        layers = self.stacks.setdefault(stack, {})
        layers[number] = layers.get(number, 0) + filled
        known = self.lowest.get(stack)
        if known is not None and number > known[0]:
            return
        name = parse_name(text)
        if name is None or name.kind != FORWARD:
            return
        if known is None or number < known[0]:
            heads = list(_heads(text, name, raw, LAYER))
            if heads:
                self.lowest[stack] = number, name.path, heads
        elif name.path == known[1] and name.call and len(known[2]) < _MOST_HEADS:
            known[2].extend(_heads(text, name, raw, LAYER))

    def heads(self) -> tuple[Head, ...]:
        """Of the token embedding; else of the lowest layer; else of a function."""
        for path in sorted(self.embeddings, key=lambda one: (_likely(one), len(one), one)):
            if self.embeddings[path]:
                return tuple(self.embeddings[path])
        main = _main(self.stacks)
        if main in self.lowest:
            return tuple(self.lowest[main][2])
        return tuple(self.functions)


def outline(path: Path) -> Outline:
    """Of a dump.json, or of the one in a folder. Raises nothing for what a file holds."""
    source = Source(path / "dump.json" if path.is_dir() else path)
    tally = _Tally()
    for name, raw in source.entries():
        tally.note(name, raw)
    head = source.head
    return Outline(
        source.path,
        head.get("task"),
        head.get("level"),
        head.get("framework"),
        tally.entries,
        tally.modules,
        tuple(tally.bare),
        tally.bare_count,
        tally.stacks,
        tally.heads(),
        tuple(source.problems),
    )


def outlines(paths: Iterable[Path], processes: int = 2) -> Iterator[Outline]:
    """Of each file, in their order; many large ones in processes of their own. Raises WorkerError."""
    return spread(outline, list(paths), processes, _SEVERAL)


def _main(stacks: Mapping[str, Mapping[int, int]]) -> str | None:
    """The stack with most layers, those of towers and drafts left out."""
    own = [path for path in stacks if not _OTHER_TOWERS.search(path)]
    return max(own, key=lambda one: (len(stacks[one]), -len(one)), default=None)


def _is_embedding(name: Name) -> bool:
    if name.last in _EMBEDDINGS:
        return True
    return name.class_name.endswith("Embedding") and not re.search(r"(?i)rotary|position|rope", name.class_name)


def _likely(path: str) -> int:
    """Token embeddings by their own name first, those of towers last."""
    if _OTHER_TOWERS.search(path):
        return len(_EMBEDDINGS) + 1
    last = path.rpartition(".")[2]
    return _EMBEDDINGS.index(last) if last in _EMBEDDINGS else len(_EMBEDDINGS)


def _heads(text: str, name: Name, raw: dict[str, Any], source: str) -> Iterator[Head]:
    """Of the first tensor that can be it: integers, or numbers with a hidden axis."""
    for tensor in inputs_of(raw):
        if _hidden(tensor) if source == LAYER else tensor.whole:
            jagged = "nested" in tensor.type.lower()
            yield Head(text, source, name.call, tensor.shape, tensor.dtype, jagged, tensor.data_name)
            return


def _hidden(tensor: Tensor) -> bool:
    last = tensor.name.rpartition(".")[2]
    return len(tensor.shape) in (2, 3) and "float" in tensor.dtype and "mask" not in last
