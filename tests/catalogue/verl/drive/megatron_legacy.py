"""Checks of verl's own legacy Megatron worker and actor, patched, with Megatron stood in for.

python megatron_legacy.py VERSION DUMP_FOLDER
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sys
from pathlib import Path
from unittest import mock

import cpu
import numpy as np
import stand_ins
import tiny
import torch
from stand_ins import chunks, events, seen, settings, switch

PROMPTS = tiny.PROMPTS
WHOLE = [prompt + response for prompt, response in zip(tiny.PROMPTS, tiny.RESPONSES, strict=True)]
STEP = ["start", "stop", "step"]


def worker_of(version: str):
    """verl's worker and actor without the building of models, which is Megatron's."""
    from verl.workers import megatron_workers
    from verl.workers.actor import megatron_actor

    replay = settings(mode="disabled")
    megatron = settings(context_parallel_size=1, use_remove_padding=True)
    actor_config = settings(megatron=megatron, router_replay=replay, profiler=None, loss_agg_mode="token-mean")
    actor = object.__new__(megatron_actor.MegatronPPOActor)
    actor.config, actor.actor_module, actor.hf_config = actor_config, chunks, None
    actor.tf_config = settings(sequence_parallel=False, virtual_pipeline_model_parallel_size=None)
    actor.use_fused_kernels = actor.enable_routing_replay = actor.use_torch_profiler = False
    actor.mtp_config, actor.prof = None, None
    megatron_actor.unwrap_model = lambda model: model
    if version >= "0.7":
        all_of_them = staticmethod(lambda *_config: stand_ins.routers())
        megatron_actor.RouterReplayHelper.get_micro_batch_router_list = all_of_them

    worker = object.__new__(megatron_workers.ActorRolloutRefWorker)
    worker.actor, worker.actor_module = actor, chunks
    worker._is_actor, worker._is_offload_param, worker.enable_routing_replay = True, False, False
    worker.peft_cls = settings(disable_adapter=lambda chunks: contextlib.nullcontext())
    source = settings(
        log_prob_micro_batch_size_per_gpu=1,
        log_prob_max_token_len_per_gpu=64,
        log_prob_use_dynamic_bsz=False,
        temperature=1.0,
    )
    worker.config = settings(rollout=source, ref=source, actor=actor_config)
    return worker


def batch(**metadata):
    from verl import DataProto

    ids = np.array(tiny.REQUEST_IDS, dtype=object)
    return DataProto.from_dict(tensors=tiny.padded_batch(), non_tensors={"request_id": ids}, meta_info=metadata)


def log_prob(worker, **metadata):
    data = batch(**metadata)
    out = worker.compute_log_prob(data)
    assert "probepatch_row" not in list(data.batch.keys())
    return {name: value.tolist() for name, value in out.batch.items()}


def state():
    return (
        random.getstate(),
        np.random.get_state()[1].tolist(),
        torch.get_rng_state().tolist(),
        [chunk.training for chunk in chunks],
        [router.router_replay_action for router in stand_ins.routers()],
    )


def main(version: str, folder: Path) -> None:
    log = folder / "rank0" / "update_actor_log.jsonl"
    worker = worker_of(version)
    evaluates = version >= "0.7"  # its own log-prob forward is in eval mode

    switch(DUMP_ON="0", PROMPTS_ONLY="1")
    log_prob(worker)
    assert "msprobe" not in sys.modules
    assert [ids for ids, *_ in seen] == WHOLE

    switch(DUMP_ON="1", DUMP_PHASE="update_actor")
    log_prob(worker)
    assert "msprobe" not in sys.modules

    stand_ins.watch_msprobe()

    # the bare prompts, each a step, then the ordinary forward as it is
    switch(DUMP_ON="1", PROMPTS_ONLY="1")
    log_prob(worker)
    assert [ids for ids, *_ in seen] == PROMPTS + WHOLE, seen
    assert [training for _ids, training, _ in seen] == [False, False] + [not evaluates] * 2, seen
    assert events == STEP * 2
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["request_ids"] for line in lines] == [["request-a"], ["request-b"]]
    assert [line["token_count"] for line in lines] == [line["prompt_tokens"][0] for line in lines] == [5, 3]
    assert [line["step"] for line in lines] == [0, 1]
    dumped = json.loads((folder / "step0" / "rank0" / "dump.json").read_text())["data"]
    (entry,) = (name for name in dumped if "embedding" in name)
    assert entry.startswith("Module.0.embedding."), entry
    assert dumped[entry]["input_args"][0]["shape"] == [1, 5]

    # numbers and random states with the extra pass are those without
    outcomes = []
    for only_ordinary in (True, False):
        for seed in (torch.manual_seed, np.random.seed, random.seed):
            seed(3)
        stand_ins.Tracker.states = {"model-parallel-rng": 1}
        switch(DUMP_ON=str(int(not only_ordinary)), PROMPTS_ONLY="1")
        outcomes.append((log_prob(worker), state(), stand_ins.Tracker.states))
    assert outcomes[0] == outcomes[1]

    # the prompts' log-probs; all ranks of a model have the output, and the last stage's first writes
    parallel_state = sys.modules["megatron.core.parallel_state"]
    worker.config.rollout.temperature = 0.7
    for rank in ("get_tensor_model_parallel_rank", "get_context_parallel_rank"):
        elsewhere = mock.patch.object(parallel_state, rank, lambda: 1, create=True)
        stand_ins.check_prefill(folder, lambda: log_prob(worker), elsewhere)
    worker.config.rollout.temperature = 1.0

    # the ordinary forward is dumped
    switch(DUMP_ON="1")
    log_prob(worker)
    assert [ids for ids, *_ in seen] == WHOLE
    assert events == STEP * 2

    # fused kernels
    worker.actor.use_fused_kernels = version >= "0.5"
    switch(DUMP_ON="1", PROMPTS_ONLY="1")
    log_prob(worker)
    assert [ids for ids, *_ in seen] == PROMPTS + WHOLE
    assert events == STEP * 2
    worker.actor.use_fused_kernels = False

    # prompts of one micro-batch are packed; without packing each is alone
    worker.config.rollout.log_prob_micro_batch_size_per_gpu = 2
    switch(DUMP_ON="1", PROMPTS_ONLY="1")
    log_prob(worker)
    assert [ids for ids, *_ in seen] == [PROMPTS[0] + PROMPTS[1], WHOLE[0] + WHOLE[1]]
    worker.config.actor.megatron = settings(context_parallel_size=1, use_remove_padding=False)
    switch(DUMP_ON="1", PROMPTS_ONLY="1")
    log_prob(worker)
    assert [ids for ids, *_ in seen][:-1] == PROMPTS
    worker.config.actor.megatron = settings(context_parallel_size=1, use_remove_padding=True)

    # dynamic micro-batches: the log line names the samples in the micro-batch's order
    worker.config.rollout.log_prob_use_dynamic_bsz, worker.config.rollout.log_prob_max_token_len_per_gpu = True, 14
    switch(DUMP_ON="1")
    log_prob(worker)
    lines = [json.loads(line) for line in log.read_text().splitlines()][-2:]
    order = [WHOLE.index(ids) for ids, *_ in seen]
    assert [line["request_ids"] for line in lines] == [[tiny.REQUEST_IDS[row]] for row in order]
    worker.config.rollout.log_prob_use_dynamic_bsz, worker.config.rollout.log_prob_micro_batch_size_per_gpu = False, 1

    # a failing forward ends its step, and what was put aside comes back
    from msprobe.core.common.runtime import Runtime

    stand_ins.fail_on.append(PROMPTS[1][0])
    modes = [chunk.training for chunk in chunks]
    for prompts_only in ("1", "0"):
        switch(DUMP_ON="1", PROMPTS_ONLY=prompts_only)
        try:
            log_prob(worker)
        except stand_ins.Broken:
            pass
        else:
            raise AssertionError("the forward did not fail")
        assert events == STEP * 2, events
        assert not Runtime.is_running
        for chunk, mode in zip(chunks, modes, strict=True):
            assert prompts_only == "0" or chunk.training == mode  # 0.7.1 itself leaves eval mode behind
            chunk.train(mode)
    stand_ins.fail_on.clear()

    # one more chunk of a virtual pipeline: a step for each
    chunks.append(stand_ins.Chunk())
    switch(DUMP_ON="1", PROMPTS_ONLY="1")
    log_prob(worker)
    assert [ids for ids, *_ in seen] == PROMPTS * 2 + WHOLE * 2
    assert events == STEP * 4
    del chunks[1]

    if version >= "0.7.1":  # under LoRA the reference runs here as well
        switch(DUMP_ON="1", PROMPTS_ONLY="1")
        assert "ref_log_prob" in log_prob(worker, is_lora=True)
        assert [ids for ids, *_ in seen] == WHOLE
        assert events == []
    if version >= "0.7":
        replayed(worker)


def replayed(worker) -> None:
    """Recorded and replayed routes are the ordinary forward's alone."""
    from verl.utils.megatron import router_replay_patch as patch
    from verl.workers.actor import megatron_actor

    patch.RouterReplay()  # one layer's
    worker.enable_routing_replay = worker.actor.enable_routing_replay = True
    merged = []
    megatron_actor.merge_router_topk_indices = lambda mask, *_a: merged.append(mask.shape[1])
    megatron_actor.set_router_replay_data = lambda routes, *_a: merged.append(routes.shape[1])
    megatron_actor.pp_gather = lambda routes, _config: routes
    width = tiny.PROMPT_WIDTH + tiny.RESPONSE_WIDTH
    for mode, action in (("R2", patch.RouterReplayAction.RECORD), ("R3", patch.RouterReplayAction.REPLAY_FORWARD)):
        worker.config.actor.router_replay.mode = mode
        worker.actor.mini_layer_topk_idx_list = [torch.zeros(2, width, 1, 1)]
        switch(DUMP_ON="1", PROMPTS_ONLY="1")
        data = batch()
        if mode == "R3":
            data.batch["routed_experts"] = torch.zeros(2, width, 1, 1, dtype=torch.int64)
        worker.compute_log_prob(data)
        assert [actions for *_, actions in seen][:3] == [[None], [None], [action]], (mode, seen)
        assert merged == [width] * 2, merged
        assert worker.actor.enable_routing_replay
        merged.clear()


if __name__ == "__main__":
    cpu.flash_attention_stub()
    cpu.memory_functions()
    stand_ins.install()
    stand_ins.one_process_group()
    out = Path(sys.argv[2])
    (out / "config.json").write_text(json.dumps({"dump_path": str(out)}))
    os.environ["MSPROBE_ACTOR_CONFIG"] = str(out / "config.json")
    main(sys.argv[1], out)
