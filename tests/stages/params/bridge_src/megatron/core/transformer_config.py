"""Stands in for the trainer's core: the config class that decides which fields exist."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def silu(x: float) -> float:
    return x


@dataclass
class TransformerConfig:
    num_layers: int = 0
    hidden_size: int = 0
    num_attention_heads: int = 0
    num_query_groups: int | None = None
    ffn_hidden_size: int | None = None
    kv_channels: int | None = None
    layernorm_epsilon: float = 1e-5
    normalization: str = "LayerNorm"
    gated_linear_unit: bool = False
    add_bias_linear: bool = True
    add_qkv_bias: bool = False
    qk_layernorm: bool = False
    layernorm_zero_centered_gamma: bool = False
    activation_func: Callable[[float], float] = silu
    hidden_dropout: float = 0.1
    attention_dropout: float = 0.1
    multi_latent_attention: bool = False
    enable_mhc_connections: bool = False
    mhc_num_residual_streams: int = 1
    mhc_sinkhorn_iterations: int = 10

    def finalize(self) -> None:
        self.kv_channels = self.kv_channels or self.hidden_size // self.num_attention_heads
        self.num_query_groups = self.num_query_groups or self.num_attention_heads


@dataclass
class GPTModelProvider(TransformerConfig):
    vocab_size: int = 0
    share_embeddings_and_output_weights: bool = True
    position_embedding_type: str = "learned_absolute"
    rotary_base: float = 10000
    rotary_percent: float = 1.0
    rope_scaling: bool = False
