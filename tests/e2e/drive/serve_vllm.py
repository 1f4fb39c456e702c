"""Stands in for `vllm serve MODEL …` and one client of it: vLLM's own arguments, its engine in this process, no HTTP.

The sample's requests are sent one after the other, each under the trainer's request id, as verl's rollout does.
"""

from __future__ import annotations

import os
import sys

os.environ |= {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")

import sample
import torch
from vllm import LLM, SamplingParams
from vllm.engine.arg_utils import EngineArgs
from vllm.utils.argparse_utils import FlexibleArgumentParser


def main(arguments: list[str]) -> None:
    torch.set_num_threads(1)
    parser = EngineArgs.add_cli_args(FlexibleArgumentParser())
    parser.add_argument("model_tag")
    options = parser.parse_args(arguments)
    options.model = options.model_tag
    if os.environ.get("PROBEPATCH_INVENTORY"):
        options.load_format = describing()
    engine = LLM.from_engine_args(EngineArgs.from_cli_args(options)).llm_engine
    if os.environ.get("PROBEPATCH_INVENTORY"):
        return
    answers = []
    for one in sample.requests():
        asked = SamplingParams(max_tokens=1, temperature=0.0, detokenize=False, logprobs=1)
        engine.add_request(one["id"], {"prompt_token_ids": one["prompt"]}, asked)
        answers += run(engine)
    sample.report({"answers": answers, "msprobe": "msprobe" in sys.modules})
    print(f"{len(answers)} requests answered", flush=True)


def describing() -> str:
    """The payload's way to see the weights between their loading and their packing for kernels; the loader's name."""
    import payload_inventory

    written = payload_inventory.write_inventory

    def write_inventory(model):
        payload_inventory.write_inventory = written
        sample.describe(model, "infer")

    payload_inventory.write_inventory = write_inventory
    payload_inventory._vllm_loader()
    return "probepatch_inventory"


def run(engine) -> list[dict]:
    answers = []
    while engine.has_unfinished_requests():
        for answer in engine.step():
            if answer.finished:
                (output,) = answer.outputs
                logprob = output.logprobs[0][output.token_ids[0]].logprob
                answers.append({"tokens": list(output.token_ids), "logprob": repr(logprob)})
    return answers


if __name__ == "__main__":
    main(sys.argv[1:])
