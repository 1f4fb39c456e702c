"""Transformers as the inference side, a user's script: `python3 generate_transformers.py MODEL` with the wrapper on PYTHONPATH.

PADDED=1 pads each prompt on the left, WARM_UP=1 runs a dummy forward before them, DTYPE is the model's.
"""

from __future__ import annotations

import os
import sys

import sample
import torch
from probepatch_transformers import dumped, prefill
from transformers import AutoModelForCausalLM

torch.set_num_threads(1)
dtype = getattr(torch, os.environ.get("DTYPE") or "float32")
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=dtype, attn_implementation="sdpa").eval()
if os.environ.get("PROBEPATCH_INVENTORY"):
    sample.describe(model, "infer")
    sys.exit()
if os.environ.get("WARM_UP") == "1":
    prefill(model, torch.zeros(1, 64, dtype=torch.int64))
padding = 5 if os.environ.get("PADDED") == "1" else 0
answers = []
for one in sample.requests():
    ids = torch.tensor([[0] * padding + one["prompt"]])
    mask = (torch.arange(ids.shape[1]) >= padding).long()[None]
    if padding:
        with dumped(model, request_ids=[one["id"]]), torch.no_grad():
            logits = model(input_ids=ids, attention_mask=mask).logits
    else:
        logits = prefill(model, ids, request_ids=[one["id"]]).logits
    answers.append({"tokens": [int(logits[0, -1].argmax())], "logits": repr(logits[0, -1].float().sum().item())})
sample.report({"answers": answers, "msprobe": "msprobe" in sys.modules})
print(f"{len(answers)} requests answered", flush=True)
