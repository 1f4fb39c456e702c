"""One run of a real verl training worker, under an interpreter with verl's dependencies; what it saw goes to a file.

python worker.py KIND MODEL OUT [OVERRIDE ...] [--micro-batch 1] [--seed-all] [--fail-in-forward] [--reference]
    [--temperature 1.0] [--prefill-entries FILE]
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import json
import random
import socket
import sys
from pathlib import Path

import cpu
import numpy as np
import tiny
import torch


class Broken(Exception):
    """The forward failed because it was told to."""


def digest(tensors) -> str:
    """SHA-256 over the bytes of the tensors, in order: equal when they are equal bit for bit."""
    total = hashlib.sha256()
    for tensor in tensors:
        local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
        total.update(local.detach().contiguous().view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


def random_state() -> str:
    state = repr((random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()))
    return hashlib.sha256(state.encode()).hexdigest()


def numbers(metrics: dict) -> dict[str, str]:
    """Losses, norms and policy metrics to the last digit; times and memory are left out."""
    wanted = ("loss", "grad", "kl", "clip", "entropy")
    return {name: repr(value) for name, value in sorted(metrics.items()) if any(word in name for word in wanted)}


def training_step(drive, worker) -> dict:
    """Log-probs, then one update: everything that has to be the same, patched or not."""
    log_probs, entropy = drive.log_prob(worker)
    seen = {"log_probs": digest([log_probs]), "entropy": digest([entropy]), "random_before_update": random_state()}
    seen["training"] = drive.module(worker).training
    seen["metrics"] = numbers(drive.update(worker, log_probs))
    seen["parameters"] = digest(drive.module(worker).parameters())
    return seen | {"random_after_update": random_state()}


def failing_forward(drive, worker) -> dict:
    """A log-prob whose first decoder layer raises."""

    def fail(*_arguments):
        hook.remove()
        raise Broken

    layer = next(module for name, module in drive.module(worker).named_modules() if name.endswith("layers.0"))
    hook = layer.register_forward_pre_hook(fail)
    try:
        drive.log_prob(worker)
    except Broken:
        return {"raised": True} | debugger_state()
    return {"raised": False}


def reference_log_prob(drive, worker) -> dict:
    """The reference's log-prob on the actor's own weights, as under LoRA."""
    owner = worker.actor.engine if hasattr(worker.actor, "engine") else worker.actor.actor_module
    object.__setattr__(owner, "disable_adapter", contextlib.nullcontext)
    drive.log_prob(worker, reference=True)
    return debugger_state()


def debugger_state() -> dict:
    if "msprobe" not in sys.modules:
        return {"built": False}
    from msprobe.core.common.runtime import Runtime
    from msprobe.pytorch import PrecisionDebugger

    debugger = PrecisionDebugger._instance
    steps = debugger.service.loop if debugger is not None else 0
    return {"built": debugger is not None, "running": Runtime.is_running, "steps": steps}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["engine", "legacy"])
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("--micro-batch", type=int, default=1)
    parser.add_argument("--seed-all", action="store_true", help="seed as the patch does, where it does")
    parser.add_argument("--fail-in-forward", action="store_true")
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--prefill-entries", type=Path, help="JSON: what the rollout brought along, for each sample")
    options = parser.parse_args()
    tiny.temperature = options.temperature
    tiny.prefill_entries = json.loads(options.prefill_entries.read_text()) if options.prefill_entries else None

    torch.set_num_threads(1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cpu.environment(port)
    drive = importlib.import_module(options.kind)
    torch.distributed.init_process_group("gloo")
    for seed in (torch.manual_seed, np.random.seed, random.seed):
        seed(7)
    worker = drive.build(options.model, options.micro_batch, *options.overrides)
    if options.seed_all:
        from msprobe.pytorch import seed_all

        seed_all(mode=True)
    run = failing_forward if options.fail_in_forward else reference_log_prob if options.reference else training_step
    try:
        seen = run(drive, worker)
    except RuntimeError as error:
        seen = {"error": str(error)}
    seen["verl"] = sys.modules["verl"].__file__
    seen["msprobe"] = "msprobe" in sys.modules
    options.out.write_text(json.dumps(seen, indent=1))


if __name__ == "__main__":
    main()
