"""Forwards of a tiny random model under msprobe, in an interpreter with torch, Transformers and msprobe.

    python drive.py CONFIG '{"architecture": "qwen2", "fused": false, "distributed": false, "scale": {}, "backward": false}'

``scale`` multiplies parameters by a number; ``fused`` gives attention one fused projection (q | k | v) and a module that splits
it; ``distributed`` runs in a gloo group of one, so that msprobe writes rank0 in place of proc<PID>.
"""

from __future__ import annotations

import json
import os
import sys

import torch
import torch.nn.functional as F
import transformers
from torch import nn

CONFIG, WISH = sys.argv[1], json.loads(sys.argv[2])
COMMON = {
    "vocab_size": 128, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "head_dim": 16, "attn_implementation": "eager",
}  # fmt: skip


class QKVLinear(nn.Module):
    """One projection whose output is that of q, then k, then v, computed part by part: bit-equal to the three."""

    def __init__(self, *parts):
        super().__init__()
        self.parts = list(parts)  # a plain list: no modules of this one

    def forward(self, hidden_states):
        return torch.cat([F.linear(hidden_states, one.weight, one.bias) for one in self.parts], dim=-1)


class QKVSplit(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.sizes = sizes

    def forward(self, fused):
        return fused.split(self.sizes, dim=-1)


class Part(nn.Module):
    """Stands where q_proj stood, and hands on its part of the fused output."""

    def __init__(self, attention, index):
        super().__init__()
        self.owner, self.index = [attention], index

    def forward(self, hidden_states):
        attention = self.owner[0]
        if self.index == 0:
            attention.now = attention.qkv_split(attention.qkv_proj(hidden_states))
        return attention.now[self.index]


def fuse(attention):
    parts = [attention.q_proj, attention.k_proj, attention.v_proj]
    attention.qkv_proj = QKVLinear(*parts)
    attention.qkv_split = QKVSplit([one.weight.shape[0] for one in parts])
    for index, name in enumerate(("q_proj", "k_proj", "v_proj")):
        setattr(attention, name, Part(attention, index))


def build():
    torch.manual_seed(0)
    config = {"qwen2": transformers.Qwen2Config, "qwen3": transformers.Qwen3Config}[WISH["architecture"]](**COMMON)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    for name, factor in WISH.get("scale", {}).items():
        model.get_parameter(name).data.mul_(factor)
    if WISH.get("fused"):
        for layer in model.model.layers:
            fuse(layer.self_attn)
    return model.to(getattr(torch, WISH.get("dtype", "float32")))


def main():
    from msprobe.pytorch import PrecisionDebugger, seed_all

    seed_all(mode=True)
    if WISH.get("distributed"):
        store = torch.distributed.HashStore()
        torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    model = build()
    PrecisionDebugger(config_path=CONFIG)
    ids = torch.arange(1, 1 + WISH.get("prompt", 7)).unsqueeze(0)
    for _step in range(WISH.get("steps", 1)):
        PrecisionDebugger.start(model=model)
        with torch.set_grad_enabled(bool(WISH.get("backward"))):
            logits = model(input_ids=ids, use_cache=False).logits
            if WISH.get("backward"):
                logits.float().pow(2).mean().backward()
        PrecisionDebugger.stop()
        PrecisionDebugger.step()
    if WISH.get("backward"):
        print("without gradient:", json.dumps([name for name, one in model.named_parameters() if one.grad is None]))
    print("done in", os.getpid())


main()
