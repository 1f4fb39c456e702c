"""Helpers of the msprobe instrumentation in SGLang: which forward is dumped, its log line, prompt log-probs.

Added by probepatch; the debugger itself is built, started, stopped and stepped at the patched sites (from 0.5.11
on by SGLang). Switches, read from the environment of each process:

    DUMP_ON               1: dump, and log each msprobe step. Unset, empty and 0: neither.
    PROMPTS_ONLY          1: steps that compute a decode token are not dumped. SGLang's own dump takes all.
    PREFILL_LOGPROB_DIFF  1: ask for each prompt's log-probs and write them, a line per request; needs no dump.
    DUMP_TOKEN_IDS        1: the log lines carry the prompts' token ids as well.
"""

from __future__ import annotations

import hashlib
import json
import os
from datetime import datetime, timezone

import torch

PARAMETERS: dict = {}  # probepatch: parameters

HEALTH_CHECK = "HEALTH_CHECK"  # how the request ids of SGLang's own health probes begin

_noted: tuple | None = None  # the forward batch that the worker is about to run, and its line
_steps_taken = 0  # msprobe's step index in this process
_folder = ""  # <dump_path>/rank<R> of the last step; without a dump there is none
_diagnosed: set[str] = set()


def _switch(name: str) -> bool:
    value = os.environ.get(name, "").strip()
    if value not in ("", "0", "1"):
        raise ValueError(f"{name}={value!r}: say 1 or 0")
    return value == "1"


def dump_on() -> bool:
    return _switch("DUMP_ON")


def wants_prompt_logprobs() -> bool:
    return _switch("PREFILL_LOGPROB_DIFF")


# --- the debugger -----------------------------------------------------------------------------------------------------


def _config() -> tuple[str, dict]:
    """Path and content of the msprobe config of the inference side."""
    name, value = PARAMETERS["infer_config"]
    path = os.environ.get(name) or value
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


def check_settings() -> None:
    """When the engine starts: refuse what would end in no dump and no line, hours later."""
    if dump_on() or wants_prompt_logprobs():
        _config()


def check_native_debugger(debugger) -> None:
    """The same where SGLang dumps by itself: it only warns when msprobe cannot be imported, and then runs on."""
    if not dump_on():
        check_settings()
        return
    if debugger is not None:
        return
    try:
        import msprobe.pytorch  # noqa: F401
    except ImportError as error:
        raise RuntimeError(f"DUMP_ON=1, but msprobe cannot be imported in this environment: {error}") from error
    raise RuntimeError("DUMP_ON=1, but SGLang's own msprobe is off: start it with --msprobe-dump-config PATH")


# --- which forward it is ----------------------------------------------------------------------------------------------


def note_requests(forward_batch, schedule_batch) -> None:
    """Keep the line of a batch that the scheduler sends to the target model, until its forward takes it.

    Dummy runs, graph capture, profiling and draft models build their batches elsewhere, so they have no line.
    """
    global _noted
    if dump_on():
        reqs = schedule_batch.reqs
        _noted = (forward_batch, _line(forward_batch, reqs)) if reqs else None


def take_line(forward_batch) -> dict | None:
    """The line of this batch when the scheduler sent it with requests in it, else None."""
    global _noted
    if _noted is None or _noted[0] is not forward_batch:
        return None
    line, _noted = _noted[1], None
    return line


def line_to_dump(forward_batch) -> dict | None:
    """The same, but only for what is to be dumped: no health probes, and with PROMPTS_ONLY=1 prefill alone."""
    line = take_line(forward_batch)
    left_out = ("health_check", "decode", "mixed") if _switch("PROMPTS_ONLY") else ("health_check",)
    return None if line is None or line["phase"] in left_out else line


def _line(forward_batch, reqs: list) -> dict:
    scheduled, computed = _token_counts(forward_batch)
    phases = [_phase(req, done, new) for req, done, new in zip(reqs, computed, scheduled)]
    line = {
        "phase": _phase_of_step(reqs, set(phases)),
        "phases": phases,
        "request_ids": [req.rid for req in reqs],
        "prompt_sha256": [_prompt_hash(req) for req in reqs],
        "prompt_tokens": [len(req.origin_input_ids) for req in reqs],
        "scheduled_tokens": scheduled,
        "computed_tokens": computed,
        "token_count": sum(scheduled),
    }
    if _switch("DUMP_TOKEN_IDS"):
        line["prompt_token_ids"] = [list(req.origin_input_ids) for req in reqs]
    return line


def _token_counts(forward_batch) -> tuple[list[int], list[int]]:
    """For each request: the tokens of this forward, and those in the KV cache before it."""
    if forward_batch.extend_seq_lens_cpu is not None:
        return list(forward_batch.extend_seq_lens_cpu), list(forward_batch.extend_prefix_lens_cpu)
    lengths = forward_batch.seq_lens.tolist()  # a decode step: the new token counts already
    return [1] * len(lengths), [length - 1 for length in lengths]


def _phase(req, computed: int, scheduled: int) -> str:
    """A request is in prefill as long as its KV cache is shorter than its prompt.

    chunked_prefill is a part of a prompt, or a prompt that is computed again after a retraction.
    """
    prompt = len(req.origin_input_ids)
    if computed >= prompt:
        return "decode"
    seen = hasattr(req, "probepatch_sha256")
    return "prefill" if not seen and computed + scheduled == prompt else "chunked_prefill"


def _phase_of_step(reqs: list, phases: set[str]) -> str:
    if all(str(req.rid).startswith(HEALTH_CHECK) for req in reqs):
        return "health_check"
    if len(phases) == 1:
        return phases.pop()
    return "mixed" if "decode" in phases else "chunked_prefill"


def _prompt_hash(req) -> str:
    """SHA-256 of the ids in decimal, joined by commas ("151644,872" for two): the other side computes the same."""
    if not hasattr(req, "probepatch_sha256"):
        req.probepatch_sha256 = hashlib.sha256(",".join(map(str, req.origin_input_ids)).encode()).hexdigest()
    return req.probepatch_sha256


# --- the log ----------------------------------------------------------------------------------------------------------


def _rest_load() -> None:
    """msprobe's `load` (a stub round) goes on overriding inputs after stop() and step(): in the ordinary forward, in decode steps.

    start() sets it to work again; with dump_after_load=false it does not, and the first step is the only one.
    """
    from msprobe.pytorch import PrecisionDebugger

    service = getattr(getattr(PrecisionDebugger, "_instance", None), "service", None)
    loader = getattr(getattr(service, "module_processor", None), "tensor_loader", None)
    if loader is not None:
        loader.active = False


def log_step(line: dict, rank_id: int | None, dump_path: str | None = None) -> None:
    """Append the line of the step that just ended to <dump_path>/rank<R>/dispatch_log.jsonl: no token, no text."""
    global _steps_taken, _folder
    _rest_load()
    rank = _rank() if rank_id is None else rank_id
    _folder = os.path.join(dump_path or _config()[1]["dump_path"], f"rank{rank}")
    now = datetime.now(timezone.utc).isoformat()
    _append("dispatch_log.jsonl", {"time": now, "step": _steps_taken, "rank": rank, "pid": os.getpid(), **line})
    _steps_taken += 1


def log_native_step(forward_batch, is_draft_worker: bool, rank_id: int | None, dump_path: str) -> None:
    """SGLang's own integration makes a step of every forward, so each gets a line, those without requests as well."""
    line = take_line(forward_batch)
    if line is None:
        tokens = 0 if forward_batch.input_ids is None else len(forward_batch.input_ids)
        phase = "draft" if is_draft_worker else "other" if tokens else "idle"
        line = {"phase": phase, "request_ids": [], "prompt_sha256": [], "prompt_tokens": [], "token_count": tokens}
    log_step(line, rank_id, dump_path)


def _rank() -> int:
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


def _append(name: str, line: dict) -> None:
    folder = _folder or os.path.join(_config()[1]["dump_path"], f"rank{_rank()}")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


# --- log-probs of prompts ---------------------------------------------------------------------------------------------


def log_prompt_logprobs(req, values) -> None:
    """Append a request's line to <dump_path>/rank<R>/prefill_logprobs.jsonl: raw log-probs of tokens 1..P-1.

    ``values``: what SGLang returns as input_token_logprobs, a float for each prompt token from logprob_start_len on,
    the first one None. They are taken before temperature, top-p and top-k.
    """
    if not wants_prompt_logprobs() or str(req.rid).startswith(HEALTH_CHECK):
        return
    _diagnose("input_token_logprobs_val", values)
    tokens = len(req.origin_input_ids)
    reason = None
    if req.logprob_start_len != 0:
        reason = f"the request said logprob_start_len={req.logprob_start_len}; the whole prompt needs 0"
    elif len(values) != tokens or values[0] is not None or not all(isinstance(v, float) for v in values[1:]):
        reason = f"expected None and {tokens - 1} floats"
    elif dump_on() and not _folder:
        reason = "its forward was no dumped step"
    if reason:
        print(f"PREFILL_LOGPROB_DIFF: no line for request {req.rid}: {reason}", flush=True)
        return
    line = {
        "request_id": req.rid,
        "n_tokens": tokens,
        "prompt_sha256": _prompt_hash(req),
        "logprobs": values[1:],
        "logprobs_mode": "raw",
        "temperature": 1.0,
        "side": "infer",
    }
    if _switch("DUMP_TOKEN_IDS"):
        line["prompt_token_ids"] = list(req.origin_input_ids)
    _append("prefill_logprobs.jsonl", line)


def _diagnose(name: str, values) -> None:
    """One line on the shape of a field that is read for the first time: types and length, no values.

    Printed, because an offline engine shows errors only.
    """
    if name in _diagnosed:
        return
    _diagnosed.add(name)
    kinds = sorted({type(value).__name__ for value in values})
    print(f"[DUMP_DIAG] {name}: {type(values).__name__} of {len(values)}, elements {', '.join(kinds)}", flush=True)
