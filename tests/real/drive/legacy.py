"""verl's legacy FSDP worker (0.4.1 to 0.7.1), driven in one process: compute_log_prob, then update_actor."""

from __future__ import annotations

from pathlib import Path

import cpu
import tiny


def build(model: Path, micro_batch: int, *overrides: str):
    cpu.flash_attention_stub()
    import verl
    from hydra import compose, initialize_config_dir

    cpu.memory_functions()
    cpu.attention_functions()
    cpu.sdpa_only()
    cpu.fsdp1_on_cpu()
    folder = Path(verl.__file__).parent / "trainer" / "config"
    override = "actor_rollout_ref."
    with initialize_config_dir(str(folder), version_base=None):
        config = compose(
            "ppo_trainer",
            overrides=[
                f"{override}model.path={model}",
                f"+{override}model.override_config.attn_implementation=sdpa",
                f"{override}model.enable_gradient_checkpointing=False",
                f"{override}model.use_remove_padding=True",
                f"{override}actor.strategy=fsdp2",
                f"{override}actor.use_torch_compile=False",
                f"+{override}actor.fsdp_config.mixed_precision.param_dtype=fp32",
                f"{override}actor.ppo_mini_batch_size=2",
                f"{override}actor.ppo_micro_batch_size_per_gpu={micro_batch}",
                f"{override}actor.optim.lr=0.01",
                f"{override}rollout.n=1",
                f"{override}rollout.temperature={tiny.temperature}",
                f"{override}rollout.log_prob_micro_batch_size_per_gpu={micro_batch}",
                f"{override}ref.log_prob_micro_batch_size_per_gpu={micro_batch}",
                *overrides,
            ],
        )
    from verl.workers.fsdp_workers import ActorRolloutRefWorker

    worker = ActorRolloutRefWorker(config.actor_rollout_ref, role="actor")
    worker.init_model()
    return worker


def batch(**metadata):
    """The batch as the trainer hands it to the worker: padded, a request id for each sample."""
    from verl import DataProto

    return DataProto.from_dict(tensors=tiny.padded_batch(), non_tensors=tiny.columns(), meta_info=metadata)


def log_prob(worker, reference: bool = False):
    """(log-probs, entropy), each (B, R)."""
    data = batch()
    if reference:
        data.meta_info["is_lora"] = True
    out = worker.compute_log_prob(data).batch
    fields = ["ref_log_prob"] if "ref_log_prob" in set(out.keys()) else ["old_log_probs", "entropys"]
    return [out[field].float() for field in fields]


def update(worker, old_log_probs):
    """The metrics of one training step."""
    data = batch(temperature=tiny.temperature, multi_turn=False, global_token_num=[9, 9])
    data.batch["old_log_probs"] = old_log_probs
    return worker.update_actor(data).meta_info["metrics"]


def module(worker):
    return worker.actor.actor_module
