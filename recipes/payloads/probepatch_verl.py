"""Helpers of the msprobe instrumentation in verl: which forward is dumped, its trimmed copy, its log line.

Added by probepatch; the debugger itself is built, started, stopped and stepped at the patched sites. Switches, read
from the environment of each process:

    DUMP_ON       1: dump. Unset, empty and 0: everything here is inert, and msprobe is never imported.
    PROMPTS_ONLY  1: an extra forward of the prompts alone is dumped, just before the ordinary one, which stays as is.
    DUMP_PHASE    log_prob (default), update_actor or all: which forward is dumped. The training step (update_actor)
                  is only where its own recipe is applied; prefill (the rollout's) leaves the actor alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
from contextlib import contextmanager
from datetime import datetime, timezone

import numpy as np
import torch
from tensordict import TensorDict

from verl.protocol import DataProto
from verl.utils.device import get_torch_device

PARAMETERS: dict = {}  # probepatch: parameters

ROW = "probepatch_row"  # int64 field of a batch that is to be dumped: the sample's index into _requests
REQUEST_ID = "request_id"  # the rollout engine's id of a sample's first request

_requests: list[dict] = []  # of the running pass, for each sample: request_id, prompt_sha256, prompt_tokens
_phase = "log_prob"  # what the running pass is for
_steps_taken = 0  # msprobe's step index, which only the patched sites advance


def _switch(name: str) -> bool:
    value = os.environ.get(name, "").strip()
    if value not in ("", "0", "1"):
        raise ValueError(f"{name}={value!r}: say 1 or 0")
    return value == "1"


def dump_on() -> bool:
    return _switch("DUMP_ON")


def captures_log_prob(is_ref: bool) -> bool:
    """Whether this log-prob forward is dumped: never the reference's, which under LoRA runs on the actor as well."""
    return not is_ref and dump_on() and _chosen_phase() in ("log_prob", "all")


def captures_update() -> bool:
    """Whether the training step is dumped."""
    return dump_on() and _chosen_phase() in ("update_actor", "all")


def _chosen_phase() -> str:
    phase = os.environ.get("DUMP_PHASE", "").strip() or "log_prob"
    if phase not in ("log_prob", "update_actor", "all", "prefill"):
        raise ValueError(f"DUMP_PHASE={phase!r}: say log_prob, update_actor, all or prefill")
    return phase


# --- the debugger -----------------------------------------------------------------------------------------------------


def _config() -> tuple[str, dict]:
    """Path and content of the msprobe config of the training side."""
    name, value = PARAMETERS["actor_config"]
    path = os.environ.get(name) or value
    if not path:
        raise RuntimeError(f"DUMP_ON=1 needs the msprobe config of the training side: set {name} to its path")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    if not config.get("dump_path"):
        raise RuntimeError(f"{path}: `dump_path` is missing; give the training side a folder of its own")
    return path, config


def debugger_settings() -> dict:
    """Arguments of PrecisionDebugger: the file, and task tensor, level L0, step [0] where it says nothing."""
    path, config = _config()
    defaults = {"task": "tensor", "level": "L0", "step": [0]}
    return {"config_path": path, **{key: value for key, value in defaults.items() if key not in config}}


def refuse_second_debugger(debugger_class, actor_config) -> None:
    """PrecisionDebugger is one per process, and a second config is ignored without a word."""
    profiler = actor_config.get("profiler", None) or {}
    if profiler.get("tool", None) == "precision_debugger" and profiler.get("enable", False):
        raise RuntimeError(
            "DUMP_ON=1 and verl's own global_profiler.tool=precision_debugger are both on, and msprobe allows one"
            " debugger per process: switch one of them off"
        )
    if getattr(debugger_class, "_instance", None) is not None:
        raise RuntimeError("DUMP_ON=1, but this process has another PrecisionDebugger, whose config would win")


def require_fsdp_engine(engine) -> None:
    """Only FSDPEngine's own micro-batch loop is instrumented; Megatron, VeOmni and others have loops of their own."""
    from verl.workers.engine.fsdp.transformer_impl import FSDPEngine

    if getattr(type(engine), "forward_backward_batch", None) is not FSDPEngine.forward_backward_batch:
        name = type(engine).__name__
        raise RuntimeError(f"DUMP_ON=1, but the micro-batches of {name} are not instrumented: only FSDP's are")


def require_megatron_engine(engine) -> None:
    """Only MegatronEngineWithLMHead's own forward is instrumented, and not where it deals out micro-batches anew."""
    module = sys.modules.get("verl.workers.engine.megatron.transformer_impl")
    forward = getattr(type(engine), "forward_step", None)
    name = type(engine).__name__
    if module is None or forward is not module.MegatronEngineWithLMHead.forward_step:
        raise RuntimeError(f"DUMP_ON=1, but the forward of {name} is not instrumented: only Megatron's is")
    if getattr(engine.engine_config, "dynamic_context_parallel", False):
        raise RuntimeError(f"DUMP_ON=1, but {name} runs with dynamic_context_parallel=True: switch it off")


# --- which batches are dumped -----------------------------------------------------------------------------------------


def prompt_passes(data, packed: bool, phase: str = "log_prob"):
    """With PROMPTS_ONLY=1: the copies of ``data`` cut to the real prompt tokens, to be run before the ordinary pass.

    ``data`` is a TensorDict with jagged sequences or a DataProto with padded ones; ``packed`` says that the model
    removes padding (use_remove_padding). Where it does not, each sample is a pass of its own, so that no padding is
    left; every rank has the same number of samples, so collectives still meet. The random state is put back afterwards.
    """
    if not _switch("PROMPTS_ONLY"):
        return
    copies = _jagged_prompts if isinstance(data, TensorDict) else _padded_prompts
    with _random_state_kept():
        _note_requests(data, phase)
        yield from copies(data, packed)


def whole_pass(data, phase: str = "log_prob"):
    """``data`` itself, or with PROMPTS_ONLY=0 a shallow copy whose forward is dumped."""
    if _switch("PROMPTS_ONLY"):
        return data
    _note_requests(data, phase)
    if isinstance(data, TensorDict):
        marked = data.copy()
        marked[ROW] = torch.arange(len(_requests))
        return marked
    batch = data.batch.copy()
    batch[ROW] = torch.arange(len(_requests), device=batch["input_ids"].device)
    return DataProto(batch=batch, non_tensor_batch=data.non_tensor_batch, meta_info=data.meta_info)


def row_key(data) -> list[str]:
    """The key that `select` must keep for a batch that is to be dumped."""
    return [ROW] if ROW in data.batch.keys() else []


def is_marked(micro_batch) -> bool:
    return ROW in _fields(micro_batch).keys()


def log_micro_batch(micro_batch) -> None:
    """Append the line of the step that just ended to <dump_path>/rank<R>/update_actor_log.jsonl: no token, no text."""
    global _steps_taken
    fields = _fields(micro_batch)
    samples = [_requests[row] for row in fields[ROW].tolist()]
    ids = fields["input_ids"]
    rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
    line = {
        "time": datetime.now(timezone.utc).isoformat(),
        "phase": _phase,
        "prompts_only": _switch("PROMPTS_ONLY"),
        "step": _steps_taken,
        "rank": rank,
        "pid": os.getpid(),
        "request_ids": [sample["request_id"] for sample in samples],
        "prompt_sha256": [sample["prompt_sha256"] for sample in samples],
        "prompt_tokens": [sample["prompt_tokens"] for sample in samples],
        "token_count": ids.values().numel() if ids.is_nested else int(fields["attention_mask"].sum()),
    }
    _steps_taken += 1
    folder = os.path.join(_config()[1]["dump_path"], f"rank{rank}")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "update_actor_log.jsonl"), "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def _fields(micro_batch):
    return micro_batch.batch if isinstance(micro_batch, DataProto) else micro_batch


def request_id_column(request_ids: list) -> dict:
    """The non-tensor column of a batch that is put together field by field; empty when nothing is dumped."""
    return {REQUEST_ID: np.array(request_ids, dtype=object)} if dump_on() else {}


# --- prompts ----------------------------------------------------------------------------------------------------------


def prompt_hash(token_ids: list[int]) -> str:
    """SHA-256 of the ids in decimal, joined by commas ("151644,872" for two): the other side computes the same."""
    return hashlib.sha256(",".join(map(str, token_ids)).encode()).hexdigest()


def _prompts(data) -> list[torch.Tensor]:
    """The real prompt tokens of each sample, 1-D."""
    fields = _fields(data)
    ids = fields["input_ids"]
    if not ids.is_nested:  # left-padded prompt, then right-padded response
        width = ids.size(1) - fields["responses"].size(1)
        masks = fields["attention_mask"][:, :width].bool()
        return [row[:width][mask] for row, mask in zip(ids, masks)]
    prompts = fields["prompts"]
    if prompts.is_nested:
        lengths = prompts.offsets().diff()
    else:
        lengths = fields["attention_mask"][:, : prompts.size(1)].sum(dim=1)
    return [row[:length] for row, length in zip(ids.unbind(), lengths.tolist())]


def _note_requests(data, phase: str) -> None:
    global _phase
    _phase = phase
    prompts = [prompt.tolist() for prompt in _prompts(data)]
    _requests[:] = [
        {"request_id": request_id, "prompt_sha256": prompt_hash(prompt), "prompt_tokens": len(prompt)}
        for request_id, prompt in zip(_request_ids(data, len(prompts)), prompts)
    ]


def _request_ids(data, count: int) -> list:
    """From the batch, or from its `extra_fields` (trainers on TransferQueue); None where no id came along."""
    columns = data if isinstance(data, TensorDict) else data.non_tensor_batch
    for key in (REQUEST_ID, "extra_fields"):
        column = columns.get(key, None)
        column = column.tolist() if hasattr(column, "tolist") else column
        if isinstance(column, list) and len(column) == count:
            return [value.get(REQUEST_ID) if isinstance(value, dict) else value for value in column]
    return [None] * count


def _groups(count: int, together: bool) -> list[list[int]]:
    return [list(range(count))] if together else [[row] for row in range(count)]


def _jagged_prompts(data, packed: bool):
    """For the engine: everything that is no tensor stays; of the tensors only what the prompt's forward reads."""
    from verl.utils import tensordict_utils as tu

    prompts = _prompts(data)
    lengths = data["input_ids"].offsets().diff().tolist()
    positions = data["position_ids"].values()
    if positions.size(-1) != sum(lengths):  # (B * axes, S): of equal lengths, torch takes the axes for the ragged dim
        positions = positions.unflatten(0, (len(lengths), -1)).transpose(0, 1).flatten(1)
    positions = positions.split(lengths, dim=-1)
    together = packed and positions[0].dim() == 1
    tensors = [key for key in data.keys() if isinstance(data.get(key), torch.Tensor) and key != "temperature"]
    rest = data.exclude(*tensors)
    for rows in _groups(len(prompts), together):
        copy = rest.copy() if together else rest[rows[0] : rows[0] + 1]
        ids = [prompts[row] for row in rows]
        copy["input_ids"] = _jagged(ids)
        copy["position_ids"] = _jagged([positions[row][..., : len(prompts[row])] for row in rows])
        copy["loss_mask"] = _jagged([torch.ones_like(prompt) for prompt in ids])
        copy[ROW] = torch.tensor(rows)
        off = ("calculate_entropy", "calculate_sum_pi_squared", "distillation_use_topk", "enable_routing_replay")
        tu.assign_non_tensor(copy, compute_loss=False, force_group_size=1, **dict.fromkeys(off, False))
        if not together:
            tu.assign_non_tensor(copy, use_dynamic_bsz=False, micro_batch_size_per_gpu=1)
        yield copy


def _jagged(rows: list[torch.Tensor]) -> torch.Tensor:
    return torch.nested.as_nested_tensor(rows, layout=torch.jagged)


def _padded_prompts(data, packed: bool):
    """For the legacy workers: left-padded to the longest; `responses` are the prompt from its second token on."""
    prompts = _prompts(data)
    if min(len(prompt) for prompt in prompts) < 2 and not packed:
        raise RuntimeError("PROMPTS_ONLY=1 with use_remove_padding=False: a prompt of one token has no log-prob")
    batch = data.batch
    width = batch["input_ids"].size(1) - batch["responses"].size(1)
    masks = batch["attention_mask"][:, :width].bool()
    positions = [row[..., :width][..., mask] for row, mask in zip(batch["position_ids"], masks)]
    for rows in _groups(len(prompts), packed):
        wide = max(2, *(len(prompts[row]) for row in rows))

        def padded(tensors, wide=wide, rows=rows):
            return torch.stack([torch.nn.functional.pad(tensors[r], (wide - len(prompts[r]), 0)) for r in rows])

        ids = padded(prompts)
        fields = {
            "input_ids": ids,
            "attention_mask": padded([torch.ones_like(prompt) for prompt in prompts]),
            "position_ids": padded(positions),
            "responses": ids[:, 1:],
            ROW: torch.tensor(rows, device=ids.device),
        }
        images = data.non_tensor_batch.get("multi_modal_inputs")
        columns = {} if images is None else {"multi_modal_inputs": images[rows]}
        copy = TensorDict(fields, batch_size=[len(rows)])
        yield DataProto(batch=copy, non_tensor_batch=columns, meta_info=dict(data.meta_info))


# --- the training step ------------------------------------------------------------------------------------------------


def training_settings(worker, prompts) -> dict:
    """What an engine's training step adds to a batch that does not say it itself."""
    engine = worker.engine_config
    settings = {
        "use_remove_padding": worker.model_config.use_remove_padding,
        "use_dynamic_bsz": engine.use_dynamic_bsz,
        "max_token_len_per_gpu": engine.max_token_len_per_gpu,
        "micro_batch_size_per_gpu": engine.micro_batch_size_per_gpu,
        "use_fused_kernels": engine.use_fused_kernels,
    }
    return {key: value for key, value in settings.items() if key not in prompts.keys()}


def prompt_loss(model_output, data, dp_group=None):
    """(mean negative log-prob of the prompts' tokens from the second on, no metrics): every token counts."""
    log_probs = model_output["log_probs"]  # jagged: at each token the log-prob of the next one; at the last of none
    counted = torch.ones_like(log_probs.values())
    counted[log_probs.offsets()[1:] - 1] = 0
    return _mean_loss(log_probs.values(), counted), {}


def padded_prompt_loss(output, fields):
    """The same for what a legacy actor's forward gives: (B, S - 1), left-padded; a dict of results or a pair."""
    log_probs = output["log_probs"] if isinstance(output, dict) else output[1]
    return _mean_loss(log_probs, fields["attention_mask"][:, :-1])


def _mean_loss(log_probs, counted):
    return -(log_probs * counted).sum() / counted.sum().clamp(min=1)


def not_measured() -> dict:
    """verl's debug metrics where no token of a response counts: not zero, which would look like agreement."""
    missing = dict.fromkeys(("diff_max", "diff_mean", "diff_std"), float("nan"))
    return {
        "training/rollout_probs_diff_valid": 0,
        **{f"training/rollout_probs_{name}": value for name, value in missing.items()},
        "training/rollout_actor_probs_pearson_corr": float("nan"),
    }


# --- Megatron ---------------------------------------------------------------------------------------------------------


def megatron_packs(settings, data) -> bool:
    """Whether a legacy Megatron actor gets the sequences one behind the other; vision models get them padded."""
    return bool(settings.get("use_remove_padding", True)) and "multi_modal_inputs" not in data.non_tensor_batch


@contextmanager
def apart_on_megatron(actor):
    """Around a legacy actor's extra forward: eval mode and no routing replay.

    Afterwards the modes, the routers' actions and Megatron's own random states are what they were.
    """
    from megatron.core import tensor_parallel

    tracker = tensor_parallel.get_cuda_rng_tracker()
    states = tracker.get_states()
    modes = [(chunk, chunk.training) for chunk in actor.actor_module]
    replays = getattr(actor, "enable_routing_replay", False)
    patch = sys.modules.get("verl.utils.megatron.router_replay_patch")
    actions = [(router, router.router_replay_action) for router in patch.RouterReplay.router_instances] if patch else []
    try:
        for chunk, _training in modes:
            chunk.eval()
        for router, _action in actions:
            router.router_replay_action = None
        if replays:
            actor.enable_routing_replay = False
        yield
    finally:
        for chunk, training in modes:
            chunk.train(training)
        for router, action in actions:
            router.router_replay_action = action
        if replays:
            actor.enable_routing_replay = True
        tracker.set_states(states)


@contextmanager
def _random_state_kept():
    """Python's, NumPy's, torch's and the device's random state are the same afterwards."""
    device = get_torch_device()
    of_device = device.get_rng_state() if hasattr(device, "get_rng_state") else None
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])
        if of_device is not None:
            device.set_rng_state(of_device)
