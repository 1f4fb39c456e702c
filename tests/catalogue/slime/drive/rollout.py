"""Two requests and what becomes of their samples: python rollout.py PACKAGE TREE OUT

The patched client, the patched conversion to training data and the patched split over two ranks, without servers.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import sys
import types
from pathlib import Path
from typing import Any

import stubs

ANSWER = [40, 41]


class Tokenizer:
    def encode(self, text: str, **_: Any) -> list[int]:
        return [ord(letter) for letter in text]

    def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
        return {"input_ids": self.encode(text)}

    def decode(self, *_: Any, **__: Any) -> str:
        return "x"


def sglang_answer(payload: dict[str, Any], number: int) -> dict[str, Any]:
    meta: dict[str, Any] = {"id": f"engine-{number}", "finish_reason": {"type": "stop"}}
    meta["output_token_logprobs"] = [[-0.5, token, None] for token in ANSWER]
    if payload.get("logprob_start_len") == 0:
        tokens = payload["input_ids"]
        meta["input_token_logprobs"] = [[None if i == 0 else -float(i), token, None] for i, token in enumerate(tokens)]
    return {"text": "x", "meta_info": meta}


def vllm_answer(payload: dict[str, Any], _number: int) -> dict[str, Any]:
    answer: dict[str, Any] = {"request_id": "of no use", "choices": [{"token_ids": ANSWER, "finish_reason": "stop"}]}
    if payload["sampling_params"].get("prompt_logprobs"):
        rows = [
            {str(token): {"logprob": -float(i)}, "999": {"logprob": 0.0}}
            for i, token in enumerate(payload["token_ids"])
        ]
        answer["prompt_logprobs"] = [None, *rows[1:]]
    return answer


def main() -> None:
    package, tree, out = sys.argv[1:]
    sys.path.insert(0, tree)
    finder = stubs.install(package)
    finder.names = tuple(name for name in finder.names if name != "msprobe")
    client = importlib.import_module(f"{package}.rollout.{'sglang' if package == 'slime' else 'vllm'}_rollout")
    types_module = importlib.import_module(f"{package}.utils.types")
    manager_module = importlib.import_module(f"{package}.ray.rollout")
    sent: list[dict[str, Any]] = []

    async def post(url: str, payload: dict[str, Any], *_: Any, headers: Any = None, **__: Any) -> dict[str, Any]:
        if url.endswith("render"):
            return {"token_ids": [ord(letter) for letter in "pic"], "request_id": "of the rendering"}
        sent.append({"payload": json.loads(json.dumps(payload)), "headers": headers})
        return (sglang_answer if package == "slime" else vllm_answer)(payload, len(sent))

    client.post = post
    client.GenerateState = lambda _args: types.SimpleNamespace(tokenizer=Tokenizer(), processor=None)
    flags = """use_rollout_routing_replay use_slime_router partial_rollout ci_test sglang_speculative_algorithm use_vime_router
        apply_chat_template_kwargs balance_data rewards_normalization custom_reward_post_process_func reward_key"""
    args = argparse.Namespace(**dict.fromkeys(flags.split()), slime_router_middleware_paths=[], rollout_top_p=1.0)
    args.sglang_router_ip = args.vllm_router_ip = "nowhere"
    args.sglang_router_port = args.vllm_router_port = 1
    args.advantage_estimator, args.global_batch_size, args.n_samples_per_prompt = "ppo", 4, 1
    if hasattr(client, "prepare_model_inputs"):
        client.prepare_model_inputs = lambda prompt, *_, **__: (Tokenizer().encode(prompt), {})

    samples = [
        types_module.Sample(index=i, prompt=text, reward=1.0) for i, text in enumerate(("abc", "de", "fgh", "ij"))
    ]
    if package == "vime":
        samples[1].multimodal_inputs = {"images": ["a picture"]}
        samples[1].tokens, samples[1].session_id = [ord(letter) for letter in "pic"], "a session"
    for sample in samples[:3]:
        asyncio.run(client.generate(args, sample, {"max_new_tokens": 8, "temperature": 1.0}))
    samples[0].status = types_module.Sample.Status.ABORTED  # goes on later: a request whose input has a response in it
    asyncio.run(client.generate(args, samples[0], {"max_new_tokens": 8, "temperature": 1.0}))
    samples[3].tokens, samples[3].response_length = [50, 51, 40], 1  # from elsewhere
    for sample in samples:
        sample.rollout_log_probs = [0.0] * sample.response_length
        sample.loss_mask = [1] * sample.response_length

    manager = manager_module.RolloutManager.__new__(manager_module.RolloutManager)
    manager.args = args
    manager.custom_convert_samples_to_train_data_func = manager.custom_reward_post_process_func = None
    manager.train_parallel_config = {"dp_size": 2}
    data = manager._convert_samples_to_train_data(samples)
    shares = []
    if hasattr(manager, "_split_train_data_by_dp"):
        if hasattr(manager_module, "build_dp_schedule"):
            manager_module.build_dp_schedule = lambda *_, **__: ([[0, 2], [1, 3]], [[[0, 1]], [[0, 1]]], [1], [4])
            shares = manager._split_train_data_by_dp(data)
        else:
            shares = manager._split_train_data_by_dp(data, 2)
        shares = [share.inner for share in shares]
    else:
        split = importlib.import_module(f"{package}.utils.data")
        split.dist.broadcast_object_list = lambda *_, **__: None
        reference = types.SimpleNamespace(inner=data)
        shares = [split.process_rollout_data(args, reference, rank, 2) for rank in range(2)]
    kept = [share.get("probepatch_requests") for share in shares]
    tokens = [[list(map(int, row)) for row in share["tokens"]] for share in shares]
    Path(out).write_text(
        json.dumps({"sent": sent, "kept": kept, "tokens": tokens, "msprobe": "msprobe" in sys.modules})
    )


if __name__ == "__main__":
    main()
