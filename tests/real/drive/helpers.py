"""Checks of the helper module inside a patched verl, on batches that the tiny runs do not reach. Needs no model.

python helpers.py KIND CONFIG
"""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import cpu
import numpy as np
import tiny
import torch

AXES = 3  # rope axes of a vision model's position ids


def three_axes(positions: torch.Tensor) -> torch.Tensor:
    """(B, S) -> (B, 3, S), each axis with numbers of its own."""
    return torch.stack([positions + 100 * axis for axis in range(AXES)], dim=1)


def padded_batch(**other: torch.Tensor):
    from verl import DataProto

    fields = tiny.padded_batch() | other
    images = np.array([{"pixels": row} for row in range(len(fields["input_ids"]))], dtype=object)
    return DataProto.from_dict(fields, non_tensors={"multi_modal_inputs": images}, meta_info={"temperature": 1.0})


def check_padded(helpers) -> None:
    """The legacy workers' batches."""
    data = padded_batch(position_ids=three_axes(tiny.padded_batch()["position_ids"]))
    (copy,) = helpers.prompt_passes(data, packed=True)
    fields = copy.batch
    assert fields["input_ids"].tolist() == [tiny.PROMPTS[0], [0, 0, *tiny.PROMPTS[1]]]
    assert fields["attention_mask"].tolist() == [[1] * 5, [0, 0, 1, 1, 1]]
    assert fields["responses"].tolist() == [row[1:] for row in fields["input_ids"].tolist()]
    assert fields["position_ids"].shape == (2, AXES, 5)
    assert fields["position_ids"][1, 2].tolist() == [0, 0, 200, 201, 202]
    assert sorted(fields.keys()) == ["attention_mask", "input_ids", "position_ids", helpers.ROW, "responses"]

    alone = list(helpers.prompt_passes(data, packed=False))
    assert [one.batch["input_ids"].tolist() for one in alone] == [[prompt] for prompt in tiny.PROMPTS]
    assert [one.batch[helpers.ROW].tolist() for one in alone] == [[0], [1]]
    assert [one.non_tensor_batch["multi_modal_inputs"][0]["pixels"] for one in alone] == [0, 1]

    one_token = padded_batch(attention_mask=torch.tensor([[0] * 7 + [1] * 7] * 2))
    (copy,) = helpers.prompt_passes(one_token, packed=True)
    assert copy.batch["responses"].shape == (2, 1)  # a width of 0 would turn x[:, :-0] into nothing
    assert copy.batch["attention_mask"].tolist() == [[0, 1], [0, 1]]


def check_jagged(helpers) -> None:
    """The engine's batches: from the trainer with padding removed, and from TransferQueue, jagged from the start."""
    from verl.utils import tensordict_utils as tu
    from verl.workers.utils.padding import left_right_2_no_padding

    fields = tiny.padded_batch()
    shorter = fields["attention_mask"].clone()
    shorter[1, -1] = 0
    for mask in (fields["attention_mask"], shorter):  # sequences of one length, and of two
        data = padded_batch(position_ids=three_axes(fields["position_ids"]), attention_mask=mask).to_tensordict()
        alone = list(helpers.prompt_passes(left_right_2_no_padding(data), packed=True))
        assert [one["input_ids"].values().tolist() for one in alone] == tiny.PROMPTS
        assert alone[1]["position_ids"].values().tolist() == [[0, 1, 2], [100, 101, 102], [200, 201, 202]]
        assert [tu.get(one, "multi_modal_inputs")[0]["pixels"] for one in alone] == [0, 1]

    sequences = [torch.tensor(prompt + tiny.RESPONSES[row]) for row, prompt in enumerate(tiny.PROMPTS)]
    jagged = {
        "input_ids": sequences,
        "position_ids": [torch.arange(len(sequence)) for sequence in sequences],
        "prompts": [torch.tensor(prompt) for prompt in tiny.PROMPTS],
        "responses": [torch.tensor(response) for response in tiny.RESPONSES],
    }
    fields = {name: torch.nested.as_nested_tensor(rows, layout=torch.jagged) for name, rows in jagged.items()}
    ids = [{"request_id": request, "turn_scores": [], helpers.PREFILL: {"of": request}} for request in tiny.REQUEST_IDS]
    queue = tu.get_tensordict(fields | {"extra_fields": ids, "temperature": torch.tensor([0.7, 0.8])})
    (update,) = helpers.prompt_passes(queue, packed=True, phase="update_actor")
    assert update["temperature"].tolist() == queue["temperature"].tolist()
    (copy,) = helpers.prompt_passes(queue, packed=True)
    assert copy["temperature"] == 1.0
    assert copy["input_ids"].values().tolist() == [*tiny.PROMPTS[0], *tiny.PROMPTS[1]]
    assert copy["position_ids"].values().tolist() == [0, 1, 2, 3, 4, 0, 1, 2]
    assert not {"responses", "prompts"} & set(copy.keys())
    assert [sample["request_id"] for sample in helpers._requests] == tiny.REQUEST_IDS
    assert [sample[helpers.PREFILL]["of"] for sample in helpers._requests] == tiny.REQUEST_IDS
    assert queue["input_ids"].values().tolist() == torch.cat(sequences).tolist()  # the batch itself is as it was


def check_switches(helpers) -> None:
    for text, on in (("", False), ("0", False), ("1", True)):
        os.environ["DUMP_ON"] = text
        assert helpers.dump_on() is on
    assert helpers.observes_log_prob(is_ref=None) and not helpers.observes_log_prob(is_ref=True)
    os.environ["DUMP_PHASE"] = "update_actor"
    assert not helpers.observes_log_prob(is_ref=False)
    os.environ["PREFILL_LOGPROB_DIFF"] = "1"
    assert helpers.observes_log_prob(is_ref=False) and not helpers.observes_log_prob(is_ref=True)
    for name, text in (("DUMP_PHASE", "rollout"), ("DUMP_ON", "yes")):
        os.environ[name] = text
        refused(name, helpers.observes_log_prob, False)
    os.environ.update(DUMP_ON="1", DUMP_PHASE="log_prob", PREFILL_LOGPROB_DIFF="0")


def refused(because: str, function, *arguments) -> None:
    try:
        function(*arguments)
    except (RuntimeError, ValueError) as error:
        assert because in str(error), error
    else:
        raise AssertionError(because)


def check_refusals(helpers) -> None:
    from omegaconf import OmegaConf

    os.environ.pop("MSPROBE_ACTOR_CONFIG", None)
    refused("MSPROBE_ACTOR_CONFIG", helpers.debugger_settings)
    free, taken = SimpleNamespace(_instance=None), SimpleNamespace(_instance=object())
    quiet, native = ({"profiler": {"tool": "precision_debugger", "enable": on}} for on in (False, True))
    helpers.refuse_second_debugger(free, OmegaConf.create({}))
    helpers.refuse_second_debugger(free, OmegaConf.create(quiet))
    refused("global_profiler.tool=precision_debugger", helpers.refuse_second_debugger, free, OmegaConf.create(native))
    refused("another PrecisionDebugger", helpers.refuse_second_debugger, taken, OmegaConf.create(quiet))


def check_engines(helpers) -> None:
    from verl.workers.engine.fsdp.transformer_impl import FSDPEngine, FSDPEngineWithLMHead

    class OwnLoop(FSDPEngine):
        def forward_backward_batch(self, *_arguments, **_fields):
            return []

    helpers.require_fsdp_engine(object.__new__(FSDPEngineWithLMHead))
    refused("OwnLoop", helpers.require_fsdp_engine, object.__new__(OwnLoop))
    refused("object", helpers.require_fsdp_engine, object())


def main() -> None:
    os.environ.update(DUMP_ON="1", DUMP_PHASE="all", PROMPTS_ONLY="1", MSPROBE_ACTOR_CONFIG=sys.argv[2])
    cpu.flash_attention_stub()
    cpu.platform()
    cpu.attention_functions()
    from verl import probepatch_verl

    if sys.argv[1] == "engine":
        check_jagged(probepatch_verl)
        check_engines(probepatch_verl)
    check_padded(probepatch_verl)
    check_switches(probepatch_verl)
    check_refusals(probepatch_verl)


if __name__ == "__main__":
    main()
