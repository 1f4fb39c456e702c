"""Stand-ins of Megatron in one process, so that verl's own Megatron actor and engine run on a CPU; and what msprobe was told.

One rank, chunks of a tiny model, a schedule that runs every micro-batch through every chunk. verl's own code is not touched.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import io
import json
import os
import socket
import sys
import types
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import cpu
import torch

VOCABULARY = 128
STANDING_IN = ("megatron", "mbridge", "apex", "transformer_engine", "mindspeed", "modelopt", "vllm", "zmq", "msgspec")


class Parts(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules of libraries that are not here: whatever is asked for is a class that takes anything."""

    def find_spec(self, fullname, path, target=None):
        if fullname.split(".")[0] not in STANDING_IN and not fullname.startswith("verl.models.mcore."):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__file__ = f"{spec.name}.py"
        module.__version__ = "0.14.0"

        module.__getattr__ = whatever
        return module

    def exec_module(self, module):
        pass


class Open(type):
    """The class of classes that have every attribute."""

    def __getattr__(cls, name):
        return whatever(name)


@cache
def whatever(name):
    """A class that takes anything, for a name that nobody here defines."""
    if name.startswith("__"):
        raise AttributeError(name)
    return Open(name, (), {"__init__": lambda self, *a, **k: None})


class Chunk(torch.nn.Module):
    """A pipeline chunk. msprobe leaves out the first and the last submodule of a model in verl."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Identity()
        self.embedding = torch.nn.Embedding(VOCABULARY, 8)
        self.dropout = torch.nn.Dropout(0.5)
        self.output = torch.nn.Linear(8, VOCABULARY)

    def forward(self, ids):
        seen.append((ids.tolist()[0], self.training, [router.router_replay_action for router in routers()]))
        if fail_on and fail_on[0] in ids.tolist()[0]:
            raise Broken
        return self.output(self.dropout(self.embedding(self.first(ids))))


class Broken(Exception):
    """The forward failed because it was told to."""


class Tracker:
    """Megatron's random states: every draw changes them, and so does this stand-in's forward."""

    states: ClassVar[dict[str, int]] = {"model-parallel-rng": 1}

    def get_states(self):
        return dict(self.states)

    def set_states(self, states):
        Tracker.states = states


seen: list = []  # of each forward: the token ids, whether in training mode, the routers' actions
fail_on: list[int] = []  # a token on which the forward fails
events: list[str] = []  # what msprobe was told
chunks: list[Chunk] = []


def routers() -> list:
    patch = sys.modules.get("verl.utils.megatron.router_replay_patch")
    return patch.RouterReplay.router_instances if patch and hasattr(patch, "RouterReplay") else []


def schedule(forward_step_func, data_iterator, model, num_microbatches, forward_only, **_sizes):
    """Every micro-batch through every chunk; the last chunk's results."""
    iterators = data_iterator if isinstance(data_iterator, list) else [data_iterator]
    results = []
    for chunk, batches in zip(model, iterators, strict=True):
        results = []
        for _ in range(num_microbatches):
            output, loss = forward_step_func(batches, chunk)
            value, *reduced = loss(output)
            if not forward_only:
                value.backward()
            results.append(reduced[-1])
    return results


def cross_entropy(vocab_parallel_logits, target):
    logits = vocab_parallel_logits.float()
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none").view_as(target)


def packed(mask, tensor):
    return tensor[mask][None]


def forward(model, input_ids, attention_mask, *_position, logits_processor, logits_processor_args, **_other):
    """verl's packed forward of a padded micro-batch: (B, S) in, a dict of (B, S) out."""
    Tracker.states = {name: state + 1 for name, state in Tracker.states.items()}
    fields = {name: packed(attention_mask, value) for name, value in logits_processor_args.items()}
    result = logits_processor(model(packed(attention_mask, input_ids)), **fields)
    outputs = {}
    for name, value in result.items():
        outputs[name] = value.new_zeros(input_ids.shape).masked_scatter(attention_mask, value.flatten())
    return outputs


def fused_forward(model, input_ids, position_ids, attention_mask, labels, temperature=1.0, **_other):
    def processor(logits, label):
        return {"log_probs": -cross_entropy(logits / temperature, label), "entropy": logits[..., 0]}

    arguments = {"label": labels}
    return forward(model, input_ids, attention_mask, logits_processor=processor, logits_processor_args=arguments)


def _values(tensor):
    return tensor.values() if tensor.is_nested else tensor


def jagged_forward(model, input_ids, _images, *, logits_processor, logits_processor_args, **_other):
    """verl's forward of a jagged micro-batch: (B, j) in, a dict of (B, j) out; it shifts the labels itself."""
    wanted = ("label", "temperature")
    fields = {name: _values(value)[None] for name, value in logits_processor_args.items() if name in wanted}
    fields["label"] = fields["label"].roll(-1, dims=1)  # the last of a sequence has another's first, and counts nowhere
    result = logits_processor(model(input_ids.values()[None]), **fields)
    lengths = input_ids.offsets().diff().tolist()
    rows = {name: value.squeeze(0).split(lengths) for name, value in result.items()}
    return {name: torch.nested.as_nested_tensor(list(value), layout=torch.jagged) for name, value in rows.items()}


def fused_jagged_forward(model, input_ids, labels, multi_modal_inputs, temperature, **_other):
    def processor(logits, label):
        return {"log_probs": -cross_entropy(logits / temperature, label)}

    arguments = {"label": labels}
    return jagged_forward(
        model, input_ids, multi_modal_inputs, logits_processor=processor, logits_processor_args=arguments
    )


def install(number_of_chunks: int = 1) -> None:
    sys.meta_path.insert(0, Parts())
    parts = ("parallel_state", "tensor_parallel", "pipeline_parallel")
    parallel_state, tensor_parallel, pipeline_parallel = (import_module(f"megatron.core.{part}") for part in parts)

    def answer(name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *a, **k: {"rank": 0, "size": 1}.get(name.rsplit("_", 1)[-1])

    parallel_state.__getattr__ = answer
    parallel_state.is_pipeline_last_stage = parallel_state.is_pipeline_first_stage = lambda *a, **k: True
    parallel_state.get_virtual_pipeline_model_parallel_world_size = lambda: None
    parallel_state.get_pipeline_model_parallel_last_rank = lambda: 0
    tensor_parallel.get_cuda_rng_tracker = Tracker
    tensor_parallel.vocab_parallel_cross_entropy = cross_entropy
    pipeline_parallel.get_forward_backward_func = lambda: schedule
    mcore = types.ModuleType("verl.models.mcore")
    mcore.__path__ = []
    mcore.get_mcore_forward_fn = lambda config: forward
    mcore.get_mcore_forward_fused_fn = lambda config: fused_forward
    mcore.get_mcore_forward_no_padding_fn = mcore.get_mcore_engine_forward_fn = lambda config: jagged_forward
    mcore.get_mcore_forward_fused_no_padding_fn = lambda config: fused_jagged_forward
    mcore.get_mcore_forward_fused_model_engine_fn = mcore.get_mcore_forward_fused_no_padding_fn
    mcore.__getattr__ = whatever
    sys.modules["verl.models.mcore"] = mcore
    torch.manual_seed(5)
    chunks[:] = [Chunk() for _ in range(number_of_chunks)]


def watch_msprobe() -> None:
    """Note what msprobe is told, and let it do it."""
    from msprobe.pytorch import PrecisionDebugger

    for name in ("start", "stop", "step"):
        original = getattr(PrecisionDebugger, name)

        def told(*args, _name=name, _original=original, **settings):
            events.append(_name)
            return _original(*args, **settings)

        setattr(PrecisionDebugger, name, staticmethod(told))


def one_process_group() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        cpu.environment(free.getsockname()[1])
    torch.distributed.init_process_group("gloo")


def settings(**values):
    """A config section: attributes and `get`."""
    section = SimpleNamespace(**values)
    section.get = lambda name, default=None: values.get(name, default)
    return section


def prompt_log_probs(chunk: Chunk, prompt: list[int]) -> list[float]:
    """The chunk's own log-probs of a prompt's tokens from the second on, in eval mode, at temperature 1."""
    training = chunk.training
    chunk.eval()
    ids = torch.tensor([prompt])
    with torch.no_grad():
        found = chunk(ids)[0, :-1].log_softmax(dim=-1).gather(1, ids[0, 1:, None]).squeeze(1).tolist()
    chunk.train(training)
    seen.pop()
    return found


def prefill_lines(folder: Path) -> list[dict]:
    """The lines written since the last call."""
    file = folder / "rank0" / "prefill_logprobs.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    file.unlink(missing_ok=True)
    return lines


def check_prefill(folder: Path, log_prob, rank_without_results) -> None:
    """The bare prompts' log-probs are the model's own, with and without a dump; the batch's temperature is another.

    ``log_prob`` runs the worker; ``rank_without_results`` makes this rank one that has none.
    """
    from tiny import PROMPTS, REQUEST_IDS

    own = [prompt_log_probs(chunks[-1], prompt) for prompt in PROMPTS]
    for switches, steps in (({}, 0), ({"DUMP_ON": "1"}, 2), ({"DUMP_ON": "1", "PROMPTS_ONLY": "1"}, 2)):
        switch(PREFILL_LOGPROB_DIFF="1", **switches)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            log_prob()
        assert [ids for ids, *_ in seen][: len(PROMPTS)] == PROMPTS, seen
        assert events == ["start", "stop", "step"] * steps, (switches, events)
        lines = prefill_lines(folder)
        assert [line["request_id"] for line in lines] == REQUEST_IDS, lines
        assert {(line["side"], line["logprobs_mode"], line["temperature"]) for line in lines} == {("train", "raw", 1.0)}
        for line, expected, prompt in zip(lines, own, PROMPTS, strict=True):
            assert line["n_tokens"] == len(prompt)
            torch.testing.assert_close(torch.tensor(line["logprobs"]), torch.tensor(expected))
        assert "prefill_logprob_diff: not computed (2 of 2" in said.getvalue(), said.getvalue()
    switch(PREFILL_LOGPROB_DIFF="1")
    with rank_without_results:
        log_prob()
    assert prefill_lines(folder) == []


def switch(**values: str) -> None:
    for name in ("DUMP_ON", "PROMPTS_ONLY", "DUMP_PHASE", "PREFILL_LOGPROB_DIFF"):
        os.environ.pop(name, None)
    os.environ.update(values)
    seen.clear()
    events.clear()
