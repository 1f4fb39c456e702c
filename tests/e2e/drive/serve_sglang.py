"""Stands in for `python3 -m sglang.launch_server …` and one client of it: SGLang's own arguments, its offline engine, no HTTP."""

from __future__ import annotations

import sys
import types

import torch

for name in ("nms", "qnms"):  # torchvision is a CUDA build here, and registers fakes for operators that it lacks
    torch.library.define(f"torchvision::{name}", "(Tensor a, Tensor b, float c) -> Tensor")

# without an accelerator SGLang asks vLLM for one name that is never called
stub = types.ModuleType("vllm._custom_ops")
stub.rotary_embedding = None  # type: ignore[attr-defined]
sys.modules.setdefault("vllm", types.ModuleType("vllm"))
sys.modules.setdefault("vllm._custom_ops", stub)


def main(arguments: list[str]) -> None:
    import sample
    import sglang
    from sglang.srt.server_args import prepare_server_args

    engine = sglang.Engine(server_args=prepare_server_args(arguments))
    answers = []
    for one in sample.requests():
        greedy = {"max_new_tokens": 1, "temperature": 0.0}
        answers += engine.generate(input_ids=[one["prompt"]], sampling_params=greedy, rid=[one["id"]])
    engine.shutdown()
    sample.report({"answers": [{"tokens": one["output_ids"]} for one in answers]})
    print(f"{len(answers)} requests answered", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
