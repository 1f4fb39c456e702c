"""The bridges: the right spelling of mHC, a wrong one, and those that fail."""

from __future__ import annotations

from typing import Any

from megatron.core.transformer_config import GPTModelProvider


class _Bridge:
    hf_config: Any = None

    def provider_bridge(self, hf_pretrained: Any) -> GPTModelProvider:
        hf = hf_pretrained.config
        return GPTModelProvider(
            num_layers=hf.num_hidden_layers,
            hidden_size=hf.hidden_size,
            num_attention_heads=hf.num_attention_heads,
            num_query_groups=hf.num_key_value_heads,
            ffn_hidden_size=hf.intermediate_size,
            layernorm_epsilon=hf.rms_norm_eps,
            normalization="RMSNorm",
            gated_linear_unit=True,
            add_bias_linear=False,
            hidden_dropout=0.0,
            attention_dropout=0.0,
            vocab_size=hf.vocab_size,
            share_embeddings_and_output_weights=hf.tie_word_embeddings,
            position_embedding_type="rope",
            rotary_base=hf.rope_theta,
        )


class RightBridge(_Bridge):
    def provider_bridge(self, hf_pretrained: Any) -> GPTModelProvider:
        provider = super().provider_bridge(hf_pretrained)
        provider.enable_mhc_connections = True
        provider.mhc_num_residual_streams = hf_pretrained.config.hc_mult
        provider.mhc_sinkhorn_iterations = hf_pretrained.config.hc_sinkhorn_iters
        return provider


class DeepSeekV4FlashBridge(_Bridge):
    """Sets names that the provider's class does not have: nothing complains, nothing is built."""

    def provider_bridge(self, hf_pretrained: Any) -> GPTModelProvider:
        provider: Any = super().provider_bridge(hf_pretrained)
        provider.enable_hyper_connections = True
        provider.num_residual_streams = hf_pretrained.config.hc_mult
        provider.mhc_sinkhorn_iterations = hf_pretrained.config.hc_sinkhorn_iters
        print("a bridge that talks on standard output")
        return provider


class FailingBridge(_Bridge):
    def provider_bridge(self, hf_pretrained: Any) -> GPTModelProvider:
        raise ValueError("no such architecture")


class NoBridge:
    """A class that is none."""
