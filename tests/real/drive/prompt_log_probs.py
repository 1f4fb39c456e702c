"""The model's own log-probs of the bare prompts' tokens from the second on, from transformers alone, in two precisions.

python prompt_log_probs.py MODEL OUT
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import tiny
import torch
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained(sys.argv[1], attn_implementation="sdpa", torch_dtype=torch.float32).eval()


def log_probs(prompt: list[int], precision: torch.dtype) -> list[float]:
    ids = torch.tensor([prompt])
    with torch.no_grad(), torch.autocast("cpu", precision, enabled=precision != torch.float32):
        logits = model(ids).logits[0, :-1]
    return logits.double().log_softmax(dim=-1).gather(1, ids[0, 1:, None]).squeeze(1).tolist()


found = {}
for precision in (torch.float32, torch.bfloat16):
    found[str(precision).removeprefix("torch.")] = [log_probs(prompt, precision) for prompt in tiny.PROMPTS]
Path(sys.argv[2]).write_text(json.dumps(found))
