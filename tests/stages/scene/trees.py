"""Small trees in the likeness of real ones: just the statements that the scene looks for."""

from __future__ import annotations

VERL = {
    "verl/__init__.py": "",
    "verl/version/version": "0.7.1\n",
    "verl/trainer/main_ppo.py": """\
class TaskRunner:
    def add_actor_rollout_worker(self, config):
        use_legacy_worker_impl = config.trainer.get("use_legacy_worker_impl", "auto")
        if use_legacy_worker_impl == "disable":
            from verl.workers.engine_workers import ActorRolloutRefWorker
        trainer = RayPPOTrainer(
            config=config,
        )
""",
    "verl/trainer/config/ppo_trainer.yaml": "trainer:\n  use_legacy_worker_impl: auto\n",
    "verl/trainer/config/rollout/rollout.yaml": "mode: async\n",
    "verl/protocol.py": "class DataProto:\n    pass\n",
    "verl/experimental/agent_loop/agent_loop.py": "",
    "verl/workers/fsdp_workers.py": "class ActorRolloutRefWorker:\n    def compute_log_prob(self, data):\n        return 1\n",
    "verl/workers/engine_workers.py": "class ActorRolloutRefWorker:\n    def compute_log_prob(self, data):\n        return 1\n",
    "verl/workers/engine/fsdp/transformer_impl.py": (
        "class FSDPEngine:\n    def forward_backward_batch(self, data):\n        return 1\n"
    ),
    "verl/workers/rollout/replica.py": "class TokenOutput(BaseModel):\n    extra_fields: dict[str, Any] = {}\n",
}
"""verl 0.7.1 by its contents, with the workers emptied: the recipes for that version miss their places."""

OWN = {
    "mine/__init__.py": '__version__ = "3.1"\n',
    "mine/worker.py": """\
import torch


class Worker:
    def compute_log_prob(self, data):
        outputs = []
        with torch.no_grad():
            for micro_batch in data.split(4):
                log_probs = self.forward_micro_batch(micro_batch)
                outputs.append(log_probs)
        return torch.cat(outputs)
""",
    "mine/rollout.py": """\
class Rollout:
    async def generate(self, prompt_ids, sampling_params):
        output = await self.engine.generate(prompt_ids, sampling_params, request_id=uuid4().hex)
        return output
""",
}
"""A framework that nobody described."""

ENGINE = {
    "vllm/__init__.py": "",
    "vllm/_version.py": '__version__ = version = "0.18.0"\n',
    "vllm/envs.py": "if TYPE_CHECKING:\n    VLLM_USE_V2_MODEL_RUNNER: bool = False\n",
    "vllm/v1/worker/gpu_worker.py": (
        "class Worker:\n    def __init__(self):\n        self.use_v2_model_runner = envs.VLLM_USE_V2_MODEL_RUNNER\n"
    ),
}
"""vLLM 0.18 with nothing but the switch between its runners."""
