"""What verl needs to run its training workers without an accelerator. Nothing here touches verl's arithmetic."""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from contextlib import contextmanager

import torch


def environment(port: int) -> None:
    """One process, gloo."""
    os.environ.update(
        MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", LOCAL_WORLD_SIZE="1"
    )
    os.environ.setdefault("VERL_ENGINE_DEVICE", "cuda")  # which engine class is looked up; the device stays the CPU


def memory_functions() -> None:
    for name in ("max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved"):
        setattr(torch.cpu, name, lambda *a, **k: 0)
    for name in ("empty_cache", "reset_peak_memory_stats", "ipc_collect"):
        setattr(torch.cpu, name, lambda *a, **k: None)
    torch.cpu.get_device_name = lambda *a, **k: "cpu"
    torch.cpu.mem_get_info = lambda *a, **k: (1, 1)


def platform() -> None:
    """verl 0.9 asks a platform object, and has none for a CPU."""
    if importlib.util.find_spec("verl.plugin") is None:
        return
    from verl.plugin.platform import PlatformBase, set_platform

    answers = {
        "is_available": True,
        "current_device": "cpu",
        "device_count": 1,
        "set_device": None,
        "synchronize": None,
        "manual_seed": None,
        "manual_seed_all": None,
        "set_allocator_settings": None,
        "empty_cache": None,
        "get_device_capability": (None, None),
        "communication_backend_name": "gloo",
        "visible_devices_envvar": "CUDA_VISIBLE_DEVICES",
        "profiler_start": None,
        "profiler_stop": None,
        "ray_resource_name": "CPU",
        "ray_noset_envvars": [],
        "is_ipc_supported": False,
        "cudart": None,
    }

    def answer(value):
        return lambda self, *a, **k: value

    members: dict = {name: answer(value) for name, value in answers.items()}
    members |= {"device_name": "cpu", "vendor_name": "cpu", "device_module": torch.cpu}
    members["nvtx_range"] = contextmanager(lambda self, message: iter([None]))
    set_platform(type("PlatformCPU", (PlatformBase,), members)())


def flash_attention_stub() -> None:
    """flash_attn.bert_padding in plain torch: verl before 0.9 imports these four functions from there."""
    stub = types.ModuleType("flash_attn.bert_padding")

    def index_first_axis(rows, indices):
        return rows[indices]

    def unpad_input(hidden_states, attention_mask):
        lengths = attention_mask.sum(dim=-1, dtype=torch.int32)
        indices = attention_mask.flatten().nonzero().flatten()
        offsets = torch.nn.functional.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0))
        return hidden_states.flatten(0, 1)[indices], indices, offsets, int(lengths.max()), lengths

    def pad_input(hidden_states, indices, batch, seqlen):
        out = hidden_states.new_zeros(batch * seqlen, *hidden_states.shape[1:])
        out[indices] = hidden_states
        return out.unflatten(0, (batch, seqlen))

    def rearrange(tensor, pattern, **axes):
        import einops

        return einops.rearrange(tensor, pattern, **axes)

    for function in (index_first_axis, unpad_input, pad_input, rearrange):
        setattr(stub, function.__name__, function)
    sys.modules[stub.__name__] = stub


def attention_functions() -> None:
    """verl chooses these by cuda or npu and has no third branch: in attention_utils (0.6 on) or in dp_actor itself."""
    stub = sys.modules["flash_attn.bert_padding"]
    names = ("index_first_axis", "pad_input", "rearrange", "unpad_input")
    try:
        from verl.utils import attention_utils
    except ImportError:
        from verl.workers.actor import dp_actor

        for name in names:
            setattr(dp_actor, name, getattr(stub, name))
    else:
        attention_utils._get_attention_functions = lambda: tuple(getattr(stub, name) for name in names)


def sdpa_only() -> None:
    """verl up to 0.6.0 names flash attention in the code, not in its configuration."""
    from transformers import AutoConfig, AutoModelForCausalLM

    for loader in (AutoConfig, AutoModelForCausalLM):
        original = loader.from_pretrained

        def from_pretrained(*args, _original=original, **kwargs):
            return _original(*args, **kwargs | {"attn_implementation": "sdpa"})

        loader.from_pretrained = from_pretrained


def register_engines() -> None:
    """verl 0.7 and 0.8 register the FSDP engine for cuda and npu only."""
    from verl.workers.engine import EngineRegistry

    for backends in EngineRegistry._engines.values():
        for devices in backends.values():
            if isinstance(devices, dict) and "cuda" in devices:
                devices.setdefault("cpu", devices["cuda"])


def fsdp1_on_cpu() -> None:
    """FSDP1 refuses to broadcast a CPU module's parameters; one process has nothing to broadcast."""
    from torch.distributed.fsdp import _init_utils

    _init_utils._check_module_states_for_sync_module_states = lambda module_states: None
