"""One run of a real vLLM engine on this CPU, in one process; what it saw goes to a file.

    python engine.py MODEL OUT [SCENE ...]

A scene is a run on the engine's requests or on its model runner; OUT gets one entry for each, in order.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

os.environ |= {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "VLLM_DISABLE_REQUEST_ID_RANDOMIZATION": "1",
}

import torch
from vllm import LLM, SamplingParams

LONG = list(range(2, 13))
SHORT = list(range(30, 40))
LONGEST = list(range(50, 120))  # two whole blocks of the prefix cache, and a part


class Broken(Exception):
    """The forward failed because it was told to."""


def make_model(folder: Path) -> None:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    tokens = {"vocab_size": 128, "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 1}
    config = Qwen2Config(**sizes, **heads, **tokens, max_position_embeddings=256, tie_word_embeddings=False)
    Qwen2ForCausalLM(config).to(torch.float32).save_pretrained(folder)


class Engine:
    def __init__(self, model: Path, **settings) -> None:
        size = {"max_model_len": 256, "max_num_seqs": 2, "dtype": "float32", "seed": 0}
        defaults = {"enforce_eager": True, "enable_prefix_caching": False, "skip_tokenizer_init": True}
        self.llm = LLM(model=str(model), **(size | defaults | settings))

    @property
    def runner(self):
        return self.llm.llm_engine.model_executor.driver_worker.worker.model_runner

    def generate(self, *prompts: list[int], tokens: int = 3, **asked) -> list[dict]:
        asked = {"max_tokens": tokens, "temperature": 0, "ignore_eos": True, "detokenize": False} | asked
        requests = [{"prompt_token_ids": prompt} for prompt in prompts]
        answers = self.llm.generate(requests, SamplingParams(**asked), use_tqdm=False)
        return [
            {"tokens": list(a.outputs[0].token_ids), "prompt": own_logprobs(a), "id": a.request_id} for a in answers
        ]


def own_logprobs(answer) -> list[float] | None:
    """Of the prompt's own tokens, as the engine returned them."""
    if answer.prompt_logprobs is None:
        return None
    pairs = zip(answer.prompt_token_ids[1:], answer.prompt_logprobs[1:], strict=True)
    return [entry[token].logprob for token, entry in pairs]


def debugger_state() -> dict:
    if "msprobe" not in sys.modules:
        return {"built": False}
    from msprobe.core.common.runtime import Runtime
    from msprobe.pytorch import PrecisionDebugger

    debugger = PrecisionDebugger._instance
    return {"built": True, "running": Runtime.is_running, "steps": debugger.service.loop}


def dummies(engine: Engine):
    engine.runner.profile_run()
    engine.runner._dummy_run(1)
    return debugger_state()


def empty(engine: Engine):
    from vllm.v1.core.sched.output import SchedulerOutput

    engine.runner.execute_model(SchedulerOutput.make_empty())
    return debugger_state()


def failing(engine: Engine):
    """The engine is of no use afterwards."""

    def fail(*_arguments):
        raise Broken

    hook = engine.runner.get_model().model.layers[0].register_forward_pre_hook(fail)
    try:
        engine.generate(LONG)
    except Broken:
        hook.remove()
        return {"raised": True} | debugger_state()
    return {"raised": False}


SCENES = {
    "dummies": dummies,
    "empty": empty,
    "failing": failing,
    "one": lambda engine: engine.generate(LONG),
    "two": lambda engine: engine.generate(LONG, SHORT, tokens=2),
    "short-and-long": lambda engine: engine.generate(SHORT[:3], LONG, tokens=4),
    "longest-twice": lambda engine: [engine.generate(LONGEST, tokens=1) for _ in range(2)],
    "asking": lambda engine: engine.generate(LONG, SHORT, LONGEST, tokens=1, prompt_logprobs=1),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("scenes", nargs="*")
    parser.add_argument("--settings", type=json.loads, default={}, help="of the engine, as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if not options.model.exists():
        make_model(options.model)
    try:
        engine = Engine(options.model, **options.settings)
        seen = {"scenes": [SCENES[name](engine) for name in options.scenes]}
    except RuntimeError as error:
        seen = {"error": str(error)}
    options.out.write_text(json.dumps(seen | {"msprobe": "msprobe" in sys.modules} | debugger_state()))


if __name__ == "__main__":
    main()
