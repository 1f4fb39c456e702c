"""The largest difference of two dumped steps at each boundary of the model: `python boundaries.py STEP_OF_TRAIN STEP_OF_ENGINE`.

Layers are compared as they are meant: an engine's output and residual are one tensor on the other side, its q, k and v are fused.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch


class Step:
    """A rank's folder; tensors by their file's name, without the batch axis."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "dump_tensor_data"

    def get(self, place: str, argument: str) -> torch.Tensor | None:
        found = [*self.folder.glob(f"Module.{place}.*.forward.0.{argument}.pt")]
        found = [one for one in found if one.name.removeprefix(f"Module.{place}.").count(".forward.") == 1]
        own = [one for one in found if "." not in one.name.removeprefix(f"Module.{place}.").split(".forward.")[0]]
        if not own:
            return None
        (path,) = own
        tensor = torch.load(path, map_location="cpu", weights_only=True).float()
        return tensor[0] if tensor.dim() == 3 else tensor

    def boundary(self, name: str) -> torch.Tensor | None:
        if name.endswith(".in"):
            place = name.removesuffix(".in")
            whole = self.get(place, "input.0")
            if whole is not None and whole.dim() == 2:
                return whole
            return added(self.get(place, "input.1"), self.get(place, "input.2"))  # behind the positions
        if name.endswith(".qkv"):
            place = name.removesuffix(".qkv") + ".self_attn"
            fused = self.get(f"{place}.qkv_proj", "output.0")
            parts = [self.get(f"{place}.{one}_proj", "output.0") for one in "qkv"]
            return fused if fused is not None else None if None in parts else torch.cat(parts, dim=-1)
        place = name.removesuffix(".out")
        if "layers" not in place:
            return self.get(place, "output.0")
        return added(self.get(place, "output.0"), self.get(place, "output.1"))


def added(one: torch.Tensor | None, residual: torch.Tensor | None) -> torch.Tensor | None:
    return one if one is None or residual is None else one + residual


def main(train: Path, engine: Path) -> None:
    sides = (Step(train), Step(engine))
    names = ["model.embed_tokens.out"]
    names += [f"model.layers.{layer}.{what}" for layer in range(3) for what in ("in", "qkv", "out")]
    found = {}
    for name in [*names, "model.norm.out"]:
        one, other = (side.boundary(name) for side in sides)
        found[name.removeprefix("model.")] = None if one is None or other is None else (one - other).abs().max().item()
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
