# SPDX-License-Identifier: Apache-2.0
"""Helpers of msprobe's instrumentation in vLLM and vllm-ascend: which engine step is dumped, its log line, log-probs.

Added by probepatch; the debugger itself is built, started, stopped and stepped at the patched sites. Switches, read
from the environment of each process:

    DUMP_ON               1: dump. Unset, empty and 0: nothing is, and msprobe is never imported.
    PROMPTS_ONLY          1: only engine steps that compute nothing but prompt tokens are dumped.
    PREFILL_LOGPROB_DIFF  1: one line for each request whose prompt log-probs the engine computes; needs no dump.
    DUMP_TOKEN_IDS        1: the lines hold the prompts' token ids too.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone

import torch

from vllm.logger import init_logger

PARAMETERS: dict = {}  # probepatch: parameters

logger = init_logger(__name__)

_prompts: dict[str, Prompt] = {}  # of the requests that are running, by the engine's request id
_steps_taken = 0  # msprobe's step index, which only the patched sites advance
_native_config: str | None = None  # the config that the engine's own debugger was started with, if it has one
_described = False


@dataclass
class Prompt:
    """``token_ids`` is None for a prompt that came as embeddings."""

    token_ids: list[int] | None
    length: int
    sha256: str | None


@dataclass
class Share:
    """What an engine step computes for one request; counts in tokens."""

    request_id: str
    prompt: Prompt
    computed: int  # before this step: by earlier steps, or taken from the prefix cache
    scheduled: int
    is_new: bool  # no step computed anything for it before

    @property
    def phase(self) -> str:
        """chunked_prefill is a part of a prompt, or a prompt that is computed again after preemption."""
        if self.computed >= self.prompt.length:
            return "decode"
        whole = self.is_new and self.computed + self.scheduled == self.prompt.length
        return "prefill" if whole else "chunked_prefill"


def _switch(name: str) -> bool:
    value = os.environ.get(name, "").strip()
    if value not in ("", "0", "1"):
        raise ValueError(f"{name}={value!r}: say 1 or 0")
    return value == "1"


def dump_on() -> bool:
    return _switch("DUMP_ON")


def logprobs_on() -> bool:
    return _switch("PREFILL_LOGPROB_DIFF")


# --- the debugger -----------------------------------------------------------------------------------------------------


def _config() -> tuple[str, dict]:
    """Path and content of the msprobe config of the inference side."""
    name, value = PARAMETERS["infer_config"]
    path = _native_config or os.environ.get(name) or value
    if not path:
        needing = "DUMP_ON=1" if dump_on() else "PREFILL_LOGPROB_DIFF=1"
        raise RuntimeError(f"{needing} needs the msprobe config of the inference side: set {name} to its path")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    if not config.get("dump_path"):
        raise RuntimeError(f"{path}: `dump_path` is missing; give the inference side a folder of its own")
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


def check_settings(model_config) -> None:
    """When the engine starts: refuse what would end in an empty dump, or in none, hours later."""
    if dump_on() and not model_config.enforce_eager:
        raise RuntimeError(
            "DUMP_ON=1 needs enforce_eager=True (--enforce-eager): a compiled model and graphs pass msprobe's hooks by,"
            " and the dump would be all but empty without a word"
        )
    if dump_on() or logprobs_on():
        _config()


def use_native_debugger(debugger, config_path: str | None) -> None:
    """The engine starts, stops and steps a debugger of its own: the log lines go where it dumps."""
    global _native_config
    _native_config = config_path
    if dump_on() and debugger is None:
        raise RuntimeError(
            "DUMP_ON=1, but the engine's own debugger is off: its config goes into --additional-config as"
            " dump_config_path (dump_config in 0.12), and another spelling is ignored without a word"
        )
    if logprobs_on():
        _config()


def refuse_runner(name: str) -> None:
    if dump_on():
        raise RuntimeError(f"DUMP_ON=1, but {name} has no dump code: start with VLLM_USE_V2_MODEL_RUNNER=0")


# --- engine steps -----------------------------------------------------------------------------------------------------


def shares(scheduler_output, request_ids: list[str]) -> list[Share]:
    """What the coming forward computes, in the order of its input; empty where nothing is to be dumped.

    ``scheduler_output`` is the scheduler's own account of the step, or None for a dummy run; ``request_ids`` are in
    the order in which their tokens are laid out.
    """
    if scheduler_output is None or not (dump_on() or logprobs_on()):
        return []
    _note_prompts(scheduler_output)
    if not dump_on() or any(map(_is_warm_up, request_ids)):
        return []
    new = {request.req_id: request.num_computed_tokens for request in scheduler_output.scheduled_new_reqs}
    cached = scheduler_output.scheduled_cached_reqs
    computed = dict(zip(cached.req_ids, cached.num_computed_tokens)) | new
    scheduled = scheduler_output.num_scheduled_tokens
    return [Share(name, _prompts[name], computed[name], scheduled[name], name in new) for name in request_ids]


def step_to_dump(scheduler_output, request_ids: list[str]) -> list[Share]:
    """`shares`, or nothing where PROMPTS_ONLY=1 leaves the step out."""
    step = shares(scheduler_output, request_ids)
    if _switch("PROMPTS_ONLY") and any(share.phase == "decode" for share in step):
        return []
    return step


@contextmanager
def logged_step(scheduler_output, request_ids: list[str]):
    """Log the forward inside, which the engine's own debugger dumps: every one, so that the steps are counted alike."""
    step = shares(scheduler_output, request_ids)
    yield
    if step:
        log_step(step)


def _is_warm_up(request_id: str) -> bool:
    """The second model runner warms up with requests of its own, through the ordinary way."""
    return request_id.startswith("_") and "warmup_" in request_id


def _note_prompts(scheduler_output) -> None:
    """The scheduler names a prompt's tokens once, when the request is new."""
    for request_id in scheduler_output.finished_req_ids:
        _prompts.pop(request_id, None)
    for request in scheduler_output.scheduled_new_reqs:
        ids = request.prompt_token_ids
        length = len(ids if ids is not None else request.prompt_embeds)
        _prompts[request.req_id] = Prompt(ids, length, prompt_hash(ids) if ids is not None else None)


def prompt_hash(token_ids: list[int]) -> str:
    """SHA-256 of the ids in decimal, joined by commas ("151644,872" for two): the other side computes the same."""
    return hashlib.sha256(",".join(map(str, token_ids)).encode()).hexdigest()


def _rest_load() -> None:
    """msprobe's `load` (a stub round) goes on overriding inputs after stop() and step(): in the ordinary forward, in decode steps.

    start() sets it to work again; with dump_after_load=false it does not, and the first step is the only one.
    """
    from msprobe.pytorch import PrecisionDebugger

    service = getattr(getattr(PrecisionDebugger, "_instance", None), "service", None)
    loader = getattr(getattr(service, "module_processor", None), "tensor_loader", None)
    if loader is not None:
        loader.active = False


def log_step(step: list[Share]) -> None:
    """Append the line of the step that just ended to <dump_path>/rank<R>/dispatch_log.jsonl."""
    global _steps_taken
    _rest_load()
    phases = [share.phase for share in step]
    line = {
        "phase": _phase_of(set(phases)),
        "step": _steps_taken,
        "request_ids": [share.request_id for share in step],
        "prompt_sha256": [share.prompt.sha256 for share in step],
        "prompt_tokens": [share.prompt.length for share in step],
        "phases": phases,
        "computed_tokens": [share.computed for share in step],
        "scheduled_tokens": [share.scheduled for share in step],
        "token_count": sum(share.scheduled for share in step),
    }
    if _switch("DUMP_TOKEN_IDS"):
        line["prompt_token_ids"] = [share.prompt.token_ids for share in step]
    _steps_taken += 1
    _append("dispatch_log.jsonl", line)


def _phase_of(phases: set[str]) -> str:
    if len(phases) == 1:
        return next(iter(phases))
    return "mixed" if "decode" in phases else "chunked_prefill"


def _append(name: str, line: dict) -> None:
    rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
    folder = os.path.join(_config()[1]["dump_path"], f"rank{rank}")
    os.makedirs(folder, exist_ok=True)
    head = {"time": datetime.now(timezone.utc).isoformat(), "rank": rank, "pid": os.getpid()}
    with open(os.path.join(folder, name), "a", encoding="utf-8") as file:
        file.write(json.dumps(head | line) + "\n")


# --- log-probs of prompts ---------------------------------------------------------------------------------------------


def ask_for_prompt_logprobs(sampling_params) -> None:
    """Have the engine compute the log-probs of this request's prompt; its prefix cache must not shorten the prompt."""
    if not logprobs_on() or sampling_params.prompt_logprobs is not None:
        return
    sampling_params.prompt_logprobs = 0  # of the prompt's own tokens, no others
    if hasattr(sampling_params, "skip_reading_prefix_cache"):
        sampling_params.skip_reading_prefix_cache = True


def log_prompt_logprobs(results: dict, logprobs_mode) -> None:
    """Append a line for each prompt that the step completed to <dump_path>/rank<R>/prefill_logprobs.jsonl."""
    if not results or not logprobs_on():
        return
    _describe_once(results)
    for request_id, result in results.items():
        prompt = _prompts.get(request_id)
        problem = _problem(result, prompt, str(getattr(logprobs_mode, "value", logprobs_mode)))
        if problem:
            logger.warning("prefill_logprobs: no line for request %s: %s", request_id, problem)
            continue
        line = {
            "side": "infer",
            "request_id": request_id,
            "n_tokens": prompt.length,
            "prompt_sha256": prompt.sha256,
            "logprobs": result.logprobs[:, 0].tolist(),  # of tokens 1 to n_tokens - 1
            "logprobs_mode": "raw",  # vLLM's processors and temperature leave prompts alone
            "temperature": 1.0,
        }
        if _switch("DUMP_TOKEN_IDS"):
            line["prompt_token_ids"] = prompt.token_ids
        _append("prefill_logprobs.jsonl", line)


def _problem(result, prompt: Prompt | None, logprobs_mode: str) -> str:
    """Why the result cannot be taken for the log-probs of the prompt's tokens; empty when it can."""
    if logprobs_mode.endswith("logits"):
        return f"logprobs_mode={logprobs_mode} gives logits: leave it at raw_logprobs"
    if prompt is None or prompt.token_ids is None:
        return "its prompt's token ids are unknown"
    for name in ("logprob_token_ids", "logprobs"):
        found = getattr(result, name, None)
        if not isinstance(found, torch.Tensor) or found.dim() != 2 or len(found) != prompt.length - 1:
            return f"{name} is {_shape(found)}, expected a tensor [{prompt.length - 1}, 1 or more]"
    if result.logprob_token_ids[:, 0].tolist() != list(prompt.token_ids[1:]):
        return "its first column is not the prompt's own tokens"
    return ""


def _describe_once(results: dict) -> None:
    global _described
    if not _described:
        _described = True
        logger.warning("[DUMP_DIAG] prompt_logprobs_dict: %s", _shape(results))


def _shape(value, depth: int = 3) -> str:
    """Types, lengths, keys and shapes; no values."""
    kind = type(value).__name__
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if depth and hasattr(value, "_fields"):
        return f"{kind}({', '.join(f'{name}={_shape(getattr(value, name), depth - 1)}' for name in value._fields)})"
    if depth and isinstance(value, (dict, list, tuple)) and value:
        inner = next(iter(value.values() if isinstance(value, dict) else value))
        return f"{kind} of {len(value)}, the first: {_shape(inner, depth - 1)}"
    return kind
