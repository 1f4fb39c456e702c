"""The fixed sample and the model of the runs: whole requests as token ids, in a JSON file that SAMPLE names.

python sample.py MODEL      makes the model: random weights, three layers
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def requests() -> list[dict]:
    """For each request: id, prompt and response (token ids); ``side`` infer: one that is no sample of the training."""
    found: list[dict] = json.loads(Path(os.environ["SAMPLE"]).read_text())["requests"]
    return found


def report(seen: dict) -> None:
    """What the run saw, into the file that SEEN names."""
    if os.environ.get("SEEN"):
        Path(os.environ["SEEN"]).write_text(json.dumps(seen, indent=1))


def describe(model, side: str) -> None:
    """What was really built, for `params check`, `params structure` and `params weights`: their payloads, as users call them."""
    import list_modules
    import payload_inventory

    payload_inventory.write_inventory(model)
    list_modules.write_modules(model, side, os.environ["MODULES"])


def make_model(folder: Path, vocabulary: int = 128) -> None:
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    words = {"<pad>": 0, "<eos>": 1, **{f"w{i}": i for i in range(2, vocabulary)}}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<eos>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>").save_pretrained(folder)
    settings = folder / "tokenizer_config.json"  # a class that transformers 4 knows as well
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"tokenizer_class": "PreTrainedTokenizerFast"}))
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=vocabulary,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        attention_dropout=0.1,  # so that the random state matters in the training step
        tie_word_embeddings=False,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=1,
    )
    model = Qwen2ForCausalLM(config).to(torch.float32)
    with torch.no_grad():  # larger than usual, so that a wrong input shows in the log-probs
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2 and "embed" not in name:
                parameter.mul_(4)
    model.save_pretrained(folder)


if __name__ == "__main__":
    make_model(Path(sys.argv[1]))
