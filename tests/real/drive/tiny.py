"""A tiny random Qwen2 with a tokenizer, and a batch of two samples: run under the interpreter that has torch."""

from __future__ import annotations

import json
from pathlib import Path

import torch

PROMPTS = [[11, 12, 13, 14, 15], [21, 22, 23]]  # real lengths 5 and 3
RESPONSES = [[31, 32, 33, 34], [41, 42, 43, 44, 45, 46]]
PROMPT_WIDTH, RESPONSE_WIDTH, VOCABULARY = 8, 6, 128
REQUEST_IDS = ["request-a", "request-b"]
temperature = 1.0  # the rollout's
prefill_entries: list[dict] | None = None  # what the rollout brought along of the prompts' log-probs


def columns() -> dict:
    """The batch's fields that are no tensors."""
    import numpy as np

    found = {"request_id": np.array(REQUEST_IDS, dtype=object)}
    return found | ({"prefill_logprobs": np.array(prefill_entries, dtype=object)} if prefill_entries else {})


def make_model(folder: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    words = {"<pad>": 0, "<eos>": 1, **{f"w{i}": i for i in range(2, VOCABULARY)}}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<eos>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")
    fast.save_pretrained(folder)
    settings = folder / "tokenizer_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"tokenizer_class": "PreTrainedTokenizerFast"}))
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        attention_dropout=0.1,  # so that the random state matters in the training step
        tie_word_embeddings=False,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=1,
    )
    Qwen2ForCausalLM(config).to(torch.float32).save_pretrained(folder)


def padded_batch() -> dict[str, torch.Tensor]:
    """Left-padded prompts and right-padded responses, as verl's trainers hand them out; int64 and float32, B=2."""
    size = len(PROMPTS)
    ids = torch.zeros(size, PROMPT_WIDTH + RESPONSE_WIDTH, dtype=torch.int64)
    mask = torch.zeros_like(ids)
    for row, (prompt, response) in enumerate(zip(PROMPTS, RESPONSES, strict=True)):
        begin, end = PROMPT_WIDTH - len(prompt), PROMPT_WIDTH + len(response)
        ids[row, begin:end] = torch.tensor(prompt + response)
        mask[row, begin:end] = 1
    response_mask = mask[:, PROMPT_WIDTH:]
    generator = torch.Generator().manual_seed(1)
    return {
        "input_ids": ids,
        "attention_mask": mask,
        "position_ids": (mask.cumsum(dim=1) - 1).clamp(min=0),
        "prompts": ids[:, :PROMPT_WIDTH],
        "responses": ids[:, PROMPT_WIDTH:],
        "response_mask": response_mask,
        "advantages": torch.randn(size, RESPONSE_WIDTH, generator=generator) * response_mask,
    }
