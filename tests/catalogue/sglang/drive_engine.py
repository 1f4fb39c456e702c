"""Run a tiny random model in SGLang's offline engine on a CPU: `python drive_engine.py FOLDER [MSPROBE_CONFIG]`.

Run by the interpreter of an environment with SGLang, not by the tests' own. FOLDER gets the model; answer.json: the
engine's answer to each call, and reference.json: for each prompt the log-probs of its tokens 1..P-1 by Transformers. The
switches are read from the environment.
"""

import json
import sys
import types
from pathlib import Path

import torch

for name in ("nms", "qnms"):  # torchvision is a CUDA build here, and registers fakes for operators that it lacks
    torch.library.define(f"torchvision::{name}", "(Tensor a, Tensor b, float c) -> Tensor")

CALLS = (
    {"input_ids": [[5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]], "max_new_tokens": 3, "rid": ["one"]},
    {"input_ids": [[21, 22, 23, 24], [31, 32, 33, 34, 35, 36]], "max_new_tokens": 1, "rid": ["two", "three"]},
    {"input_ids": [[5, 6, 7, 8, 9, 10, 11, 12, 13, 99]], "max_new_tokens": 1, "rid": ["shares-a-prefix"]},
)


ASKS_ITSELF = [41, 42, 43, 44, 45]


def model(folder: Path) -> str:
    """The path of a tiny Qwen2 with random weights."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=512, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    tiny = Qwen2ForCausalLM(config).float().eval()
    tiny.save_pretrained(folder / "model")
    prompts = [ids for call in CALLS for ids in call["input_ids"]] + [ASKS_ITSELF]
    reference = []
    with torch.no_grad():
        for ids in prompts:
            logprobs = tiny(torch.tensor([ids])).logits[0].log_softmax(-1)
            reference.append([logprobs[at, token].item() for at, token in enumerate(ids[1:])])
    (folder / "reference.json").write_text(json.dumps(reference))
    return str(folder / "model")


def main(folder: Path, config: str | None) -> None:
    import sglang

    engine = sglang.Engine(
        model_path=model(folder), device="cpu", dtype="float32", attention_backend="torch_native",
        sampling_backend="pytorch", disable_cuda_graph=True, mem_fraction_static=0.1, max_total_tokens=512,
        context_length=128, skip_tokenizer_init=True, msprobe_dump_config=config,
    )  # fmt: skip
    answers = []
    greedy = {"temperature": 0.7, "top_k": 1}
    for call in CALLS:
        wanted = {"max_new_tokens": call["max_new_tokens"], **greedy}
        answers.append(engine.generate(input_ids=call["input_ids"], sampling_params=wanted, rid=call["rid"]))
    told = engine.generate(
        input_ids=[ASKS_ITSELF], sampling_params={"max_new_tokens": 1, **greedy}, rid=["asks-itself"],
        return_logprob=True, logprob_start_len=0,
    )  # fmt: skip
    (folder / "answer.json").write_text(json.dumps([*answers, told]))
    engine.shutdown()


# without an accelerator SGLang asks vLLM for one name that is never called
stub = types.ModuleType("vllm._custom_ops")
stub.rotary_embedding = None  # type: ignore[attr-defined]
sys.modules.setdefault("vllm", types.ModuleType("vllm"))
sys.modules.setdefault("vllm._custom_ops", stub)

if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
