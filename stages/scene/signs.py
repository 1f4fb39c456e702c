"""Facts about trees that the scene looks up: native msprobe, what may skip a capture, how request ids change, official guides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from locales import _


@dataclass(frozen=True)
class Sign:
    """A pattern that is looked for in files, and what it means where it is found."""

    files: tuple[str, ...]
    pattern: str
    says: str


@dataclass(frozen=True)
class Guide:
    """An official guide of msprobe: for which versions and backends it says that it is."""

    versions: str
    backends: tuple[str, ...]
    document: str


_RUNNER, _RUNNER2 = "vllm/v1/worker/gpu_model_runner.py", "vllm/v1/worker/gpu/model_runner.py"
_ASCEND = "vllm_ascend/worker/model_runner_v1.py"
_SGLANG = "sglang/srt/model_executor/model_runner.py"

NATIVE: Mapping[str, Sign] = {
    "verl": Sign(
        ("verl/utils/profiler/precision_debugger_profile.py",),
        r"^ +from msprobe\.pytorch import PrecisionDebugger",
        _(
            "global_profiler.tool=precision_debugger; it puts all micro-batches into one step, never trims and swallows errors:"
            " named here, not used, and to be left off"
        ),
    ),
    "slime": Sign(("slime/backends/megatron_utils/actor.py",), r"^ *from msprobe", ""),
    "vime": Sign(("vime/backends/megatron_utils/actor.py",), r"^ *from msprobe", ""),
    "vllm": Sign((_RUNNER, _RUNNER2), r"^ *from msprobe", ""),
    "vllm_ascend": Sign(
        (_ASCEND,),
        r"^ +self\.debugger = PrecisionDebugger\(",
        _("--additional-config with dump_config_path (0.12.0rc1: dump_config), eager mode"),
    ),
    "sglang": Sign(
        (_SGLANG, "sglang/srt/model_executor/model_runner_components/misc_utils.py"),
        r"^ +(?:self\.msprobe_debugger|return|debugger) ?=? ?PrecisionDebugger\(",
        _("--msprobe-dump-config FILE; where msprobe is not installed a warning is all, and the dump stays empty"),
    ),
}
"""Where a framework's own msprobe integration shows, and how it is switched on."""

STARTS: Mapping[str, Sign] = {
    "vllm_ascend": Sign((_ASCEND,), r"^ +self\.(?:debugger\.start|_start_dump_data)\(", ""),
    "sglang": Sign((_SGLANG,), r"^ +self\.msprobe_debugger\.start\(", ""),
}
"""Where a native integration starts a step of its own."""

SKIPS: Mapping[str, tuple[Sign, ...]] = {
    "verl": (
        Sign(
            (
                "verl/trainer/ppo/v1/trainer_base.py",
                "verl/trainer/ppo/v1/trainer_separate_async.py",
                "verl/trainer/main_ppo_sync.py",
                "verl/trainer/ppo/ray_trainer.py",
                "verl/experimental/separation/ray_trainer.py",
            ),
            r"^ +if bypass_recomputing_logprobs:",
            _("algorithm.rollout_correction.bypass_mode=True takes the rollout's log-probs: keep it false"),
        ),
    ),
    **{
        name: (
            Sign(
                (f"{name}/backends/megatron_utils/actor.py",),
                r"^ +can_reuse_log_probs_in_loss = \(",
                _("the loss computes the log-probs itself: --get-mismatch-metrics forces the forward"),
            ),
            Sign(
                (f"{name}/backends/megatron_utils/actor.py",),
                r"^ +if (?:\(\s*)?not self\.args\.use_rollout_logprobs or self\.args\.get_mismatch_metrics",
                _("--use-rollout-logprobs without --get-mismatch-metrics leaves the forward out"),
            ),
        )
        for name in ("slime", "vime")
    },
    "vllm": (
        Sign(
            ("vllm/config/model.py", "vllm/config/__init__.py"),
            r"^ +enforce_eager: bool = False",
            _("compiled code and graphs pass no hooks: --enforce-eager"),
        ),
        Sign(
            ("vllm/config/cache.py",),
            r"^ +enable_prefix_caching: .*= (?:True|None)",
            _("a prompt whose prefix is cached is not computed whole: --no-enable-prefix-caching"),
        ),
        Sign(
            (_RUNNER,),
            r"^ +if not (?:scheduler_output\.total_)?num_scheduled_tokens:",
            _("a step without tokens runs no forward"),
        ),
    ),
    "vllm_ascend": (
        Sign(
            (_ASCEND,),
            r"^ +if self\.model_config\.enforce_eager:",
            _("the dump works in eager mode only: --enforce-eager"),
        ),
        Sign(
            (_ASCEND,),
            r"^ +if not (?:scheduler_output\.total_)?num_scheduled_tokens:",
            _("a step without tokens runs no forward"),
        ),
    ),
    "sglang": (
        Sign(
            ("sglang/srt/server_args.py", "sglang/srt/arg_groups/fields/exec_.py"),
            r"^ +disable_cuda_graph: .*= False",
            _("graphs pass no hooks: --disable-cuda-graph (--msprobe-dump-config sets it by itself)"),
        ),
        Sign(
            ("sglang/srt/server_args.py", "sglang/srt/arg_groups/fields/memory.py"),
            r"^ +disable_radix_cache: ",
            _("a prompt whose prefix is cached is not computed whole: --disable-radix-cache"),
        ),
    ),
}
"""What may keep the forward from being run, or the hooks from seeing it."""

LINKS: Mapping[str, tuple[Sign, ...]] = {
    "verl": (
        Sign(
            ("verl/trainer/config/rollout/rollout.yaml",),
            r"^mode: *sync",
            _("with this default no request has an id: dumps are joined by the SHA-256 of the prompt's token ids"),
        ),
    ),
    "vllm": (
        Sign(
            ("vllm/v1/engine/input_processor.py",),
            r"^ +request\.request_id = f\"\{request\.external_req_id\}-\{random_uuid\(\):\.8\}\"",
            _("the engine appends `-` and 8 characters to every id: they come off before ids are matched"),
        ),
    ),
    "sglang": (
        Sign(
            ("sglang/srt/model_executor/forward_batch_info.py",),
            r"^ +rids: ",
            _("a forward batch knows the ids of its requests"),
        ),
    ),
}
"""What happens to a request's id on its way."""

GUIDES: Mapping[str, tuple[Guide, ...]] = {
    "verl": (
        Guide("<0.7", ("fsdp",), "verl_fsdp_consistency_preprocess_dump.md"),
        Guide("<0.7", ("megatron",), "verl_megatron_consistency_preprocess_dump.md"),
        Guide(">=0.7,<0.9.0.dev0", ("fsdp", "megatron"), "verl_async_consistency_preprocess_dump.md"),
        Guide("==0.9.0.dev0", ("fsdp", "megatron"), "verl_v1_trainer_consistency_preprocess_dump.md"),
    ),
    "slime": (Guide("==0.2.2", ("megatron",), "slime_consistency_preprocess_dump.md"),),
    "vllm_ascend": (Guide(">=0.12.0rc1", (), "vllm_dump_instruct.md"),),
    "sglang": (
        Guide(">=0.5.8,<0.5.11", (), "sglang_eager_dump_instruct.md"),
        Guide(">=0.5.11", (), "sglang_eager_dump_instruct_new.md"),
    ),
}
"""msprobe's guides for this kind of capture, as their own index had them on the day of the facts. Which models a guide covers is
its own word; no list of them is kept here."""

ROLES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "train": {
        "trim": ("dump-log-prob", "dump-log-prob-not-reference"),
        "capture": ("dump-micro-batch", "dump-fused-micro-batch", "dump-unfused-micro-batch"),
        "link": (
            "keep-request*",
            "send-the-loops-id",
            "set-request-id*",
            "batch-request*",
            "return-request-id",
            "name-request",
        ),
    },
    "infer": {
        "trim": (),
        "capture": ("dump-forward*", "before-the-rollout", "log-step*"),
        "link": ("note-requests", "one-step*", "log-step*", "before-the-rollout"),
    },
}
"""Which edits of a recipe stand at which of the three places: patterns of their ids."""

OWN_ROLES: Mapping[str, tuple[str, ...]] = {"trim": ("*trim*",), "capture": ("*capture*",), "link": ("*request*",)}
"""The same for recipes of one's own: the word in the edit's id says it."""

BACKEND = {
    "fsdp": ("verl-legacy-fsdp", "verl-engine-fsdp"),
    "megatron": ("verl-legacy-megatron", "verl-engine-megatron", "slime-megatron*", "vime-megatron"),
}
"""Recipes by the training backend that they are for."""
