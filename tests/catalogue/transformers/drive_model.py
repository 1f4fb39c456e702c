"""Run a scenario on a tiny random model: `python drive_model.py SCENARIO`; prints what it saw as JSON in its last line."""

import json
import os
import sys

import torch
from probepatch_transformers import dumped, prefill
from transformers import Qwen2Config, Qwen2ForCausalLM

PROMPT = torch.tensor([[5, 6, 7, 8, 9]])
PAIR = {
    "input_ids": torch.tensor([[0, 0, 11, 12], [21, 22, 23, 24]]),
    "attention_mask": torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]]),
}


def model():
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip
    return Qwen2ForCausalLM(config).float().eval()


def expected(tiny, ids):
    with torch.no_grad():
        logprobs = tiny(torch.tensor([ids])).logits[0].log_softmax(-1)
    return [logprobs[at, token].item() for at, token in enumerate(ids[1:])]


def both():
    tiny = model()
    logits = prefill(tiny, PROMPT, request_ids=["r1"]).logits
    with dumped(tiny, request_ids=["a", "b"]):
        tokens = tiny.generate(**PAIR, max_new_tokens=3, do_sample=False)
    reference = [expected(tiny, ids) for ids in ([5, 6, 7, 8, 9], [11, 12], [21, 22, 23, 24])]
    return {
        "logits": logits.tolist(),
        "tokens": tokens.tolist(),
        "reference": reference,
        "left": "forward" in vars(tiny),
    }


def error():
    """A forward that raises ends its step, and the next one is a step of its own."""
    tiny = model()
    try:
        with dumped(tiny):
            tiny(input_ids=torch.tensor([[9999]]))
    except IndexError:
        prefill(tiny, PROMPT)
    return {"left": "forward" in vars(tiny)}


def unknown():
    tiny = model()
    with dumped(tiny), torch.no_grad():
        tiny(inputs_embeds=torch.zeros(1, 3, 64))
        cache = tiny(PROMPT, None, use_cache=True).past_key_values
        tiny(torch.tensor([[1, 2]]), None, None, cache)
    return {}


def refusals():
    """Wrong settings, each with what is said."""
    said = []
    attempts = [
        lambda: prefill(model().train(), PROMPT),
        lambda: prefill(model(), PROMPT, request_ids=["a", "b"]),
        lambda: os.environ.update(MSPROBE_INFER_CONFIG="") or prefill(model(), PROMPT),
    ]
    for attempt in attempts:
        try:
            attempt()
        except (RuntimeError, ValueError) as refused:
            said.append(str(refused))
    return {"refused": said}


if __name__ == "__main__":
    answer = globals()[sys.argv[1]]()
    print(json.dumps({**answer, "msprobe": "msprobe" in sys.modules}))
