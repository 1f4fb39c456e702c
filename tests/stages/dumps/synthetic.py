"""Dumps as msprobe 26.2 writes them (indent 1, its keys and names), of models that never ran.

``python -m tests.stages.dumps.synthetic FOLDER [LAYERS RANKS]`` writes one.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HIDDEN, INNER, VOCABULARY = 4096, 12288, 151936
Entry = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Model:
    """``fused``: the inference side's modules (qkv_proj, gate_up_proj), input [P, H]; else Hugging Face's, input [1, P, H]."""

    layers: int = 60
    fused: bool = False
    prefix: str = "FSDP"
    hidden: int = HIDDEN

    def entries(self, tokens: int, seed: int = 0, with_files: bool = True) -> Iterator[Entry]:
        make = _Maker(self, (tokens,) if self.fused else (1, tokens), random.Random(seed), with_files)
        yield make.embedding()
        for number in range(self.layers):
            yield from make.layer(number)
        yield make.module("model.norm", "RMSNorm", [make.hidden()], [make.hidden()], {"weight": [self.hidden]})


@dataclass(frozen=True)
class _Maker:
    model: Model
    rows: tuple[int, ...]
    random: random.Random
    with_files: bool

    def hidden(self, width: int | None = None) -> list[int]:
        return [*self.rows, self.model.hidden if width is None else width]

    def embedding(self) -> Entry:
        kind = "VocabParallelEmbedding" if self.model.fused else f"{self.model.prefix}Embedding"
        weight = {"weight": [VOCABULARY, self.model.hidden]}
        name, entry = self.module("model.embed_tokens", kind, [], [self.hidden()], weight)
        dtype = "torch.int32" if self.model.fused else "torch.int64"
        entry["input_args"] = [self.tensor(f"{name}.input.0", list(self.rows), dtype)]
        return name, entry

    def layer(self, number: int) -> Iterator[Entry]:
        at, hidden, inner = f"model.layers.{number}", self.hidden(), self.hidden(INNER)
        norm = {"weight": [self.model.hidden]}
        yield self.module(f"{at}.input_layernorm", "RMSNorm", [hidden], [hidden], norm)
        for name in ("qkv_proj",) if self.model.fused else ("q_proj", "k_proj", "v_proj"):
            yield self.linear(f"{at}.self_attn.{name}", hidden, hidden)
        yield self.linear(f"{at}.self_attn.o_proj", hidden, hidden)
        yield self.module(f"{at}.self_attn", "Qwen2Attention", [], [hidden], {}, {"hidden_states": hidden})
        yield self.module(f"{at}.post_attention_layernorm", "RMSNorm", [hidden], [hidden], norm)
        for name in ("gate_up_proj",) if self.model.fused else ("gate_proj", "up_proj"):
            yield self.linear(f"{at}.mlp.{name}", hidden, inner)
        yield self.module(f"{at}.mlp.act_fn", "SiLUActivation", [inner], [inner], {})
        yield self.linear(f"{at}.mlp.down_proj", inner, hidden)
        yield self.module(f"{at}.mlp", "Qwen2MLP", [hidden], [hidden], {})
        kind = "Qwen2DecoderLayer" if self.model.fused else f"{self.model.prefix}Qwen2DecoderLayer"
        yield self.module(at, kind, [hidden], [hidden], {})

    def linear(self, path: str, given: list[int], made: list[int]) -> Entry:
        return self.module(path, "Linear", [given], [made], {"weight": [made[-1], given[-1]], "bias": [made[-1]]})

    def module(
        self,
        path: str,
        kind: str,
        given: Sequence[list[int]],
        made: Sequence[list[int]],
        parameters: Mapping[str, list[int]],
        kwargs: Mapping[str, list[int]] | None = None,
    ) -> Entry:
        name = f"Module.{path}.{kind}.forward.0"
        return name, {
            "input_args": [self.tensor(f"{name}.input.{at}", shape) for at, shape in enumerate(given)],
            "input_kwargs": {key: self.tensor(f"{name}.kwargs.{key}", shape) for key, shape in (kwargs or {}).items()},
            "output": [self.tensor(f"{name}.output.{at}", shape) for at, shape in enumerate(made)],
            "parameters": {key: self.tensor(f"{name}.parameters.{key}", one) for key, one in parameters.items()},
        }

    def tensor(self, name: str, shape: list[int], dtype: str = "torch.bfloat16") -> dict[str, Any]:
        numbers = [VOCABULARY - 1, 0, None, None] if "int" in dtype else [self.random.gauss(0, 1) for _n in range(4)]
        described: dict[str, Any] = {"type": "torch.Tensor", "dtype": dtype, "shape": shape}
        described.update(zip(("Max", "Min", "Mean", "Norm"), numbers, strict=True))
        described["requires_grad"] = False
        return {**described, "data_name": f"{name}.pt"} if self.with_files else described


def text(entries: Iterable[Entry], task: str = "tensor", level: str = "L0") -> str:
    """A whole dump.json."""
    head = {"task": task, "level": level, "framework": "pytorch", "dump_data_dir": None}
    return json.dumps({**head, "data": dict(entries)}, indent=1)


HEADER = text(())
"""What msprobe writes when the debugger starts."""


def write_text(folder: Path, written: str | bytes) -> Path:
    folder.mkdir(parents=True)
    path = folder / "dump.json"
    path.write_bytes(written.encode() if isinstance(written, str) else written)
    return path


def write_dump(folder: Path, model: Model, tokens: int, *, task: str = "tensor", seed: int = 0) -> Path:
    """The dump.json of one process at one step."""
    return write_text(folder, text(model.entries(tokens, seed, task == "tensor"), task))


def write_ranks(root: Path, model: Model, tokens: int, ranks: int, *, step: int = 0) -> list[Path]:
    return [write_dump(root / f"step{step}" / f"rank{rank}", model, tokens, seed=rank) for rank in range(ranks)]


if __name__ == "__main__":
    layers, ranks = map(int, sys.argv[2:4] or ("60", "64"))
    files = write_ranks(Path(sys.argv[1]), Model(layers), 190, ranks)
    print(f"{len(files)} files, {sum(map(os.path.getsize, files)) / 1e6:.0f} MB")
