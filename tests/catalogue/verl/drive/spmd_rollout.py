"""Checks of verl's own SPMD rollout, patched, with vLLM stood in for.

python spmd_rollout.py DUMP_FOLDER
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import cpu
import stand_ins
import tiny
import torch
from stand_ins import events, seen, switch

STEP = ["start", "stop", "step"]


class Engine:
    """Stands for vllm.LLM: prefills each prompt alone, and answers with one token."""

    def __init__(self) -> None:
        runner = SimpleNamespace(model=stand_ins.chunks[0])
        driver = SimpleNamespace(worker=SimpleNamespace(model_runner=runner))
        executor = SimpleNamespace(driver_worker=driver)
        self.llm_engine = SimpleNamespace(model_executor=executor, list_loras=lambda: [7])
        self.requests = 0

    def reset_prefix_cache(self):
        events.append("reset")

    def generate(self, prompts, sampling_params, lora_request, use_tqdm):
        assert lora_request is None or len(lora_request) == len(prompts)
        events.append(f"generate {len(prompts)} {sampling_params}")
        outputs = []
        for prompt in prompts:
            with torch.no_grad():
                stand_ins.chunks[0](torch.tensor([prompt["prompt_token_ids"]]))
            completion = SimpleNamespace(token_ids=[9], logprobs=None)
            outputs.append(SimpleNamespace(request_id=str(self.requests), outputs=[completion]))
            self.requests += 1
        return outputs


class SamplingParams:
    def __init__(self, **settings) -> None:
        self.settings = settings

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in sorted(self.settings.items()))


def rollout_of(enforce_eager: bool = True):
    from verl.workers.rollout.vllm_rollout import vllm_rollout_spmd

    vllm_rollout_spmd.SamplingParams = SamplingParams
    rollout = object.__new__(vllm_rollout_spmd.vLLMRollout)
    stand_ins.chunks[0].eval()
    validation = SimpleNamespace(top_k=-1, top_p=1.0, temperature=0)
    rollout.config = stand_ins.settings(
        enforce_eager=enforce_eager,
        calculate_log_probs=False,
        response_length=2,
        free_cache_engine=False,
        val_kwargs=validation,
    )
    rollout.inference_engine, rollout.lora_kwargs, rollout.pad_token_id = Engine(), {}, 0
    rollout.sampling_params = SimpleNamespace(n=1)
    return rollout


def generate(rollout, **metadata):
    """Two prompts, the first of them twice."""
    from verl import DataProto

    rows = [0, 0, 1]
    fields = {name: value[rows, : tiny.PROMPT_WIDTH] for name, value in tiny.padded_batch().items()}
    wanted = {name: fields[name] for name in ("input_ids", "attention_mask", "position_ids")}
    prompts = DataProto.from_dict(tensors=wanted, meta_info={"eos_token_id": 1, **metadata})
    out = rollout.generate_sequences(prompts)
    return {name: value.tolist() for name, value in out.batch.items()}


def pretend_vllm(version: str) -> None:
    """verl asks for the installed version."""
    ask = importlib.metadata.version
    importlib.metadata.version = lambda name: version if name == "vllm" else ask(name)


def main(folder: Path) -> None:
    config = folder / "config.json"
    os.environ["MSPROBE_INFER_CONFIG"] = str(config)
    config.write_text(json.dumps({"dump_path": str(folder), "step": [0, 1]}))
    rollout = rollout_of()
    ordinary = "generate 3 namespace(n=1)"

    for off in ({}, {"DUMP_ON": "1"}, {"DUMP_ON": "0", "DUMP_PHASE": "prefill"}):
        switch(**off)
        plain = generate(rollout)
        assert events == [ordinary], events
    switch(DUMP_ON="1", DUMP_PHASE="prefill")
    generate(rollout, validate=True)
    assert len(events) == 1
    assert "msprobe" not in sys.modules

    stand_ins.watch_msprobe()
    switch(DUMP_ON="1", DUMP_PHASE="prefill")
    try:
        generate(rollout_of(enforce_eager=False))
    except RuntimeError as error:
        assert "enforce_eager" in str(error)
    else:
        raise AssertionError("captured graphs are not refused")

    # each distinct prompt alone, then the ordinary rollout as it is; then msprobe asks for no more
    alone = "generate 1 detokenize=False max_tokens=1 temperature=0"
    switch(DUMP_ON="1", DUMP_PHASE="prefill")
    assert generate(rollout) == plain
    assert events == ["reset"] + ["start", alone, "stop", "step", "reset"] * 2 + [ordinary], events
    assert [ids for ids, *_ in seen[:2]] == tiny.PROMPTS
    switch(DUMP_ON="1", DUMP_PHASE="prefill")
    assert generate(rollout) == plain
    assert events == [ordinary]
    lines = [json.loads(line) for line in (folder / "rank0" / "dispatch_log.jsonl").read_text().splitlines()]
    hashes = [hashlib.sha256(",".join(map(str, prompt)).encode()).hexdigest() for prompt in tiny.PROMPTS]
    assert [line["prompt_sha256"] for line in lines] == [[one] for one in hashes]
    assert [line["token_count"] for line in lines] == [5, 3]
    assert [(line["step"], line["rank"], line["phase"]) for line in lines] == [(0, 0, "prefill"), (1, 0, "prefill")]
    assert all(len(line["request_ids"]) == 1 and "prompt_token_ids" not in line for line in lines)
    for step, prompt in enumerate(tiny.PROMPTS):
        data = json.loads((folder / f"step{step}" / "rank0" / "dump.json").read_text())["data"]
        entry = next(name for name in data if "embedding" in name)
        assert data[entry]["input_args"][0]["shape"] == [1, len(prompt)]

    # a failing prefill ends its step, and the cache is empty again
    config.write_text(json.dumps({"dump_path": str(folder), "step": []}))
    stand_ins.fail_on.append(tiny.PROMPTS[0][0])
    switch(DUMP_ON="1", DUMP_PHASE="prefill")
    try:
        generate(rollout)
    except stand_ins.Broken:
        pass
    else:
        raise AssertionError("the prefill did not fail")
    assert events == ["reset", "start", alone, "stop", "step", "reset"], events
    stand_ins.fail_on.clear()

    # LoRA: each prompt with its own request
    rollout.lora_kwargs = {"enable_lora": True}
    switch(DUMP_ON="1", DUMP_PHASE="prefill")
    assert generate(rollout) == plain
    assert events.count("step") == 2

    # the actor in the same process is left alone
    from verl import probepatch_verl

    assert not probepatch_verl.observes_log_prob(is_ref=False)
    assert not probepatch_verl.captures("update_actor")


if __name__ == "__main__":
    cpu.flash_attention_stub()
    cpu.memory_functions()
    stand_ins.install()
    pretend_vllm("0.11.0")
    stand_ins.one_process_group()
    main(Path(sys.argv[1]))
