"""Which flag means what, per framework: the one place that knows.

A *setting* is what the rules speak of (``train.tp``, ``batch.prompts``); a *key* is how one framework writes it. Defaults
were read in the frameworks' own sources and configs: verl 0.4.1 to 0.9.1, slime 0.2.0 to 0.3.1, vime's arguments.py,
SGLang 0.5, vLLM 0.10 and later (V1). Where versions differ, the default is unknown until the version is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Scalar = bool | int | float | str | None


@dataclass(frozen=True)
class Key:
    """``form``: ``value`` (``--x V``, ``x=V``), ``on`` (there: true), ``off`` (there: false), ``pair`` (``--x`` or ``--no-x``),
    ``inverse`` (``x=true`` means false).

    ``defaults``: (versions, value), the versions as a specifier, empty for all; no entry at all: not known. ``prefix``: what
    hydra needs before a key that the base config does not have. ``since``: the version that has it, empty for every one.
    """

    name: str
    form: str = "value"
    defaults: tuple[tuple[str, Scalar], ...] = ()
    also: tuple[str, ...] = ()
    prefix: str = ""
    since: str = ""


@dataclass(frozen=True)
class Setting:
    """``kind``: bool, int, float or text. ``keys`` by dialect: ``verl``, ``verl/fsdp`` or ``verl/megatron`` (its backend),
    ``verl@sglang`` (its engine), ``slime``, ``vime``, ``vllm``, ``sglang``."""

    kind: str
    keys: Mapping[str, Key]


def _key(name: str, *default: Scalar, form: str = "value", also: tuple[str, ...] = ()) -> Key:
    return Key(name, form, tuple(("", one) for one in default), also)


def _by_version(name: str, *defaults: tuple[str, Scalar], also: tuple[str, ...] = ()) -> Key:
    return Key(name, "value", defaults, also)


def _both(key: Key) -> dict[str, Key]:
    """slime and vime, which is its fork."""
    return {"slime": key, "vime": key}


_SGLANG = "actor_rollout_ref.rollout.engine_kwargs.sglang."
_A, _R = "actor_rollout_ref.actor.", "actor_rollout_ref.rollout."
_MEGATRON = _A + "megatron."

SETTINGS: Mapping[str, Setting] = {
    # --- how many of what ---------------------------------------------------------------------------------------------
    "train.nodes": Setting("int", {"verl": _key("trainer.nnodes", 1), **_both(_key("--actor-num-nodes", 1))}),
    "train.devices": Setting(
        "int", {"verl": _key("trainer.n_gpus_per_node", 8), **_both(_key("--actor-num-gpus-per-node", 8))}
    ),
    "train.tp": Setting(
        "int",
        {
            "verl/megatron": _key(_MEGATRON + "tensor_model_parallel_size", 1),
            **_both(_key("--tensor-model-parallel-size", 1)),
        },
    ),
    "train.pp": Setting(
        "int",
        {
            "verl/megatron": _key(_MEGATRON + "pipeline_model_parallel_size", 1),
            **_both(_key("--pipeline-model-parallel-size", 1)),
        },
    ),
    "train.cp": Setting(
        "int",
        {
            "verl/megatron": _key(_MEGATRON + "context_parallel_size", 1),
            "verl/fsdp": _key(
                _A + "ulysses_sequence_parallel_size", 1, also=(_A + "fsdp_config.ulysses_sequence_parallel_size",)
            ),
            **_both(_key("--context-parallel-size", 1)),
        },
    ),
    "infer.tp": Setting(
        "int",
        {
            "verl/fsdp": _key(_R + "tensor_model_parallel_size", 2),
            "verl/megatron": _by_version(_R + "tensor_model_parallel_size", ("<0.6", 1), (">=0.6", 2)),
            "verl": _key(_R + "tensor_model_parallel_size"),
            "vllm": _key("--tensor-parallel-size", 1, also=("-tp",)),
            "sglang": _key("--tp-size", 1, also=("--tp", "--tensor-parallel-size")),
        },
    ),
    "infer.pp": Setting(
        "int",
        {
            "verl": _key(_R + "pipeline_model_parallel_size", 1),
            "slime": _key("--sglang-pipeline-parallel-size", 1, also=("--sglang-pp-size",)),
            "vime": _key("--vllm-pipeline-parallel-size", 1),
            "vllm": _key("--pipeline-parallel-size", 1),
            "sglang": _key("--pp-size", 1, also=("--pipeline-parallel-size",)),
        },
    ),
    "infer.dp": Setting(
        "int",
        {
            "verl": _key(_R + "data_parallel_size", 1),
            "slime": _key("--sglang-data-parallel-size", 1, also=("--sglang-dp-size",)),
            "vime": _key("--vllm-data-parallel-size", 1),
            "vllm": _key("--data-parallel-size", 1),
            "sglang": _key("--dp-size", 1, also=("--data-parallel-size", "--dp")),
        },
    ),
    "infer.per_engine": Setting("int", _both(_key("--rollout-num-gpus-per-engine", 1))),
    "infer.devices": Setting("int", _both(_key("--rollout-num-gpus"))),
    "infer.nodes": Setting("int", {"verl": _key("rollout.nnodes", None)}),
    "infer.per_node": Setting("int", {"verl": _key("rollout.n_gpus_per_node", None)}),
    "colocate": Setting("bool", _both(_key("--colocate", False, form="on"))),
    # --- batches ------------------------------------------------------------------------------------------------------
    "batch.prompts": Setting(
        "int", {"verl": _key("data.train_batch_size", 1024), **_both(_key("--rollout-batch-size"))}
    ),
    "batch.samples": Setting("int", {"verl": _key(_R + "n", 1), **_both(_key("--n-samples-per-prompt", 1))}),
    "batch.mini": Setting("int", {"verl": _key(_A + "ppo_mini_batch_size", 256)}),
    "batch.micro": Setting(
        "int", {"verl": _key(_A + "ppo_micro_batch_size_per_gpu", None), **_both(_key("--micro-batch-size", 1))}
    ),
    "batch.log_prob_micro": Setting("int", {"verl": _key(_R + "log_prob_micro_batch_size_per_gpu", None)}),
    "batch.global": Setting("int", _both(_key("--global-batch-size", None))),
    "batch.steps": Setting("int", _both(_key("--num-steps-per-rollout", None))),
    "batch.dynamic": Setting(
        "bool",
        {"verl": _key(_A + "use_dynamic_bsz", False), **_both(_key("--use-dynamic-batch-size", False, form="on"))},
    ),
    "batch.log_prob_dynamic": Setting("bool", {"verl": _key(_R + "log_prob_use_dynamic_bsz")}),
    "batch.balance": Setting(
        "bool", {"verl": _key("trainer.balance_batch", True), **_both(_key("--balance-data", False, form="on"))}
    ),
    "batch.filter": Setting(
        "bool",
        {
            "verl": _key("algorithm.filter_groups.enable", False),
            **_both(_key("--dynamic-sampling-filter-path", False, form="on")),
        },
    ),
    # --- shapes -------------------------------------------------------------------------------------------------------
    "remove_padding": Setting(
        "bool",
        {
            "verl/fsdp": _by_version("actor_rollout_ref.model.use_remove_padding", ("<0.7", False), (">=0.7", True)),
            "verl/megatron": _by_version(
                "actor_rollout_ref.model.use_remove_padding", ("<0.8", False), (">=0.8", True)
            ),
        },
    ),
    "qkv_format": Setting("text", _both(_key("--qkv-format", "thd"))),
    "pad_multiplier": Setting("int", _both(_key("--data-pad-size-multiplier", 128))),
    "prompt_length": Setting(
        "int", {"verl": _key("data.max_prompt_length", 512), **_both(_key("--rollout-max-prompt-len", None))}
    ),
    # --- the same numbers again ---------------------------------------------------------------------------------------
    "eager": Setting(
        "bool",
        {
            "verl": _by_version(_R + "enforce_eager", ("<0.6", True), (">=0.6", False)),
            "vime": _key("--vllm-enforce-eager", False, form="pair"),
            "vllm": _key("--enforce-eager", False, form="pair"),
            "slime": _key("--sglang-disable-cuda-graph", False, form="on"),
            "sglang": _key("--disable-cuda-graph", False, form="on"),
        },
    ),
    "decode_graph": Setting(
        "text",
        {
            "slime": _key("--sglang-cuda-graph-backend-decode", None),
            "sglang": _key("--cuda-graph-backend-decode", None),
        },
    ),
    "prefill_graph": Setting(
        "text",
        {
            "slime": _key("--sglang-cuda-graph-backend-prefill", None),
            "sglang": _key("--cuda-graph-backend-prefill", None),
        },
    ),
    "seed": Setting(
        "int", {"verl": Key("data.seed", defaults=(("", None),), since="0.6.1"), **_both(_key("--rollout-seed", 42))}
    ),
    "train_seed": Setting("int", _both(_key("--seed", 1234))),
    "shuffle": Setting(
        "bool", {"verl": _key("data.shuffle", True), **_both(_key("--rollout-shuffle", False, form="on"))}
    ),
    "actor_shuffle": Setting("bool", {"verl": _key(_A + "shuffle", False)}),
    "temperature": Setting(
        "float", {"verl": _key(_R + "temperature", 1.0), **_both(_key("--rollout-temperature", 1.0))}
    ),
    # --- what else runs -----------------------------------------------------------------------------------------------
    "val_before_train": Setting("bool", {"verl": _key("trainer.val_before_train", True)}),
    "eval_interval": Setting("int", _both(_key("--eval-interval", None))),
    "skip_eval": Setting("bool", _both(_key("--skip-eval-before-train", False, form="on"))),
    "prefix_caching": Setting(
        "bool",
        {
            "verl@sglang": Key(_SGLANG + "disable_radix_cache", "inverse", (("", True),), prefix="++"),
            "verl": Key(_R + "enable_prefix_caching", defaults=(("", True),), since="0.6"),
            "vime": _key("--vllm-enable-prefix-caching", True, form="pair"),
            "vllm": _key("--enable-prefix-caching", True, form="pair"),
            "slime": _key("--sglang-disable-radix-cache", True, form="off"),
            "sglang": _key("--disable-radix-cache", True, form="off"),
        },
    ),
    "chunked_prefill": Setting(
        "bool",
        {
            "verl": _key(_R + "enable_chunked_prefill"),
            "verl/fsdp": _key(_R + "enable_chunked_prefill", True),
            "verl/megatron": _by_version(_R + "enable_chunked_prefill", ("<0.6", False), (">=0.6", True)),
            "vime": _key("--vllm-enable-chunked-prefill", True, form="pair"),
            "vllm": _key("--enable-chunked-prefill", True, form="pair"),
        },
    ),
    "chunk_tokens": Setting(
        "int",
        {
            "verl@sglang": Key(_SGLANG + "chunked_prefill_size", prefix="++"),
            "verl": _key(_R + "max_num_batched_tokens", 8192),
            "vime": _key("--vllm-max-num-batched-tokens"),
            "vllm": _key("--max-num-batched-tokens"),
            "slime": _key("--sglang-chunked-prefill-size"),
            "sglang": _key("--chunked-prefill-size"),
        },
    ),
    "bypass": Setting(
        "bool",
        {
            "verl": _key("algorithm.rollout_correction.bypass_mode", False),
            **_both(_key("--use-rollout-logprobs", False, form="on")),
        },
    ),
    "mismatch_metrics": Setting("bool", _both(_key("--get-mismatch-metrics", False, form="on"))),
    "tis_function": Setting("text", _both(_key("--custom-tis-function-path", None))),
    "engine": Setting("text", {"verl": _by_version(_R + "name", ("<0.6", "vllm"))}),
}

VERIFIED = {"verl": ">=0.4,<0.10", "slime": ">=0.2,<0.4", "vime": ">=0.2,<0.4"}
"""The versions that the defaults above were read in."""


def key_of(name: str, dialect: str, engine: str | None = None) -> Key | None:
    """How a dialect writes a setting; None when it has none. Of ``verl/fsdp`` what is verl's is found, too."""
    keys = SETTINGS[name].keys
    framework = dialect.partition("/")[0]
    return keys.get(f"{framework}@{engine}") or keys.get(dialect) or keys.get(framework)
