"""Stands in for what slime and vime import and a CPU does not have: Megatron, ray, sglang, msprobe, ….

A module of the names below has every attribute that is asked for, as an empty class; what the code under test really
calls is given here with one rank and a plain schedule.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from typing import Any, ClassVar

import torch

NAMES = ["megatron", "ray", "torch_memory_saver", "transformers", "sglang", "sglang_router", "vllm_router", "msprobe"]
NAMES += [
    "wandb",
    "pybase64",
    "PIL",
    "tensorboard",
    "huggingface_hub",
    "mbridge",
    "numba",
    "qwen_vl_utils",
    "pylatexenc",
]
NAMES += ["httpx", "datasets", "tensorboardX", "omegaconf"]
OWN = ["update_weight", "megatron_patch", "checkpoint", "hf_checkpoint_saver", "initialize", "model_provider"]
OWN = [*(f"backends.megatron_utils.{name}" for name in (*OWN, "stateless_adam"))]
OWN += ["backends.sglang_utils", "backends.vllm_utils", "rollout.rm_hub"]


class Blank:
    """Anything: callable, subscriptable, usable as a decorator and as a base class."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __init_subclass__(cls, **_: Any) -> None: ...

    def __class_getitem__(cls, _: Any) -> type:
        return cls

    def __call__(self, *arguments: Any, **_: Any) -> Any:
        return arguments[0] if len(arguments) == 1 and callable(arguments[0]) else self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Blank()


class Module(types.ModuleType):
    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (Blank,), {})
        setattr(self, name, made)
        return made


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, package: str) -> None:
        self.names = (*NAMES, *(f"{package}.{name}" for name in OWN))

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.startswith("megatron.bridge"):
            raise ModuleNotFoundError(name)
        if any(name == stub or name.startswith(stub + ".") for stub in self.names):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        return Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None: ...


def schedule(
    *, forward_step_func: Any, data_iterator: Any, model: Any, num_microbatches: int, forward_only: bool, **options: Any
) -> list[Any]:
    """Megatron's forward without a pipeline."""
    assert forward_only
    collected = []
    for _ in range(num_microbatches):
        output, finish = forward_step_func(data_iterator[0], model[0])
        if options.get("collect_non_loss_data"):
            collected.append(finish(output, non_loss_data=True))
        else:
            collected.append(finish(output)[1])
    return collected


class Parts(types.SimpleNamespace):
    """Megatron's mpu on one rank."""

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_rank"):
            return lambda **_: 0
        if name.endswith("_world_size"):
            return lambda **_: None if "virtual" in name else 1
        if name.startswith("is_pipeline_"):
            return lambda **_: True
        return lambda **_: None


def cross_entropy(logits: torch.Tensor, tokens: torch.Tensor, _group: Any) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(logits.squeeze(1), tokens.squeeze(1), reduction="none").unsqueeze(1)


def install(package: str) -> Finder:
    finder = Finder(package)
    sys.meta_path.insert(0, finder)
    import megatron.core
    import megatron.core.fusions.fused_cross_entropy as fused
    import megatron.core.packed_seq_params as packed
    import megatron.core.pipeline_parallel as parallel
    import megatron.core.utils as utils
    import ray

    megatron.core.mpu = sys.modules["megatron.core.mpu"] = Parts()  # type: ignore[assignment]
    fused.fused_vocab_parallel_cross_entropy = cross_entropy
    packed.PackedSeqParams = types.SimpleNamespace
    parallel.get_forward_backward_func = lambda: schedule
    utils.get_model_config = lambda _model: types.SimpleNamespace()
    ray.remote = lambda *things, **_: things[0] if things else (lambda thing: thing)
    ray.put = ray.get = lambda thing, **_: thing
    torch.Tensor.cuda = lambda self, *_, **__: self  # type: ignore[method-assign]
    torch.cuda.current_device = lambda: "cpu"
    torch.distributed.get_rank = lambda *_: 0
    torch.distributed.all_reduce = lambda *_, **__: None
    return finder


class Debugger:
    """msprobe's, as far as it is called: notes what happens to it."""

    events: ClassVar[list[str]] = []
    arguments: ClassVar[dict[str, Any]] = {}
    _instance: Any = None

    def __init__(self, **arguments: Any) -> None:
        assert Debugger._instance is None
        Debugger._instance, Debugger.arguments = self, arguments

    @classmethod
    def start(cls, model: torch.nn.Module) -> None:
        assert cls._instance is not None and isinstance(model, torch.nn.Module)
        cls.events.append("start")

    @classmethod
    def stop(cls) -> None:
        cls.events.append("stop")

    @classmethod
    def step(cls) -> None:
        cls.events.append("step")


def seed_all(mode: bool) -> None:
    assert mode
    Debugger.events.append("seed")
    torch.manual_seed(1234)


def offer_msprobe() -> None:
    module = types.ModuleType("msprobe.pytorch")
    module.PrecisionDebugger, module.seed_all = Debugger, seed_all  # type: ignore[attr-defined]
    parent = types.ModuleType("msprobe")
    parent.pytorch = module  # type: ignore[attr-defined]
    sys.modules.update({"msprobe": parent, "msprobe.pytorch": module})
