"""Which worker, trainer and runner run when nobody says otherwise: facts read in the released sources, with their date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from locales import _

AS_OF = "2026-11-29"
"""The day on which the facts were read in the released sources."""


@dataclass(frozen=True)
class Way:
    """What runs. ``word`` is stable, for programs, None where it is decided at run time; ``recipes`` are the ids of those that
    are for it and for no other way."""

    word: str | None
    says: str
    recipes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fact:
    """``decides`` and ``default`` are patterns with the files they are looked for in; without a default the way is ``ways[""]``.
    ``expected`` is the default that the versions had on the day of the facts."""

    about: str  # worker | trainer | rollout | engine | runner | backend
    versions: str
    switch: str
    decides: tuple[str, ...]
    pattern: str
    ways: Mapping[str, Way]
    default: tuple[str, ...] = ()
    default_pattern: str = ""
    expected: str = ""


_MAIN, _YAML = ("verl/trainer/main_ppo.py", "verl/trainer/main_ppo_v0.py"), ("verl/trainer/config/ppo_trainer.yaml",)
_LEGACY = ("verl-legacy-fsdp", "verl-legacy-megatron")
_ENGINE = ("verl-engine-fsdp", "verl-engine-megatron")
_V1, _V2 = ("vllm-v1-runner",), ("vllm-v2-runner",)
_ENVS = ("vllm/envs.py",)
_VLLM_RUNNERS = {
    "False": Way("V1", _("vllm/v1/worker/gpu_model_runner.py; VLLM_USE_V2_MODEL_RUNNER=1 takes the V2 runner"), _V1),
    "True": Way("V2", _("vllm/v1/worker/gpu/model_runner.py; VLLM_USE_V2_MODEL_RUNNER=0 takes the V1 runner"), _V2),
}
_ASCEND = ("vllm_ascend/worker/worker.py", "vllm_ascend/worker/worker_v1.py")

FACTS: Mapping[str, tuple[Fact, ...]] = {
    "verl": (
        Fact(
            "worker",
            ">=0.7,<0.8",
            "trainer.use_legacy_worker_impl",
            _MAIN,
            r'^ +if use_legacy_worker_impl == "disable":',
            {
                "auto": Way("legacy", _("fsdp_workers.py or megatron_workers.py; `disable` takes the engine"), _LEGACY),
                "enable": Way("legacy", _("fsdp_workers.py or megatron_workers.py"), _LEGACY),
                "disable": Way("engine", _("engine_workers.py"), _ENGINE),
            },
            _YAML,
            r"^ +use_legacy_worker_impl: *(\w+)",
            "auto",
        ),
        Fact(
            "worker",
            ">=0.8",
            "",
            _MAIN,
            r"^ +from verl\.workers\.engine_workers import .*ActorRolloutRefWorker",
            {"": Way("engine", _("engine_workers.py; the legacy workers are gone"), _ENGINE)},
        ),
        Fact(
            "worker",
            "<0.7",
            "",
            _MAIN,
            r"^ +from verl\.workers\.fsdp_workers import .*ActorRolloutRefWorker",
            {
                "": Way(
                    "legacy", _("fsdp_workers.py or megatron_workers.py; a switch, if any, is the critic's"), _LEGACY
                )
            },
        ),
        Fact(
            "trainer",
            ">=0.9",
            "trainer.use_v1",
            _MAIN,
            r"^ +if config\.trainer\.use_v1:",
            {
                "true": Way("V1", _("verl/trainer/ppo/v1/trainer_base.py: PPOTrainer, data in TransferQueue")),
                "false": Way("v0", _("verl/trainer/ppo/ray_trainer.py: RayPPOTrainer, by main_ppo_v0.py")),
            },
            _YAML,
            r"^ +use_v1: *(\w+)",
            "true",
        ),
        Fact(
            "trainer",
            "<0.9",
            "",
            _MAIN,
            r"^ +trainer = RayPPOTrainer\(",
            {"": Way("v0", _("verl/trainer/ppo/ray_trainer.py: RayPPOTrainer"))},
        ),
        *(
            Fact(
                "rollout",
                versions,
                "actor_rollout_ref.rollout.mode",
                files,
                pattern,
                {
                    "sync": Way(
                        "spmd",
                        _(
                            "the engine runs in the trainer's own process: its side is captured here, by verl-spmd-rollout"
                        ),
                        ("verl-spmd-rollout",),
                    ),
                    "async": Way(
                        "async", _("servers of their own; the engine's side is captured in the engine's tree")
                    ),
                },
                files,
                pattern,
                expected,
            )
            for versions, files, pattern, expected in (
                (">=0.7", ("verl/trainer/config/rollout/rollout.yaml",), r"^mode: *(\w+)", "async"),
                (">=0.5,<0.7", ("verl/trainer/config/rollout/rollout.yaml",), r"^mode: *(\w+)", "sync"),
                ("<0.5", _YAML, r"^    mode: *(\w+)", "sync"),
            )
        ),
    ),
    "vllm": (
        Fact(
            "engine",
            "<0.11.1",
            "VLLM_USE_V1",
            _ENVS,
            r"^ +VLLM_USE_V1: bool = (\w+)",
            {
                "True": Way("V1", _("the V1 engine"), _V1),
                "False": Way("V0", _("the V0 engine, for which there is no recipe")),
            },
            _ENVS,
            r"^ +VLLM_USE_V1: bool = (\w+)",
            "True",
        ),
        Fact(
            "runner",
            ">=0.22,<0.29",
            "VLLM_USE_V2_MODEL_RUNNER",
            ("vllm/config/vllm.py",),
            r"^ +if not self\._is_default_v2_model_runner_model\(\):",
            _VLLM_RUNNERS
            | {
                "None": Way(
                    None,
                    _(
                        "V2 for the architectures of DEFAULT_V2_MODEL_RUNNER_ARCHITECTURES where Triton and all features are "
                        "there, else V1; set VLLM_USE_V2_MODEL_RUNNER to be sure"
                    ),
                )
            },
            _ENVS,
            r"^ +VLLM_USE_V2_MODEL_RUNNER: bool[^=]*= (\w+)",
            "None",
        ),
        Fact(
            "runner",
            ">=0.29",
            "VLLM_USE_V2_MODEL_RUNNER",
            ("vllm/config/vllm.py",),
            r"^ +def use_v2_model_runner\(self\)",
            _VLLM_RUNNERS
            | {
                "None": Way(
                    None,
                    _(
                        "V2 where Triton is there and the configuration has no feature that V2 lacks, else V1; set "
                        "VLLM_USE_V2_MODEL_RUNNER to be sure"
                    ),
                )
            },
            _ENVS,
            r"^ +VLLM_USE_V2_MODEL_RUNNER: bool[^=]*= (\w+)",
            "None",
        ),
        Fact(
            "runner",
            ">=0.12,<0.22",
            "VLLM_USE_V2_MODEL_RUNNER",
            ("vllm/v1/worker/gpu_worker.py",),
            r"^ +self\.use_v2_model_runner = envs\.VLLM_USE_V2_MODEL_RUNNER",
            _VLLM_RUNNERS,
            _ENVS,
            r"^ +VLLM_USE_V2_MODEL_RUNNER: bool[^=]*= (\w+)",
            "False",
        ),
        Fact(
            "runner",
            "<0.12",
            "",
            ("vllm/v1/worker/gpu_model_runner.py",),
            r"^class GPUModelRunner\b",
            {"": Way("V1", _("vllm/v1/worker/gpu_model_runner.py; there is no other runner"), _V1)},
        ),
    ),
    "vllm_ascend": (
        Fact(
            "runner",
            ">=0.13.0rc1,<0.23.0rc1",
            "VLLM_USE_V2_MODEL_RUNNER",
            _ASCEND,
            r"^ +self\.use_v2_model_runner = envs_vllm\.VLLM_USE_V2_MODEL_RUNNER",
            {
                "": Way(
                    "V1",
                    _(
                        "model_runner_v1.py; with VLLM_USE_V2_MODEL_RUNNER=1 the V2 runner, which ignores a dump's settings"
                    ),
                )
            },
        ),
        Fact(
            "runner",
            ">=0.23.0rc1",
            "VLLM_USE_V2_MODEL_RUNNER",
            _ASCEND,
            r"^ +self\.use_v2_model_runner = self\.vllm_config\.use_v2_model_runner",
            {
                "": Way(
                    None,
                    _(
                        "vLLM's own configuration decides, which is not in this tree; the V2 runner ignores a dump's settings: "
                        "VLLM_USE_V2_MODEL_RUNNER=0 takes model_runner_v1.py"
                    ),
                )
            },
        ),
        Fact(
            "runner",
            "<0.13.0rc1",
            "",
            ("vllm_ascend/worker/model_runner_v1.py",),
            r"^class NPUModelRunner\b",
            {"": Way("V1", _("model_runner_v1.py; there is no other runner"))},
        ),
    ),
    "sglang": (
        Fact(
            "runner",
            ">=0.5.8",
            "",
            ("sglang/srt/model_executor/model_runner.py",),
            r"^class ModelRunner\b",
            {"": Way("ModelRunner", _("sglang/srt/model_executor/model_runner.py; there is no other runner"))},
        ),
    ),
    **{
        name: (
            Fact(
                "backend",
                ">=0.2",
                "--train-backend",
                (f"{name}/utils/arguments.py",),
                r'"--train-backend",[^)]{0,200}?default="(\w+)"',
                {
                    "megatron": Way("megatron", _("backends/megatron_utils/actor.py")),
                    "fsdp": Way("fsdp", _("backends/fsdp_utils/actor.py")),
                },
                (f"{name}/utils/arguments.py",),
                r'"--train-backend",[^)]{0,200}?default="(\w+)"',
                "megatron",
            ),
        )
        for name in ("slime", "vime")
    },
}
