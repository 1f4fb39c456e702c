"""Training steps of a patched or unpatched MegatronTrainRayActor: python actor.py PACKAGE TREE CASES OUT

CASES is a JSON object, name -> options; each case runs in a process of its own, forked after the imports. What was seen
goes to OUT/NAME.json. The model is causal, so that a prompt's log-probs do not depend on the response.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import logging
import os
import random
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import stubs
import torch

TOKENS = [[5, 6, 7, 8, 9, 10, 11], [12, 13, 14, 15], [5, 6, 7, 20, 21, 22], [30, 31, 32, 33, 34]]
RESPONSES = [3, 2, 3, 1]
VOCABULARY = 64


class Model(torch.nn.Module):
    """Cumulative sums within each packed sequence, then logits; dropout tells training from evaluation."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.embedding = torch.nn.Embedding(VOCABULARY, 16)
        self.dropout = torch.nn.Dropout(0.5)
        self.head = torch.nn.Linear(16, VOCABULARY)
        self.scale = 1.0
        self.role = "actor"
        self.seen: list[dict[str, Any]] = []
        self.fail_at: int | None = None

    def forward(self, input_ids: torch.Tensor, packed_seq_params: Any = None, **other: Any) -> torch.Tensor:
        running = stubs.Debugger.events.count("start") - stubs.Debugger.events.count("stop")
        stage = os.environ.get("ROUTING_REPLAY_STAGE")
        self.seen.append(
            {"shape": list(input_ids.shape), "dumped": running, "scale": self.scale, "eval": not self.training}
            | {"grad": torch.is_grad_enabled(), "replay": stage, "ids": input_ids.flatten().tolist()}
        )
        if self.fail_at == len(self.seen):
            raise FloatingPointError("the forward fails")
        hidden = self.embedding(input_ids) * self.scale
        if packed_seq_params is None:
            return self.head(self.dropout(hidden.cumsum(1)))
        ends = packed_seq_params.cu_seqlens_q.diff().tolist()
        return self.head(self.dropout(torch.cat([part.cumsum(1) for part in hidden.split(ends, dim=1)], dim=1)))


SCALES = {"actor": 1.0, "ref": 2.0, "teacher": 3.0, "old_actor": 4.0}


class Weights:
    """The backup of weights: a model of its own is a scale."""

    def __init__(self, model: Model, tags: list[str]) -> None:
        self.model = model
        self.backup_tags = set(tags)

    def restore(self, tag: str) -> None:
        self.model.scale = SCALES[tag]

    def backup(self, tag: str) -> None: ...


class Anything:
    def __getattr__(self, _name: str) -> Any:
        return lambda *_, **__: {}


def arguments(options: dict[str, Any]) -> argparse.Namespace:
    off = [
        "use_rollout_logprobs",
        "get_mismatch_metrics",
        "use_critic",
        "keep_old_actor",
        "use_opd",
        "use_routing_replay",
    ]
    off += [
        "use_rollout_routing_replay",
        "custom_megatron_before_log_prob_hook_path",
        "save_debug_train_data",
        "ci_test",
    ]
    off += ["use_rollout_entropy", "allgather_cp", "dspark_enabled", "debug_rollout_only", "use_dynamic_batch_size"]
    off += ["offload_train", "fp8", "ref_update_interval"]
    values: dict[str, Any] = dict.fromkeys(off)
    values |= {"rollout_temperature": 0.7, "rollout_top_p": 1.0, "qkv_format": "thd", "data_pad_size_multiplier": 4}
    values |= {
        "compute_advantages_and_returns": True,
        "loss_type": "policy_loss",
        "kl_coef": 0.1,
        "global_batch_size": 4,
    }
    values |= {"advantage_estimator": "grpo", "log_probs_chunk_size": -1, "micro_batch_size": 2, "seq_length": 8}
    values |= {"draft_feature_mode": "off", "num_critic_only_steps": 9}
    return argparse.Namespace(**values | options.get("args", {}))


def rollout(options: dict[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = {
        "tokens": [torch.tensor(tokens) for tokens in TOKENS],
        "total_lengths": [len(tokens) for tokens in TOKENS],
        "response_lengths": list(RESPONSES),
        "loss_masks": [torch.ones(length, dtype=torch.int) for length in RESPONSES],
        "rollout_log_probs": [torch.zeros(length) for length in RESPONSES],
        "num_microbatches": [2],
        "global_batch_sizes": [4],
        "micro_batch_indices": [[0, 2], [3, 1]],
    }
    if options.get("requests"):
        data["probepatch_requests"] = options["requests"]
    if options.get("one_token_prompt"):
        data["response_lengths"][1] = 3
        data["loss_masks"][1] = torch.ones(3, dtype=torch.int)
    if options.get("args", {}).get("qkv_format") == "bshd":
        data["max_seq_lens"] = [8] * len(TOKENS)
    if options.get("args", {}).get("rollout_top_p", 1.0) != 1.0:  # each response token's nucleus: all of them
        everything = list(range(VOCABULARY))
        data["rollout_top_p_token_ids"] = [everything * length for length in RESPONSES]
        data["rollout_top_p_token_offsets"] = [[VOCABULARY * i for i in range(n + 1)] for n in RESPONSES]
    return data


def digest(data: dict[str, Any]) -> str:
    plain = {key: [v.tolist() if isinstance(v, torch.Tensor) else v for v in value] for key, value in data.items()}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def random_state() -> str:
    parts = (torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist())
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def load(package: str, tree: str) -> tuple[Any, stubs.Finder]:
    sys.path.insert(0, tree)
    finder = stubs.install(package)
    module = importlib.import_module(f"{package}.backends.megatron_utils.actor")
    data_module = importlib.import_module(f"{package}.backends.megatron_utils.data")
    if hasattr(data_module, "accelerator"):
        data_module.accelerator.device = data_module.accelerator.current_device = lambda *_: torch.device("cpu")
    replaced = ("compute_advantages_and_returns", "log_rollout_data", "log_perf_data", "sync_actor_critic_data")
    for name in (*replaced, "train_dump_utils", "train_data_utils", "train_metric_utils"):
        if hasattr(module, name):
            setattr(module, name, Anything() if name.endswith("_utils") else lambda *_, **__: None)
    return module, finder


def build(module: Any, options: dict[str, Any], model: Model) -> Any:
    actor = module.MegatronTrainRayActor.__new__(module.MegatronTrainRayActor)
    actor.args, actor.role, actor.model = arguments(options), options.get("role", "actor"), [model]
    actor.weights_backuper = Weights(model, options.get("tags", ["actor"]))
    actor._active_model_tag, actor.rollout_data_postprocess = "actor", None
    actor.optimizer = actor.opt_param_scheduler = actor._actor_critic_groups = None
    actor.prof = actor.weight_updater = Anything()
    return actor


def expected_log_probs(model: Model) -> list[list[float]]:
    """Of each prompt's tokens from the second on, at temperature 1."""
    model.eval()
    rows = []
    with torch.no_grad():
        for tokens, response in zip(TOKENS, RESPONSES, strict=True):
            prompt = torch.tensor(tokens[: len(tokens) - response])
            logits = model.head(model.embedding(prompt).cumsum(0)).log_softmax(-1)
            rows.append(logits[:-1].gather(1, prompt[1:, None])[:, 0].tolist())
    model.train()
    return rows


def run(module: Any, options: dict[str, Any]) -> dict[str, Any]:
    seen: dict[str, Any] = {"rounds": []}
    model = Model()
    seen["expected"] = expected_log_probs(model)
    if options.get("role") == "critic":
        model.head = torch.nn.Linear(16, 1)
    model.fail_at = options.get("fail_at")

    def train(*given: Any) -> None:
        iterator, layer = given[4][0], given[1][0]
        layer.train()
        iterator.reset()
        rows = [iterator.get_next(["tokens", "loss_masks", "total_lengths"]) for _ in range(sum(given[5]))]
        found: dict[str, Any] = {"trained_on": [[tokens.tolist() for tokens in row["tokens"]] for row in rows]}
        found["data"] = digest({key: value for key, value in data.items() if key != "log_probs"})
        found["keys"] = sorted(data)
        found["log_probs"] = [value.tolist() for value in data.get("log_probs", [])]
        found["replay"] = os.environ.get("ROUTING_REPLAY_STAGE")
        found["scale"] = layer.scale
        found["random"] = random_state()
        layer.fail_at = None
        packed = types.SimpleNamespace(cu_seqlens_q=torch.tensor([0, 3, 6]))
        loss = layer(torch.tensor([[5, 6, 7, 8, 9, 10]]), packed_seq_params=packed).square().mean()
        loss.backward()
        found["loss"], found["gradient"] = loss.item(), layer.head.weight.grad.sum().item()
        seen["rounds"].append(found)

    module.train = train
    actor = build(module, options, model)
    if hasattr(module, "Timer"):
        module.Timer().start("train_wait")
    torch.manual_seed(7)
    random.seed(7)
    np.random.seed(7)
    if options.get("seed_all"):
        stubs.seed_all(mode=True)
        stubs.Debugger.events.clear()
    if options.get("other_debugger"):
        stubs.Debugger()
    seen["raised"] = None
    for _ in range(options.get("repeat", 1)):
        data = rollout(options)
        actor._get_rollout_data = lambda _reference, data=data: data
        try:
            actor.train(0, None)
        except (FloatingPointError, RuntimeError) as error:
            seen["raised"] = f"{type(error).__name__}: {error}"
    seen |= {"events": stubs.Debugger.events, "built_with": stubs.Debugger.arguments, "forwards": model.seen}
    return seen | {"msprobe": "msprobe" in sys.modules and "msprobe.pytorch" in sys.modules}


def main() -> None:
    package, tree, cases, out = sys.argv[1:]
    module, finder = load(package, tree)
    finder.names = tuple(name for name in finder.names if name != "msprobe")
    for name, options in json.loads(cases).items():
        child = os.fork()
        if child == 0:
            os.environ.update(options.get("environment", {}))
            with open(Path(out, f"{name}.log"), "w") as log:
                os.dup2(log.fileno(), 2)
            logging.basicConfig(level=logging.INFO, force=True)
            if not options.get("without_msprobe"):
                stubs.offer_msprobe()
            Path(out, f"{name}.json").write_text(json.dumps(run(module, options)))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            print(f"{name}: {Path(out, f'{name}.log').read_text()}", file=sys.stderr)


if __name__ == "__main__":
    main()
