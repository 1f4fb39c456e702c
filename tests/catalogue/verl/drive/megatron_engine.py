"""Checks of verl's own engine worker and Megatron engine, patched, with Megatron stood in for.

python megatron_engine.py VERSION DUMP_FOLDER
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sys
from pathlib import Path
from types import SimpleNamespace

import cpu
import numpy as np
import stand_ins
import tiny
import torch
from stand_ins import chunks, events, seen, settings, switch

PROMPTS = tiny.PROMPTS
WHOLE = [prompt + response for prompt, response in zip(tiny.PROMPTS, tiny.RESPONSES, strict=True)]
STEP = ["start", "stop", "step"]


class Section(SimpleNamespace):
    """A config section whose unset settings are off."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)

    def get(self, name, default=None):
        return self.__dict__.get(name, default)


def worker_of():
    """verl's worker and engine without the building of models, which is Megatron's."""
    from verl.workers import engine_workers
    from verl.workers.engine.megatron import transformer_impl

    engine = object.__new__(transformer_impl.MegatronEngineWithLMHead)
    replay = settings(mode="disabled")
    engine.engine_config = Section(
        context_parallel_size=1,
        use_remove_padding=True,
        router_replay=replay,
        use_fused_kernels=False,
        use_dynamic_bsz=False,
        infer_max_token_len_per_gpu=64,
        infer_micro_batch_size_per_gpu=1,
    )
    tokenizer = SimpleNamespace(pad_token_id=0)
    engine.model_config = Section(hf_config=SimpleNamespace(), tokenizer=tokenizer, mtp=Section())
    engine.model_config.use_remove_padding = True
    engine.tf_config = Section(virtual_pipeline_model_parallel_size=None)
    engine.module, engine.mode, engine.enable_routing_replay = chunks, None, False
    engine._is_offload_param = engine._is_offload_optimizer = False
    engine.peft_cls = SimpleNamespace(disable_adapter=lambda module: contextlib.nullcontext())
    transformer_impl.unwrap_model = lambda model: model
    if hasattr(engine, "_get_context_parallel_layout"):
        engine._get_context_parallel_layout = lambda model: None
    if hasattr(transformer_impl, "RouterReplayHelper"):
        all_of_them = staticmethod(lambda *_a, **_k: stand_ins.routers())
        transformer_impl.RouterReplayHelper.get_micro_batch_router_list = all_of_them

    training = object.__new__(engine_workers.TrainingWorker)
    training.engine, training.engine_config, training.model_config = engine, engine.engine_config, engine.model_config
    training._postprocess_output = lambda output, **_facts: Output(output["model_output"])
    training.loss_fn = None
    worker = object.__new__(engine_workers.ActorRolloutRefWorker)
    worker.actor, worker.enable_routing_replay = training, False
    worker.config = settings(actor=settings(profiler=None))
    return worker


class Output(dict):
    def cpu(self):
        return self


def batch(temperature: float = 1.0, **metadata):
    from verl import DataProto
    from verl.utils import tensordict_utils as tu
    from verl.workers.utils.padding import left_right_2_no_padding

    ids = np.array(tiny.REQUEST_IDS, dtype=object)
    shared = {"temperature": temperature, "global_token_num": [9, 9]}
    data = DataProto.from_dict(tensors=tiny.padded_batch(), non_tensors={"request_id": ids}, meta_info=shared)
    return tu.assign_non_tensor(left_right_2_no_padding(data.to_tensordict()), compute_loss=False, **metadata)


def log_prob(worker, **metadata):
    data = batch(**metadata)
    out = worker.compute_log_prob(data)
    assert "probepatch_row" not in list(data.keys())
    return {name: value.values().tolist() for name, value in out.items()}


def state():
    return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()


def main(version: str, folder: Path) -> None:
    log = folder / "rank0" / "update_actor_log.jsonl"
    worker = worker_of()
    settings_of_engine = worker.actor.engine_config

    switch(DUMP_ON="0", PROMPTS_ONLY="1")
    log_prob(worker, calculate_entropy=True)
    assert "msprobe" not in sys.modules
    assert [ids for ids, *_ in seen] == WHOLE

    switch(DUMP_ON="1", DUMP_PHASE="update_actor")
    log_prob(worker)
    assert "msprobe" not in sys.modules

    # another engine is refused by name, before msprobe has a debugger
    stand_ins.watch_msprobe()
    switch(DUMP_ON="1")
    megatron, worker.actor.engine = worker.actor.engine, type("OtherEngine", (), {})()
    for engine, why in ((worker.actor.engine, "OtherEngine"), (megatron, "dynamic_context_parallel")):
        worker.actor.engine = engine
        settings_of_engine.dynamic_context_parallel = True
        try:
            log_prob(worker)
        except RuntimeError as error:
            assert why in str(error)
        else:
            raise AssertionError(f"{why} is not refused")
    settings_of_engine.dynamic_context_parallel = False
    assert not hasattr(worker, "_probepatch_built")

    # the bare prompts, each a step, then the ordinary forward as it is
    switch(DUMP_ON="1", PROMPTS_ONLY="1")
    log_prob(worker, calculate_entropy=True)
    assert [ids for ids, *_ in seen] == PROMPTS + WHOLE, seen
    assert events == STEP * 2
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["request_ids"] for line in lines] == [["request-a"], ["request-b"]]
    assert [line["token_count"] for line in lines] == [line["prompt_tokens"][0] for line in lines] == [5, 3]
    dumped = json.loads((folder / "step0" / "rank0" / "dump.json").read_text())["data"]
    (entry,) = (name for name in dumped if "embedding" in name)
    assert entry.startswith("Module.0.embedding."), entry
    assert dumped[entry]["input_args"][0]["shape"] == [1, 5]

    # numbers and random states with the extra pass are those without
    outcomes = []
    for dumps in ("0", "1"):
        for seed in (torch.manual_seed, np.random.seed, random.seed):
            seed(3)
        switch(DUMP_ON=dumps, PROMPTS_ONLY="1")
        outcomes.append((log_prob(worker, calculate_entropy=True), state()))
    assert outcomes[0] == outcomes[1]

    # the prompts' log-probs; ranks that are not the last stage's first have no output
    class Elsewhere:
        def __enter__(self):
            worker.actor.engine.is_mp_src_rank_with_outputs = lambda: False

        def __exit__(self, *_error):
            del worker.actor.engine.is_mp_src_rank_with_outputs

    stand_ins.check_prefill(folder, lambda: worker.compute_log_prob(batch(temperature=0.7)), Elsewhere())

    # the ordinary forward is dumped
    switch(DUMP_ON="1")
    log_prob(worker)
    assert [ids for ids, *_ in seen] == WHOLE
    assert events == STEP * 2

    if version >= "0.7.1":  # 0.7.0 refuses fused kernels itself
        settings_of_engine.use_fused_kernels = True
        switch(DUMP_ON="1", PROMPTS_ONLY="1")
        log_prob(worker)
        assert [ids for ids, *_ in seen] == PROMPTS + WHOLE
        assert events == STEP * 2
        settings_of_engine.use_fused_kernels = False

    # prompts of one micro-batch are packed; without packing each is alone
    settings_of_engine.infer_micro_batch_size_per_gpu = 2
    for packs, expected in ((True, [PROMPTS[0] + PROMPTS[1]]), (False, PROMPTS)):
        settings_of_engine.use_remove_padding = packs
        switch(DUMP_ON="1", PROMPTS_ONLY="1")
        log_prob(worker)
        assert [ids for ids, *_ in seen][:-1] == expected, seen
    settings_of_engine.use_remove_padding = True

    # dynamic micro-batches: the log line names the samples in the micro-batch's order
    settings_of_engine.use_dynamic_bsz, settings_of_engine.infer_max_token_len_per_gpu = True, 12
    switch(DUMP_ON="1")
    log_prob(worker)
    lines = [json.loads(line) for line in log.read_text().splitlines()][-2:]
    order = [WHOLE.index(ids) for ids, *_ in seen]
    assert [line["request_ids"] for line in lines] == [[tiny.REQUEST_IDS[row]] for row in order]
    settings_of_engine.use_dynamic_bsz, settings_of_engine.infer_micro_batch_size_per_gpu = False, 1

    # a failing forward ends its step, fused or not
    from msprobe.core.common.runtime import Runtime

    stand_ins.fail_on.append(PROMPTS[1][0])
    for prompts_only, fused in (("1", False), ("0", False), ("1", version >= "0.7.1")):
        settings_of_engine.use_fused_kernels = fused
        switch(DUMP_ON="1", PROMPTS_ONLY=prompts_only)
        try:
            log_prob(worker)
        except stand_ins.Broken:
            pass
        else:
            raise AssertionError("the forward did not fail")
        assert events == STEP * 2, events
        assert not Runtime.is_running
    settings_of_engine.use_fused_kernels = False
    stand_ins.fail_on.clear()

    # one more chunk of a virtual pipeline: a step for each
    chunks.append(stand_ins.Chunk())
    switch(DUMP_ON="1", PROMPTS_ONLY="1")
    log_prob(worker)
    assert [ids for ids, *_ in seen] == PROMPTS * 2 + WHOLE * 2
    assert events == STEP * 4
    del chunks[1]

    # under LoRA the reference runs here as well
    switch(DUMP_ON="1", PROMPTS_ONLY="1")
    log_prob(worker, no_lora_adapter=True)
    assert [ids for ids, *_ in seen] == WHOLE
    assert events == []


if __name__ == "__main__":
    cpu.flash_attention_stub()
    cpu.memory_functions()
    stand_ins.install()
    stand_ins.one_process_group()
    cpu.platform()
    out = Path(sys.argv[2])
    (out / "config.json").write_text(json.dumps({"dump_path": str(out)}))
    os.environ["MSPROBE_ACTOR_CONFIG"] = str(out / "config.json")
    main(sys.argv[1], out)
