"""How large a dump will be: an estimate from the model's config, its weights and the number of tokens.

Measured on msprobe dumps of one no-grad forward (Qwen2, Qwen3-MoE and DeepSeek-V3 of transformers; the numbers are in the
tests) and rounded up, since a full disk costs a run. For one rank, T tokens, L layers, V words, B bytes an element:

    per token, L0  = (2V + 6H + L * (14H + 2Q + 2K + 5I)) * B
    per token, L1  = 4 * L0,    mix = 5 * L0
    once           = the weights (L0 dumps them as parameters, L1 as arguments); mix: twice
    files          = (L + 1) * 125 kB for the heads of the .pt files
    dump.json      = (L + 1) * (50 kB for L0, 250 kB for L1 and mix), and 4 kB for each expert of a layer

H is the hidden size, Q = heads * head size, K = 2 * key-value heads * head size, I = what a token passes in the MLP (of a
mixture: the chosen and the shared experts). ``statistics`` writes dump.json alone. Attention that stores its scores (``eager``)
adds heads * T * T * B for each layer at L1 and mix, and is not counted. Only the forward is: log-probs need no gradients.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LEVELS, TASKS = ("L0", "L1", "mix"), ("statistics", "tensor")
_FACTOR = {"L0": 1, "L1": 4, "mix": 5}
_WEIGHTS = {"L0": 1, "L1": 1, "mix": 2}
_JSON = {"L0": 50_000, "L1": 250_000, "mix": 250_000}
_JSON_EXPERT, _FILES = 4_000, 125_000
_LAYERS, _LARGEST = 10_000, 1 << 28
"""No model has as many layers; nothing else in a config is as large."""
_BYTES = {"bfloat16": 2, "float16": 2, "half": 2, "float32": 4, "float": 4, "float64": 8}


@dataclass(frozen=True)
class Size:
    """Bytes for one rank: ``once`` whatever the prompt, ``per_token``."""

    once: int
    per_token: int

    def of(self, tokens: int) -> int:
        return self.once + self.per_token * tokens


def estimate(config: Mapping[str, Any], weights: int, level: str, task: str) -> tuple[Size | None, list[str]]:
    """(size, keys that the config lacks): the size is None when a key is missing, or has no value that a model can have.
    ``weights``: bytes of the checkpoint."""
    inner = config.get("text_config")
    text = {**config, **inner} if isinstance(inner, Mapping) else dict(config)
    lacking = [
        name
        for name in ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size")
        if _int(text, name) is None
    ]
    if (_int(text, "num_hidden_layers") or 0) > _LAYERS:
        lacking.append("num_hidden_layers")
    experts = _first(text, "n_routed_experts", "num_experts", "num_local_experts") or 0
    passed = _passed(text, experts)
    if passed is None:
        lacking.append("num_experts_per_tok" if experts else "intermediate_size")
    if lacking or passed is None:
        return None, lacking
    layers, hidden, heads, words = (
        text[key] for key in ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size")
    )
    query, keys = _attention(text, hidden, heads)
    json = (layers + 1) * (_JSON[level] + _JSON_EXPERT * experts)
    if task == "statistics":
        return Size(json, 0), []
    elements = 2 * words + 6 * hidden + layers * (14 * hidden + 2 * query + 2 * keys + 5 * passed)
    return Size(json + (layers + 1) * _FILES + _WEIGHTS[level] * weights, elements * _width(text) * _FACTOR[level]), []


def longest(config: Mapping[str, Any]) -> int | None:
    """The most tokens that the model takes."""
    inner = config.get("text_config")
    return _int({**config, **inner} if isinstance(inner, Mapping) else config, "max_position_embeddings")


def _passed(text: Mapping[str, Any], experts: int) -> int | None:
    """The widest MLP that one token goes through."""
    dense = _first(text, "intermediate_size", "ffn_hidden_size")
    chosen, width = _first(text, "num_experts_per_tok", "moe_topk"), _first(text, "moe_intermediate_size") or dense
    if not experts:
        return dense
    if chosen is None or width is None:
        return None
    shared = (_first(text, "n_shared_experts") or 0) * width + (_first(text, "shared_expert_intermediate_size") or 0)
    return max(chosen * width + shared, dense or 0)


def _attention(text: Mapping[str, Any], hidden: int, heads: int) -> tuple[int, int]:
    """(Q, K) in elements for a token; of a compressed attention (MLA) what it unfolds to."""
    if (rank := _int(text, "qk_nope_head_dim")) is not None:
        rope, value = _int(text, "qk_rope_head_dim") or 0, _int(text, "v_head_dim") or rank
        return heads * (rank + rope), heads * (rank + rope + value)
    head = _int(text, "head_dim") or hidden // heads
    return heads * head, 2 * (_int(text, "num_key_value_heads") or heads) * head


def _width(text: Mapping[str, Any]) -> int:
    """Bytes of an element; 4 when the config does not say."""
    return _BYTES.get(str(text.get("dtype") or text.get("torch_dtype") or "").replace("torch.", ""), 4)


def _int(text: Mapping[str, Any], name: str) -> int | None:
    value = text.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _LARGEST else None


def _first(text: Mapping[str, Any], *names: str) -> int | None:
    return next((value for name in names if (value := _int(text, name)) is not None), None)
