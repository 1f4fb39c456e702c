"""Helpers of the msprobe instrumentation in verl: which forward is dumped, its trimmed copy, log lines, log-probs.

Added by probepatch; the debugger itself is built, started, stopped and stepped at the patched sites. Switches, read
from the environment of each process:

    DUMP_ON               1: dump. Unset, empty and 0: nothing is dumped, and msprobe is never imported.
    PROMPTS_ONLY          1: an extra forward of the prompts alone is dumped, just before the ordinary one, which stays
                          as it is.
    DUMP_PHASE            log_prob (default), update_actor or all: which forward is dumped. The training step
                          (update_actor) is only where its own recipe is applied; prefill (the rollout's) leaves the
                          actor alone.
    PREFILL_LOGPROB_DIFF  1: the forward of the prompts alone gives their log-probs, which are written and compared
                          with the rollout engine's; needs no dump.
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

PREFILL = "prefill_logprobs"  # what the rollout engine said about the log-probs of that request's prompt

_requests: list[dict] = []  # of the running pass, for each sample: request_id, prompt_sha256, prompt_tokens, prefill
_log_probs: list[list[float]] = []  # of the running pass, for each sample so far: those of its tokens 1 to P - 1
_described = False
_phase = "log_prob"  # what the running pass is for
_steps_taken = 0  # msprobe's step index, which only the patched sites advance


def _switch(name: str) -> bool:
    value = os.environ.get(name, "").strip()
    if value not in ("", "0", "1"):
        raise ValueError(f"{name}={value!r}: say 1 or 0")
    return value == "1"


def dump_on() -> bool:
    return _switch("DUMP_ON")


def prefill_diff_on() -> bool:
    return _switch("PREFILL_LOGPROB_DIFF")


def notes_requests() -> bool:
    """Whether samples take their request along from the rollout."""
    return dump_on() or prefill_diff_on()


def captures(phase: str) -> bool:
    """Whether the forward of this phase is dumped: log_prob, or the training step, update_actor."""
    return dump_on() and _chosen_phase() in (phase, "all")


def observes_log_prob(is_ref: bool) -> bool:
    """Whether this log-prob forward is dumped or compared: never the reference's, under LoRA on the actor as well."""
    return not is_ref and (captures("log_prob") or prefill_diff_on())


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
        switch = "DUMP_ON" if dump_on() else "PREFILL_LOGPROB_DIFF"
        raise RuntimeError(f"{switch}=1 needs the msprobe config of the training side: set {name} to its path")
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
    """The copies of ``data`` cut to the real prompt tokens, to be run before the ordinary pass; often there are none.

    They are dumped with PROMPTS_ONLY=1; with PREFILL_LOGPROB_DIFF=1 the log-probs given to `keep_log_probs` are
    compared after the last one. ``data`` is a TensorDict with jagged sequences or a DataProto with padded ones;
    ``packed`` says that the model removes padding (use_remove_padding). Where it does not, each sample is a pass of its
    own, so that no padding is left; every rank has the same number of samples, so collectives still meet. The random
    state is put back afterwards.
    """
    dumps = captures(phase) and _switch("PROMPTS_ONLY")
    compares = phase == "log_prob" and prefill_diff_on()
    if not (dumps or compares):
        return
    _config()
    copies = _jagged_prompts if isinstance(data, TensorDict) else _padded_prompts
    with _random_state_kept():
        _note_requests(data, phase)
        for copy in copies(data, packed, raw=phase == "log_prob"):
            if not dumps:
                _fields(copy).pop(ROW)
            yield copy
    if compares:
        _compare_prefill()


def whole_pass(data, phase: str = "log_prob"):
    """``data`` itself, or with PROMPTS_ONLY=0 a shallow copy whose forward is dumped."""
    if _switch("PROMPTS_ONLY") or not captures(phase):
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


def _rest_load() -> None:
    """msprobe's `load` (a stub round) goes on overriding inputs after stop() and step(): in the ordinary forward, in decode steps.

    start() sets it to work again; with dump_after_load=false it does not, and the first step is the only one.
    """
    from msprobe.pytorch import PrecisionDebugger

    service = getattr(getattr(PrecisionDebugger, "_instance", None), "service", None)
    loader = getattr(getattr(service, "module_processor", None), "tensor_loader", None)
    if loader is not None:
        loader.active = False


def log_micro_batch(micro_batch) -> None:
    """Append the line of the step that just ended to <dump_path>/rank<R>/update_actor_log.jsonl: no token, no text."""
    global _steps_taken
    _rest_load()
    fields = _fields(micro_batch)
    samples = [_requests[row] for row in fields[ROW].tolist()]
    ids = fields["input_ids"]
    line = {
        "phase": _phase,
        "prompts_only": _switch("PROMPTS_ONLY"),
        "step": _steps_taken,
        "request_ids": [sample["request_id"] for sample in samples],
        "prompt_sha256": [sample["prompt_sha256"] for sample in samples],
        "prompt_tokens": [sample["prompt_tokens"] for sample in samples],
        "token_count": ids.values().numel() if ids.is_nested else int(fields["attention_mask"].sum()),
    }
    _steps_taken += 1
    _append("update_actor_log.jsonl", line)


def _append(name: str, line: dict) -> None:
    rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
    folder = os.path.join(_config()[1]["dump_path"], f"rank{rank}")
    os.makedirs(folder, exist_ok=True)
    head = {"time": datetime.now(timezone.utc).isoformat(), "rank": rank, "pid": os.getpid()}
    with open(os.path.join(folder, name), "a", encoding="utf-8") as file:
        file.write(json.dumps(head | line) + "\n")


def _fields(micro_batch):
    return micro_batch.batch if isinstance(micro_batch, DataProto) else micro_batch


def request_id_column(request_ids: list) -> dict:
    """The non-tensor column of a batch that is put together field by field; empty when ids are not noted."""
    return {REQUEST_ID: np.array(request_ids, dtype=object)} if notes_requests() else {}


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
    request_ids, prefills = (_column(data, name, len(prompts)) for name in (REQUEST_ID, PREFILL))
    _requests[:] = [
        {"request_id": request_id, "prompt_sha256": prompt_hash(prompt), "prompt_tokens": len(prompt), PREFILL: prefill}
        for request_id, prompt, prefill in zip(request_ids, prompts, prefills)
    ]
    _log_probs.clear()


def _column(data, name: str, count: int) -> list:
    """From the batch, or from its `extra_fields` (trainers on TransferQueue); None where nothing came along."""
    columns = data if isinstance(data, TensorDict) else data.non_tensor_batch
    for key in (name, "extra_fields"):
        column = columns.get(key, None)
        column = column.tolist() if hasattr(column, "tolist") else column
        if isinstance(column, list) and len(column) == count:
            return column if key == name else [value.get(name) if isinstance(value, dict) else None for value in column]
    return [None] * count


def _groups(count: int, together: bool) -> list[list[int]]:
    return [list(range(count))] if together else [[row] for row in range(count)]


def _jagged_prompts(data, packed: bool, raw: bool):
    """For the engine: everything that is no tensor stays; of the tensors only what the prompt's forward reads.

    ``raw`` asks for temperature 1, here and below: the log-probs are the model's own.
    """
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
        if raw:
            copy.pop("temperature", None)
            tu.assign_non_tensor(copy, temperature=1.0)
        if not together:
            tu.assign_non_tensor(copy, use_dynamic_bsz=False, micro_batch_size_per_gpu=1)
        yield copy


def _jagged(rows: list[torch.Tensor]) -> torch.Tensor:
    return torch.nested.as_nested_tensor(rows, layout=torch.jagged)


def _padded_prompts(data, packed: bool, raw: bool):
    """For the legacy workers: left-padded to the longest; `responses` are the prompt from its second token on."""
    prompts = _prompts(data)
    if min(len(prompt) for prompt in prompts) < 2 and not packed:
        raise RuntimeError(
            "use_remove_padding=False, and a prompt of one token has no log-prob: PROMPTS_ONLY=0 and"
            " PREFILL_LOGPROB_DIFF=0 go without"
        )
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
        settings = data.meta_info | ({"temperature": 1.0} if raw else {})
        yield DataProto(batch=copy, non_tensor_batch=columns, meta_info=settings)


# --- log-probs of the prompts, training against inference -------------------------------------------------------------


def ask_for_prompt_logprobs(sampling_params: dict, config) -> dict:
    """Sampling parameters of a request that gives its prompt's log-probs as well, unless the caller asks itself."""
    if not _asks(sampling_params, config):
        return sampling_params
    return {**sampling_params, "prompt_logprobs": 0}  # of the prompt's own tokens, no others


def _asks(sampling_params: dict, config) -> bool:
    """Whether the request is one of the actor's rollout (a teacher's asks itself), to a server that has them."""
    if not prefill_diff_on() or sampling_params.get("prompt_logprobs") is not None:
        return False
    return config.actor_rollout_ref.rollout.name in ("vllm", "sglang")


def keep_request(output, request_id: str, prompt_ids, sampling_params: dict, config) -> None:
    """Put the request that was answered into the output's extra_fields, which travel with the sample into the batch.

    ``sampling_params`` are the caller's. The server adds prompt_logprobs and prompt_ids, one row for each token from
    the second on and one more, each with the token's own value first; they give way to one entry of a known shape.
    """
    output.extra_fields[REQUEST_ID] = request_id
    if not _asks(sampling_params, config):
        return
    found = [output.extra_fields.pop(name, None) for name in ("prompt_logprobs", "prompt_ids")]
    output.extra_fields[PREFILL] = _prefill_entry(*found, list(prompt_ids), config.actor_rollout_ref.rollout)
    if not sampling_params.get("logprobs"):
        output.log_probs = None  # SGLang gives the response's along with the prompt's


def carry_request(output, merged_output) -> None:
    """For a resumed rollout, which is merged into a fresh output: its request is the last one with the bare prompt."""
    kept = {name: output.extra_fields[name] for name in (REQUEST_ID, PREFILL) if name in output.extra_fields}
    merged_output.extra_fields.update(kept)


def _prefill_entry(log_probs, token_ids, prompt: list[int], rollout) -> dict:
    """The prompt's hash and log-probs, or why there are none. Raw: the engines' processors leave prompts alone."""
    mode = getattr(rollout, "logprobs_mode", None) if rollout.name == "vllm" else None
    entry = {"engine": rollout.name, "engine_logprobs_mode": mode, "prompt_sha256": prompt_hash(prompt)}
    if log_probs is None:
        return entry | {"missing": f"the {rollout.name} server returned no prompt_logprobs"}
    _describe_once({"prompt_logprobs": log_probs, "prompt_ids": token_ids})
    if str(mode).endswith("logits"):
        return entry | {"missing": f"rollout.logprobs_mode={mode} gives logits"}
    try:
        values, tokens = ([row[0] for row in rows] for rows in (log_probs, token_ids))
        values = [float(value) for value in values[:-1]]
    except (TypeError, ValueError, IndexError, KeyError) as error:
        return entry | {"missing": f"prompt_logprobs has an unknown shape ({type(error).__name__}: {error})"}
    if tokens[:-1] != prompt[1:] or len(values) != len(prompt) - 1:
        return entry | {"missing": f"the {rollout.name} server's prompt_ids are not the prompt's own tokens"}
    return entry | {"logprobs": values}


def keep_log_probs(output) -> None:
    """Note what a pass over the prompts gave: an engine's output, jagged; or a legacy actor's, padded on the left.

    ``output`` is None on ranks that have no results.
    """
    if output is None or not prefill_diff_on():
        return
    found = output[0] if isinstance(output, tuple) else output["log_probs"]
    for row in found.unbind():
        count = _requests[len(_log_probs)]["prompt_tokens"] - 1
        start = 0 if found.is_nested else len(row) - count
        _log_probs.append(row[start : start + count].tolist())


def _compare_prefill() -> None:
    """Write both sides' log-probs, and print how far they are apart: |exp(train) - exp(infer)| for each token."""
    diffs: list[float] = []
    reasons: list[str] = []
    for request, train in zip(_requests, _log_probs):
        _append_prefill(request, "train", train)
        infer = request[PREFILL]
        reason = _not_comparable(request, infer)
        if reason:
            reasons.append(reason)
            continue
        engine = {name: infer[name] for name in ("engine", "engine_logprobs_mode")}
        _append_prefill(request, "infer", infer["logprobs"], **engine)
        diffs += np.abs(np.exp(train) - np.exp(infer["logprobs"])).tolist()
    if diffs:
        mean, largest, deviation = np.mean(diffs), np.max(diffs), np.std(diffs)
        numbers = f"prefill_logprob_diff_mean={mean:g} prefill_logprob_diff_max={largest:g}"
        print(f"{numbers} prefill_logprob_diff_std={deviation:g}", flush=True)
    for reason in dict.fromkeys(reasons):
        which = f"{reasons.count(reason)} of {len(_log_probs)} requests: {reason}"
        print(f"prefill_logprob_diff: not computed ({which})", flush=True)


def _not_comparable(request: dict, infer) -> str:
    """Why the inference side cannot be compared; empty when it can."""
    if infer is None:
        return (
            "no log-probs of the prompt came from the rollout; verl's servers give them from 0.8 on, and the rollout's"
            " processes need PREFILL_LOGPROB_DIFF=1, too"
        )
    if infer.get("missing"):
        return infer["missing"]
    if infer["prompt_sha256"] != request["prompt_sha256"]:
        return "the rollout's prompt has other tokens"
    return "" if request["prompt_tokens"] > 1 else "a prompt of one token has no log-prob"


def _append_prefill(request: dict, side: str, log_probs: list[float], **more) -> None:
    line = {
        "side": side,
        "request_id": request["request_id"],
        "n_tokens": request["prompt_tokens"],
        "prompt_sha256": request["prompt_sha256"],
        "logprobs": log_probs,  # of tokens 1 to n_tokens - 1
        "logprobs_mode": "raw",
        "temperature": 1.0,
    }
    _append("prefill_logprobs.jsonl", line | more)


def _describe_once(fields: dict) -> None:
    global _described
    if not _described:
        _described = True
        print(f"[DUMP_DIAG] extra_fields of a rollout's answer: {_shape(fields)}", flush=True)


def _shape(value) -> str:
    """Types, lengths and keys; no values."""
    kind = type(value).__name__
    if isinstance(value, dict):
        return f"{kind}({', '.join(f'{key}: {_shape(item)}' for key, item in value.items())})"
    if isinstance(value, (list, tuple)) and value:
        return f"{kind} of {len(value)}, the first: {_shape(value[0])}"
    return kind


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


def megatron_output(output):
    """A legacy actor's output on the one rank of a model-parallel group that writes it; None on the others."""
    from megatron.core import parallel_state

    first = not (parallel_state.get_tensor_model_parallel_rank() or parallel_state.get_context_parallel_rank())
    return output if first and parallel_state.is_pipeline_last_stage(ignore_virtual=True) else None


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
