"""Helpers of the msprobe instrumentation in slime and vime: the prompts' own pass, request ids, log lines.

Added by probepatch; the debugger itself is built, started, stopped and stepped at the patched sites. Switches, read
from the environment of each process:

    DUMP_ON               1: dump. Unset, empty and 0: nothing is, and msprobe is never imported.
    PROMPTS_ONLY          1: an extra pass over the prompts alone is dumped, just before the ordinary log-prob pass.
    DUMP_PHASE            log_prob (default) or all; update_actor leaves the log-prob pass alone.
    PREFILL_LOGPROB_DIFF  1: both sides' log-probs of the prompt tokens are written and compared; needs no dump.
    DUMP_TOKEN_IDS        1: the log lines carry the prompts' token ids as well.
"""

from __future__ import annotations

import copy
import hashlib
import json
import logging
import os
import random
import uuid
from contextlib import contextmanager
from datetime import datetime, timezone

import numpy as np
import torch

PARAMETERS: dict = {}  # probepatch: parameters

REQUEST = "probepatch_request"  # in a sample's metadata: its first request, whose input is the bare prompt
REQUESTS = "probepatch_requests"  # in the data of a rollout: one of these per sample, None where none came along

logger = logging.getLogger(__name__)
_diagnosed: set[str] = set()
_steps_taken = 0  # msprobe's step index, which only the patched sites advance


def _switch(name: str) -> bool:
    value = os.environ.get(name, "").strip()
    if value not in ("", "0", "1"):
        raise ValueError(f"{name}={value!r}: say 1 or 0")
    return value == "1"


def dump_on() -> bool:
    return _switch("DUMP_ON")


def prompts_only() -> bool:
    return _switch("PROMPTS_ONLY")


def prefill_diff_on() -> bool:
    return _switch("PREFILL_LOGPROB_DIFF")


def notes_requests() -> bool:
    return dump_on() or prefill_diff_on()


def captures_log_prob() -> bool:
    if not dump_on():
        return False
    phase = os.environ.get("DUMP_PHASE", "").strip() or "log_prob"
    if phase not in ("log_prob", "update_actor", "all"):
        raise ValueError(f"DUMP_PHASE={phase!r}: say log_prob, update_actor or all")
    return phase != "update_actor"


def needs_prompt_pass() -> bool:
    return prefill_diff_on() or (captures_log_prob() and prompts_only())


# --- the debugger -----------------------------------------------------------------------------------------------------


def _config() -> tuple[str, dict]:
    """Path and content of the msprobe config of the training side."""
    name, value = PARAMETERS["actor_config"]
    path = os.environ.get(name) or value
    if not path:
        needing = "DUMP_ON=1" if dump_on() else "PREFILL_LOGPROB_DIFF=1"
        raise RuntimeError(f"{needing} needs the msprobe config of the training side: set {name} to its path")
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


def refuse_second_debugger(debugger_class) -> None:
    """PrecisionDebugger is one per process, and a second config is ignored without a word."""
    if getattr(debugger_class, "_instance", None) is not None:
        raise RuntimeError("DUMP_ON=1, but this process has another PrecisionDebugger, whose config would win")


# --- which micro-batches are dumped -----------------------------------------------------------------------------------


def mark(iterators, rollout_data, requests) -> None:
    """The micro-batches that these iterators yield to a log-prob pass are dumped."""
    samples = _samples(rollout_data, requests)
    for iterator in iterators:
        iterator.probepatch_samples = samples


def samples_of(iterator) -> list[dict] | None:
    """What is known of the samples of the next micro-batch; None when it is not to be dumped."""
    samples = getattr(iterator, "probepatch_samples", None)
    if samples is None:
        return None
    if iterator.micro_batch_indices is None:  # slices of a fixed size, up to 0.2.4
        return samples[iterator.offset : iterator.offset + iterator.micro_batch_size]
    return [samples[row] for row in iterator.micro_batch_indices[iterator.offset]]


def _prompt_lengths(rollout_data) -> list[int]:
    return [total - part for total, part in zip(rollout_data["total_lengths"], rollout_data["response_lengths"])]


def _samples(rollout_data, requests) -> list[dict]:
    lengths = _prompt_lengths(rollout_data)
    samples = []
    for row, (tokens, length) in enumerate(zip(rollout_data["tokens"], lengths)):
        request = (requests[row] if requests else None) or {}
        prompt = tokens[:length].tolist()
        samples.append(
            {
                "request_id": request.get("request_id"),
                "prompt_sha256": prompt_hash(prompt),
                "prompt_ids": prompt,
                "prompt_logprobs": request.get("prompt_logprobs"),
                "token_count": len(tokens),
            }
        )
    return samples


def prompt_hash(token_ids: list[int]) -> str:
    """SHA-256 of the ids in decimal, joined by commas ("151644,872" for two): the other side computes the same."""
    return hashlib.sha256(",".join(map(str, token_ids)).encode()).hexdigest()


# --- the prompts' own pass --------------------------------------------------------------------------------------------


@contextmanager
def prompt_pass(args, rollout_data, iterators, requests):
    """Arguments and iterators of a pass over the prompts alone; the samples and their micro-batches stay as they are.

    It is dumped with PROMPTS_ONLY=1. ``rollout_data`` is not touched. Random states and the stage of routing replay are
    put back afterwards: the pass neither records nor replays expert choices. Temperature is 1, so that the log-probs
    are the model's own.
    """
    _config()  # where the lines go, asked before any rank waits for another
    args = copy.copy(args)
    args.rollout_temperature = 1.0
    args.use_rollout_entropy = False
    args.use_dynamic_batch_size = iterators[0].micro_batch_indices is not None  # results come in the samples' order
    if not getattr(args, "fp8", None):  # whose kernels want their multiple; otherwise no padding behind the prompts
        args.data_pad_size_multiplier = 1
    prompts = _prompts(args, rollout_data, iterators[0])
    samples = _samples(rollout_data, requests) if captures_log_prob() and prompts_only() else None
    for sample in samples or []:
        sample["token_count"] = len(sample["prompt_ids"])
    copies = [copy.copy(iterator) for iterator in iterators]
    for iterator in copies:
        iterator.rollout_data, iterator.probepatch_samples = prompts, samples
    with _random_state_kept(prompts["tokens"][0].device), _routing_replay_off():
        yield args, copies


def _prompts(args, rollout_data, iterator) -> dict:
    """The fields that a log-prob pass reads, of the prompts alone.

    All tokens but the first count as the response, because that is what log-probs are computed for; a response of
    length 0 would mean `tokens[-0:]`, which is all of them.
    """
    lengths = _prompt_lengths(rollout_data)
    if min(lengths) < 2:
        raise RuntimeError(
            "a prompt of less than two tokens has no log-prob: PROMPTS_ONLY=0 and PREFILL_LOGPROB_DIFF=0 go without"
        )
    prompts = {
        "tokens": [tokens[:length] for tokens, length in zip(rollout_data["tokens"], lengths)],
        "total_lengths": lengths,
        "response_lengths": [length - 1 for length in lengths],
        "loss_masks": [mask.new_ones(length - 1) for mask, length in zip(rollout_data["loss_masks"], lengths)],
    }
    if "multimodal_train_inputs" in rollout_data:
        prompts["multimodal_train_inputs"] = rollout_data["multimodal_train_inputs"]
    if "max_seq_lens" in rollout_data:
        prompts["max_seq_lens"] = _max_seq_lens(args, lengths, iterator)
    return prompts


def _max_seq_lens(args, lengths: list[int], iterator) -> list[int]:
    """For qkv_format=bshd: the width of each sample's micro-batch, a multiple of what parallel ranks divide."""
    from megatron.core import mpu

    parts = mpu.get_context_parallel_world_size()
    unit = mpu.get_tensor_model_parallel_world_size() * args.data_pad_size_multiplier * (2 * parts if parts > 1 else 1)
    groups = iterator.micro_batch_indices
    if groups is None:
        rows, size = list(range(len(lengths))), iterator.micro_batch_size
        groups = [rows[start : start + size] for start in range(0, len(rows), size)]
    widths = [0] * len(lengths)
    for group in groups:
        width = -(-max(lengths[row] for row in group) // unit) * unit
        for row in group:
            widths[row] = width
    return widths


@contextmanager
def _random_state_kept(device):
    """Python's, NumPy's, torch's and the device's random state are the same afterwards."""
    states = random.getstate(), np.random.get_state()
    devices = [] if device.type == "cpu" else [device]
    try:
        with torch.random.fork_rng(devices, device_type=device.type if devices else "cuda"):
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])


@contextmanager
def _routing_replay_off():
    stage = os.environ.get("ROUTING_REPLAY_STAGE")
    os.environ["ROUTING_REPLAY_STAGE"] = "fallthrough"
    try:
        yield
    finally:
        if stage is None:
            del os.environ["ROUTING_REPLAY_STAGE"]
        else:
            os.environ["ROUTING_REPLAY_STAGE"] = stage


# --- log lines --------------------------------------------------------------------------------------------------------


def _rest_load() -> None:
    """msprobe's `load` (a stub round) goes on overriding inputs after stop() and step(): in the ordinary forward, in decode steps.

    start() sets it to work again; with dump_after_load=false it does not, and the first step is the only one.
    """
    from msprobe.pytorch import PrecisionDebugger

    service = getattr(getattr(PrecisionDebugger, "_instance", None), "service", None)
    loader = getattr(getattr(service, "module_processor", None), "tensor_loader", None)
    if loader is not None:
        loader.active = False


def log_micro_batch(model, samples: list[dict]) -> None:
    """Append the line of the step that just ended to <dump_path>/rank<R>/update_actor_log.jsonl."""
    global _steps_taken
    _rest_load()
    line = {
        "phase": "log_prob",
        "prompts_only": prompts_only(),
        "step": _steps_taken,
        "request_ids": [sample["request_id"] for sample in samples],
        "prompt_sha256": [sample["prompt_sha256"] for sample in samples],
        "prompt_tokens": [len(sample["prompt_ids"]) for sample in samples],
        "token_count": sum(sample["token_count"] for sample in samples),
    }
    if _switch("DUMP_TOKEN_IDS"):
        line["prompt_token_ids"] = [sample["prompt_ids"] for sample in samples]
    while hasattr(model, "module"):
        model = model.module
    if getattr(model, "vp_stage", None) is not None:  # each chunk of a virtual pipeline has a step of its own
        line["vp_stage"] = model.vp_stage
    _steps_taken += 1
    _append("update_actor_log.jsonl", line)


def _append(name: str, line: dict) -> None:
    rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
    folder = os.path.join(_config()[1]["dump_path"], f"rank{rank}")
    os.makedirs(folder, exist_ok=True)
    line = {"time": datetime.now(timezone.utc).isoformat(), "rank": rank, "pid": os.getpid(), **line}
    with open(os.path.join(folder, name), "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


# --- log-probs of the prompts, training against inference -------------------------------------------------------------


def compare_prefill(rollout_data, requests, results: dict) -> None:
    """Write both sides' log-probs of the prompt tokens (from the second on), and print how far they are apart.

    ``results`` are those of the prompts' own pass: empty but on the last pipeline stage. Response log-probs never
    stand in for a missing inference side.
    """
    if not (prefill_diff_on() and results):
        return
    from megatron.core import mpu

    from .backends.megatron_utils.cp_utils import all_gather_with_cp

    lengths = _prompt_lengths(rollout_data)
    rows = [all_gather_with_cp(row, length, length - 1) for row, length in zip(results["log_probs"], lengths)]
    if mpu.get_tensor_model_parallel_rank() or mpu.get_context_parallel_rank():
        return
    diffs: list[float] = []
    missing = 0
    for sample, row in zip(_samples(rollout_data, requests), rows):
        train, infer = row.double(), sample["prompt_logprobs"]
        _append_prefill(sample, "train", train.tolist())
        if infer is None or len(infer) != len(train):
            missing += 1
            continue
        _append_prefill(sample, "infer", infer)
        diffs += (train.cpu().exp() - torch.tensor(infer, dtype=torch.float64).exp()).abs().tolist()
    if missing:
        logger.warning("prefill_logprob_diff not computed for %d of %d samples: no inference side", missing, len(rows))
    if diffs:
        found = torch.tensor(diffs, dtype=torch.float64)
        numbers = found.mean().item(), found.max().item(), found.std(unbiased=False).item()
        logger.info("prefill_logprob_diff_mean=%g prefill_logprob_diff_max=%g prefill_logprob_diff_std=%g", *numbers)


def _append_prefill(sample: dict, side: str, logprobs: list[float]) -> None:
    line = {
        "side": side,
        "request_id": sample["request_id"],
        "prompt_sha256": sample["prompt_sha256"],
        "n_tokens": len(sample["prompt_ids"]),
        "logprobs": logprobs,
        "logprobs_mode": "raw",
        "temperature": 1.0,
    }
    if _switch("DUMP_TOKEN_IDS"):
        line["prompt_token_ids"] = sample["prompt_ids"]
    _append("prefill_logprobs.jsonl", line)


# --- the rollout's requests -------------------------------------------------------------------------------------------


def name_request(body: dict, headers: dict | None) -> dict:
    """For vLLM, whose answer does not always tell the engine's id: give the request one; returns its headers."""
    body["request_id"] = uuid.uuid4().hex
    return {**(headers or {}), "x-request-id": body["request_id"]}


def keep_request(sample, request_id: str | None, prompt_logprobs) -> None:
    """Note the request just answered on its sample, unless it continued a response: its input is the bare prompt.

    ``prompt_logprobs`` are the engine's: one entry per prompt token, [log-prob, id, text] or {id: {"logprob": …}}.
    """
    if sample.response_length or not isinstance(sample.metadata, dict):
        return
    _diagnose("request id", request_id)
    record = {"request_id": request_id}
    if prefill_diff_on():
        record["prompt_logprobs"] = _prompt_logprobs(prompt_logprobs, list(sample.tokens))
    sample.metadata[REQUEST] = record


def requests_of(samples) -> list[dict | None]:
    return [(sample.metadata or {}).get(REQUEST) for sample in samples]


def _prompt_logprobs(entries, token_ids: list[int]) -> list[float] | None:
    """Log-probs of the prompt tokens from the second on; None where the answer's shape is not a known one."""
    _diagnose("prompt log-probs", entries)
    if not isinstance(entries, list) or len(entries) != len(token_ids):
        return None
    try:
        return [_logprob(entry, token) for entry, token in zip(entries[1:], token_ids[1:])]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        logger.warning("[DUMP_DIAG] prompt log-probs of a request are left out: %s: %s", type(error).__name__, error)
        return None


def _logprob(entry, token_id: int) -> float:
    if isinstance(entry, dict):
        return float(entry[str(token_id)]["logprob"])
    if entry[1] != token_id:
        raise ValueError("the engine's prompt has other tokens than the sample")
    return float(entry[0])


def _diagnose(name: str, value) -> None:
    """One line, the first time: what an answer's field looks like, without its values."""
    if name in _diagnosed:
        return
    _diagnosed.add(name)
    shape = type(value).__name__
    if isinstance(value, list):
        kinds = sorted({type(item).__name__ for item in value})
        shape = f"list of {len(value)}: {', '.join(kinds)}"
    logger.info("[DUMP_DIAG] %s: %s", name, shape)
