"""The inference side without an engine: dump the forwards of a Hugging Face model, with the engines' log lines.

Nothing is patched: put this file beside the script that runs the model.

    from probepatch_transformers import dumped, prefill

    prefill(model, input_ids, request_ids=["r1"])          # one forward of a prompt
    with dumped(model, request_ids=["r1", "r2"]):          # or around a call of your own
        model.generate(**inputs, max_new_tokens=1)

Every forward of the model is one msprobe step and one line. Switches, read from the environment:

    DUMP_ON               1: dump. Unset, empty and 0: nothing is, and msprobe is never imported.
    MSPROBE_INFER_CONFIG  msprobe config (JSON) of the inference side, with a dump_path of its own
    PREFILL_LOGPROB_DIFF  1: the raw log-probs of each prompt are written, a line per request; needs no dump
    DUMP_TOKEN_IDS        1: the lines carry the prompts' token ids as well
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import os
from contextlib import contextmanager
from datetime import datetime, timezone

import torch

CONFIG = "MSPROBE_INFER_CONFIG"

_built: str | None = None  # the config of this process's debugger
_steps_taken = 0


def prefill(model, input_ids, attention_mask=None, request_ids=None):
    """The model's output for ``input_ids`` (B, P), padded as ``attention_mask`` says; no cache, no gradient."""
    with torch.no_grad(), dumped(model, request_ids):
        return model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False)


@contextmanager
def dumped(model, request_ids=None):
    """Inside, every forward of ``model`` is one msprobe step, ended on every exit, with a line in the log.

    ``request_ids``: one for each row of the batch; without them the prompts' hashes alone tie the two sides together.
    """
    if not (dump_on() or logprobs_on()):
        yield
        return
    if model.training:
        raise RuntimeError("in training mode the model drops out as no other side does: call model.eval()")
    if dump_on():
        _build_debugger()
    else:
        _config()
    forward = model.forward
    had_its_own = "forward" in vars(model)
    names = list(inspect.signature(forward).parameters)
    prompts: list[dict] = []

    @functools.wraps(forward)  # generate() looks at its signature
    def step(*args, **kwargs):
        given = {**dict(zip(names, args)), **kwargs}
        line, real = _describe(given, prompts, request_ids)
        wanted = line["phase"] == "prefill" and real is not None and logprobs_on()
        if wanted and "logits_to_keep" in kwargs:
            kwargs["logits_to_keep"] = 0  # generate() keeps the last one only; 0 keeps all
        with _msprobe_step(model, line):
            output = forward(*args, **kwargs)
        if wanted:
            _log_prompt_logprobs(prompts, given["input_ids"], real, output)
        return output

    model.forward = step
    try:
        yield
    finally:
        if had_its_own:
            model.forward = forward
        else:
            del model.forward


@contextmanager
def _msprobe_step(model, line: dict):
    """The forward inside is one msprobe step, ended on every exit; without a dump it is just run."""
    if not dump_on():
        yield
        return
    from msprobe.pytorch import PrecisionDebugger

    PrecisionDebugger.start(model=model)
    try:
        yield
    finally:
        PrecisionDebugger.stop()
        PrecisionDebugger.step()
        _log_step(line)


# --- switches and the debugger ----------------------------------------------------------------------------------------


def _switch(name: str) -> bool:
    value = os.environ.get(name, "").strip()
    if value not in ("", "0", "1"):
        raise ValueError(f"{name}={value!r}: say 1 or 0")
    return value == "1"


def dump_on() -> bool:
    return _switch("DUMP_ON")


def logprobs_on() -> bool:
    return _switch("PREFILL_LOGPROB_DIFF")


def _config() -> tuple[str, dict]:
    """Path and content of the msprobe config of the inference side."""
    path = os.environ.get(CONFIG)
    if not path:
        needing = "DUMP_ON=1" if dump_on() else "PREFILL_LOGPROB_DIFF=1"
        raise RuntimeError(f"{needing} needs the msprobe config of the inference side: set {CONFIG} to its path")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    if not config.get("dump_path"):
        raise RuntimeError(f"{path}: `dump_path` is missing; give the inference side a folder of its own")
    return path, config


def _build_debugger() -> None:
    """Seeds and debugger, once. PrecisionDebugger is one per process: it would ignore a second config."""
    global _built
    from msprobe.pytorch import PrecisionDebugger, seed_all

    path, config = _config()
    if _built == path:
        return
    if _built or getattr(PrecisionDebugger, "_instance", None) is not None:
        raise RuntimeError("DUMP_ON=1, but this process has another PrecisionDebugger, whose config would win")
    seed_all(mode=True)
    defaults = {"task": "tensor", "level": "L0", "step": [0]}
    PrecisionDebugger(config_path=path, **{key: value for key, value in defaults.items() if key not in config})
    _built = path


# --- which forward it is ----------------------------------------------------------------------------------------------


def _describe(given: dict, prompts: list[dict], request_ids) -> tuple[dict, torch.Tensor | None]:
    """The forward's line, and which of its tokens (B, P) are real. ``prompts`` becomes the prefill's rows.

    Counts come from the cache and the attention mask: what is in the cache before this forward, what is added.
    """
    ids, mask, cache = (given.get(name) for name in ("input_ids", "attention_mask", "past_key_values"))
    if ids is None or ids.dim() != 2 or (mask is not None and mask.dim() != 2):
        print("[DUMP_DIAG] forward without 2-D input_ids and attention_mask: its line has no requests", flush=True)
        nobody = dict.fromkeys(("request_ids", "prompt_sha256", "prompt_tokens"), [])
        return {"phase": "other", **nobody, "token_count": None}, None
    rows, width = ids.shape
    cached = 0 if cache is None else int(cache.get_seq_length())
    if mask is None:
        mask = torch.ones(rows, cached + width, dtype=torch.long, device=ids.device)
    real = mask[:, -width:].bool()
    scheduled = real.sum(dim=1).tolist()
    computed = [total - new for total, new in zip(mask[:, : cached + width].sum(dim=1).tolist(), scheduled)]
    if cached == 0:
        names = list(request_ids) if request_ids is not None else [None] * rows
        if len(names) != rows:
            raise ValueError(f"{len(names)} request ids for a batch of {rows}")
        prompts[:] = [_prompt(name, row[keep].tolist()) for name, row, keep in zip(names, ids, real)]
    phase = "prefill" if cached == 0 else "decode" if width == 1 else "other"
    line = {
        "phase": phase,
        "request_ids": [prompt["request_id"] for prompt in prompts],
        "prompt_sha256": [prompt["prompt_sha256"] for prompt in prompts],
        "prompt_tokens": [prompt["n_tokens"] for prompt in prompts],
        "scheduled_tokens": scheduled,
        "computed_tokens": computed,
        "token_count": sum(scheduled),
    }
    if _switch("DUMP_TOKEN_IDS"):
        line["prompt_token_ids"] = [prompt["prompt_token_ids"] for prompt in prompts]
    return line, real


def _prompt(request_id, token_ids: list[int]) -> dict:
    """The SHA-256 is of the ids in decimal, joined by commas ("151644,872" for two), as on the other side."""
    found = {
        "request_id": request_id,
        "n_tokens": len(token_ids),
        "prompt_sha256": hashlib.sha256(",".join(map(str, token_ids)).encode()).hexdigest(),
    }
    return {**found, "prompt_token_ids": token_ids} if _switch("DUMP_TOKEN_IDS") else found


# --- the lines --------------------------------------------------------------------------------------------------------


def _rank() -> int:
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


def _rest_load() -> None:
    """msprobe's `load` (a stub round) goes on overriding inputs after stop() and step(): in the ordinary forward, in decode steps.

    start() sets it to work again; with dump_after_load=false it does not, and the first step is the only one.
    """
    from msprobe.pytorch import PrecisionDebugger

    service = getattr(getattr(PrecisionDebugger, "_instance", None), "service", None)
    loader = getattr(getattr(service, "module_processor", None), "tensor_loader", None)
    if loader is not None:
        loader.active = False


def _log_step(line: dict) -> None:
    """Append the line of the step that just ended to <dump_path>/rank<R>/dispatch_log.jsonl: no token, no text."""
    global _steps_taken
    _rest_load()
    now = datetime.now(timezone.utc).isoformat()
    _append("dispatch_log.jsonl", {"time": now, "step": _steps_taken, "rank": _rank(), "pid": os.getpid(), **line})
    _steps_taken += 1


def _log_prompt_logprobs(prompts: list[dict], ids, real, output) -> None:
    """Append each row's line to <dump_path>/rank<R>/prefill_logprobs.jsonl: log-probs of tokens 1..P-1, in float32."""
    logits = getattr(output, "logits", None)
    if logits is None or logits.shape[:2] != ids.shape:
        shape = None if logits is None else tuple(logits.shape)
        print(f"[DUMP_DIAG] logits {shape} for input_ids {tuple(ids.shape)}: no prompt log-probs", flush=True)
        return
    for prompt, row, keep, scores in zip(prompts, ids, real, logits):
        tokens, scores = row[keep], scores[keep][:-1].float()
        logprobs = scores.log_softmax(dim=-1).gather(-1, tokens[1:, None].to(scores.device)).squeeze(-1).tolist()
        line = {**prompt, "logprobs": logprobs, "logprobs_mode": "raw", "temperature": 1.0, "side": "infer"}
        _append("prefill_logprobs.jsonl", line)


def _append(name: str, line: dict) -> None:
    folder = os.path.join(_config()[1]["dump_path"], f"rank{_rank()}")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
