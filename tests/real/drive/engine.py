"""verl's engine worker (0.7.0 on), driven in one process: compute_log_prob, then update_actor."""

from __future__ import annotations

from pathlib import Path

import cpu
import tiny


def build(model: Path, micro_batch: int, *overrides: str):
    cpu.flash_attention_stub()
    import verl
    from hydra import compose, initialize_config_dir

    cpu.memory_functions()
    cpu.platform()
    cpu.attention_functions()
    folder = Path(verl.__file__).parent / "trainer" / "config"
    override = "actor_rollout_ref."
    with initialize_config_dir(str(folder), version_base=None):
        config = compose(
            "ppo_trainer",
            overrides=[
                f"{override}model.path={model}",
                f"+{override}model.override_config.attn_implementation=sdpa",
                f"{override}model.enable_gradient_checkpointing=False",
                f"{override}actor.strategy=fsdp2",
                f"{override}actor.fsdp_config.strategy=fsdp2",
                f"{override}actor.fsdp_config.use_torch_compile=False",
                f"{override}actor.fsdp_config.model_dtype=fp32",
                f"+{override}actor.fsdp_config.mixed_precision.param_dtype=fp32",
                f"{override}actor.use_torch_compile=False",
                f"{override}actor.ppo_mini_batch_size=2",
                f"{override}actor.ppo_micro_batch_size_per_gpu={micro_batch}",
                f"{override}actor.optim.lr=0.01",
                f"{override}rollout.n=1",
                f"{override}rollout.name=vllm",
                f"{override}rollout.log_prob_micro_batch_size_per_gpu={micro_batch}",
                *overrides,
            ],
        )
    from verl.workers.engine_workers import ActorRolloutRefWorker

    cpu.register_engines()

    worker = ActorRolloutRefWorker(config.actor_rollout_ref, role="actor")
    worker.init_model()
    return worker


def batch(**metadata):
    """The batch as the trainer hands it to the worker: no padding, a request id for each sample."""
    from verl import DataProto
    from verl.utils import tensordict_utils as tu
    from verl.workers.utils.padding import left_right_2_no_padding

    shared = {"temperature": tiny.temperature, "global_token_num": [9, 9]}
    data = DataProto.from_dict(tensors=tiny.padded_batch(), non_tensors=tiny.columns(), meta_info=shared)
    return tu.assign_non_tensor(left_right_2_no_padding(data.to_tensordict()), **metadata)


def log_prob(worker, reference: bool = False):
    """(log-probs, entropy), each (B, R)."""
    from verl.utils import tensordict_utils as tu
    from verl.workers.utils.padding import no_padding_2_padding

    data = batch(calculate_entropy=not reference, compute_loss=False)
    if reference:
        tu.assign_non_tensor(data, no_lora_adapter=True)
    out = worker.compute_log_prob(data)
    fields = ["log_probs"] if reference else ["log_probs", "entropy"]
    return [no_padding_2_padding(tu.get(out, field), data).float() for field in fields]


def update(worker, old_log_probs):
    """The metrics of one training step."""
    from verl.utils import tensordict_utils as tu

    data = batch(
        calculate_entropy=True,
        global_batch_size=len(tiny.PROMPTS),
        mini_batch_size=len(tiny.PROMPTS),
        epochs=1,
        seed=42,
        dataloader_kwargs={"shuffle": False},
    )
    data["old_log_probs"] = old_log_probs
    return tu.get(worker.update_actor(data), "metrics")


def module(worker):
    return worker.actor.engine.module
