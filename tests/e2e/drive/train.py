"""Stands in for `python3 -m verl.trainer.main_ppo` on a machine without accelerators: no Ray, one process, real workers.

The arguments are those of verl's trainer, composed with verl's own configuration; the rollout's responses come from the sample.
One log-prob pass and one training step of the actor are run, as the trainer would. The variables of Ray's runtime environment
are set in this process, as Ray does in its workers.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import random
import socket
import sys

import cpu
import numpy as np
import sample
import tiny
import torch
from hydra.core.override_parser.overrides_parser import OverridesParser

RUNTIME = "ray_kwargs.ray_init.runtime_env.env_vars."


def main(overrides: list[str]) -> None:
    given = {one.key_or_group: one.value() for one in OverridesParser.create().parse_overrides(overrides)}
    os.environ |= {key.removeprefix(RUNTIME): str(value) for key, value in given.items() if key.startswith(RUNTIME)}
    chosen = [one for one in sample.requests() if one.get("side") != "infer"][: given["data.train_batch_size"]]
    tiny.PROMPTS = [one["prompt"] for one in chosen]
    tiny.RESPONSES = [one["response"] for one in chosen]
    tiny.REQUEST_IDS = [one["id"] for one in chosen]
    tiny.PROMPT_WIDTH = given["data.max_prompt_length"]
    tiny.RESPONSE_WIDTH = given["data.max_response_length"]

    torch.set_num_threads(1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cpu.environment(port)
    torch.distributed.init_process_group("gloo")
    worker = importlib.import_module("worker")
    for seed in (torch.manual_seed, np.random.seed, random.seed):
        seed(42)
    drive = importlib.import_module(_kind(given))
    micro_batch = given["actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"]
    actor = drive.build(given["actor_rollout_ref.model.path"], micro_batch, *overrides)
    if os.environ.get("PROBEPATCH_INVENTORY"):
        sample.describe(drive.module(actor), "train")
        return
    if os.environ.get("PERTURB"):  # something on this side that nobody knows of
        _perturb(drive.module(actor), os.environ["PERTURB"])
    if os.environ.get("SEED_ALL") == "1":  # where an unpatched run is to be compared with a capture
        from msprobe.pytorch import seed_all

        seed_all(mode=True)
    seen = worker.training_step(drive, actor)
    metrics = " - ".join(f"{name}:{value}" for name, value in seen["metrics"].items())
    print(f"step:1 - {metrics}", flush=True)
    sample.report(seen | {"verl": sys.modules["verl"].__file__, "msprobe": "msprobe" in sys.modules})


def _kind(given: dict) -> str:
    """The legacy worker, where there is one and it is not switched off."""
    legacy = importlib.util.find_spec("verl.workers.fsdp_workers") is not None
    return "legacy" if legacy and given.get("trainer.use_legacy_worker_impl") != "disable" else "engine"


def _perturb(model, name: str) -> None:
    (parameter,) = (one for full, one in model.named_parameters() if full.endswith(name))
    with torch.no_grad():
        parameter.mul_(1.5)


if __name__ == "__main__":
    main(sys.argv[1:])
