"""Inventory of a model's tensors, written by the process that holds the model: one file for each rank.

Runs inside a training framework or an inference engine: copy it there, and after the weights were loaded, before anything is
packed for kernels, say::

    import payload_inventory
    payload_inventory.write_inventory(model)      # nothing at all, unless PROBEPATCH_INVENTORY is set

Or let it load a model by itself::

    PROBEPATCH_INVENTORY=/folder python payload_inventory.py transformers MODEL_FOLDER
    PROBEPATCH_INVENTORY=/folder python payload_inventory.py vllm MODEL_FOLDER [TENSOR_PARALLEL_RANKS [SETTINGS]]
    PROBEPATCH_INVENTORY=/folder python payload_inventory.py file FILE.pt     # torch.load with weights_only=True

SETTINGS are the engine's, as JSON, the same as the job's: '{"dtype": "float32", "gpu_memory_utilization": 0.5}'.

Switches, read from the environment of each process:

    PROBEPATCH_INVENTORY       the folder to write to. Unset, empty and 0: nothing is written.
    PROBEPATCH_INVENTORY_DATA  1: the tensors are saved, too (rankN.safetensors); else only their SHA-256.

Needs torch and nothing else. The tensors are not changed, and copied one at a time if at all.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import json
import os
import sys
import zipfile
from collections.abc import Iterator
from typing import Any

FORMAT = "probepatch/inventory/1"
NAMES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32", "int16": "I16",
    "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8", "bool": "BOOL", "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0", "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
}  # fmt: skip
CUT_ALONG = {  # modules of vLLM and SGLang that hold one piece for each tensor-parallel rank: the weight's dimension
    "ColumnParallelLinear": 0, "RowParallelLinear": 1, "VocabParallelEmbedding": 0,
}  # fmt: skip


def folder() -> str:
    """Where to write; empty: nowhere."""
    value = os.environ.get("PROBEPATCH_INVENTORY", "").strip()
    return "" if value == "0" else value


def write_inventory(model: Any, parallel: dict[str, int] | None = None) -> str | None:
    """Write ``inventory-rankN.jsonl`` for this process; returns its path, or None when the switch is off.

    ``model`` is a module, or a list of them (the chunks of a virtual pipeline). ``parallel`` overrides what is found out about
    the ranks.
    """
    if not folder():
        return None
    torch = importlib.import_module("torch")
    ranks = dict(_ranks(), **(parallel or {}))
    os.makedirs(folder(), exist_ok=True)
    chunks = list(model) if isinstance(model, (list, tuple)) else [model]
    with torch.no_grad():
        return _write([one for chunk in chunks for one in _tensors(chunk, ranks)], ranks, _config(chunks[0]))


# --- what there is ----------------------------------------------------------------------------------------------------


def _tensors(model: Any, ranks: dict[str, int]) -> Iterator[tuple[dict[str, Any], Any]]:
    """(entry, tensor) of each parameter and buffer, tied ones included."""
    owners = dict(model.named_modules(remove_duplicate=False))
    layers = _layer_numbers(owners)
    seen: dict[Any, str] = {}
    for kind, named in (("parameter", model.named_parameters), ("buffer", model.named_buffers)):
        for name, tensor in named(remove_duplicate=False):
            owner, _dot, last = name.rpartition(".")
            module = owners.get(owner, model)
            local, shard = _local(tensor)
            entry = _entry(_renumbered(name, layers), kind, local, seen)
            entry["persistent"] = last not in getattr(module, "_non_persistent_buffers_set", ())
            entry["class"] = type(module).__name__
            entry["shard"] = shard or _shard(tensor, module, last, ranks)
            yield entry, local


def _entry(name: str, kind: str, tensor: Any, seen: dict[Any, str]) -> dict[str, Any]:
    """What is known of a tensor by itself; ``seen`` are the names of the memory that had its turn."""
    shape, stride = list(tensor.shape), list(tensor.stride())
    alias = None
    if not tensor.is_meta and tensor.numel():
        memory = (tensor.data_ptr(), _dtype(tensor), *shape, *stride)
        alias = seen.get(memory)
        seen.setdefault(memory, name)
    entry = {"name": name, "kind": kind, "persistent": True, "dtype": _dtype(tensor), "shape": shape, "stride": stride}
    return dict(entry, device=str(tensor.device), shard=None, alias_of=alias)


def _dtype(tensor: Any) -> str:
    name = str(tensor.dtype).rpartition(".")[2]
    return NAMES.get(name, name)


def _local(tensor: Any) -> tuple[Any, dict[str, Any] | None]:
    """What this rank holds, and where it belongs when it is a DTensor cut along one dimension of a one-dimensional mesh."""
    placements = getattr(tensor, "placements", None)
    if placements is None:
        return getattr(tensor, "data", tensor), None
    mesh = tensor.device_mesh
    local = tensor.to_local()
    cut = [(number, one.dim) for number, one in enumerate(placements) if one.is_shard()]
    if any(one.is_partial() for one in placements) or len(cut) > 1:
        return local, {"unsupported": "placements " + ", ".join(map(str, placements))}
    if not cut:
        return local, None
    number, dim = cut[0]
    return local, {"dim": dim, "index": mesh.get_local_rank(number), "count": mesh.size(number)}


def _shard(tensor: Any, module: Any, last: str, ranks: dict[str, int]) -> dict[str, Any] | None:
    """Which piece of the whole this is, from the marks of Megatron or the classes of vLLM and SGLang; None: all of it."""
    count, index = ranks.get("tp", 1), ranks.get("tp_rank", 0)
    if count < 2:
        return None
    if getattr(tensor, "tensor_model_parallel", False):
        return {"dim": int(getattr(tensor, "partition_dim", 0)), "index": index, "count": count}
    dim = next((CUT_ALONG[kind.__name__] for kind in type(module).__mro__ if kind.__name__ in CUT_ALONG), None)
    if dim is not None:  # some of these layers are on every rank as a whole, and say so
        count, index = getattr(module, "tp_size", count), getattr(module, "tp_rank", index)
        return {"dim": dim, "index": index, "count": count} if dim < tensor.dim() and count > 1 else None
    if last in ("w13_weight", "w13_bias", "w2_weight"):
        return {"dim": 2 if last == "w2_weight" else 1, "index": index, "count": count}
    return None


def _layer_numbers(owners: dict[str, Any]) -> dict[str, str]:
    """Megatron numbers the layers of each pipeline stage from 0; ``layer_number`` counts them all, from 1."""
    found = {}
    for name, module in owners.items():
        number = getattr(module, "layer_number", None)
        head, _dot, last = name.rpartition(".")
        if last.isdigit() and type(number) is int and head.endswith("layers"):
            found[name + "."] = f"{head}.{number - 1}."
    return found


def _renumbered(name: str, layers: dict[str, str]) -> str:
    for old, new in layers.items():
        if name.startswith(old):
            return new + name[len(old) :]
    return name


def _ranks() -> dict[str, int]:
    """World, rank and the sizes of the groups, of what is set up in this process."""
    torch = importlib.import_module("torch")
    found = {"world": 1, "rank": 0}
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        found = {"world": torch.distributed.get_world_size(), "rank": torch.distributed.get_rank()}
    for name in (
        "megatron.core.parallel_state",
        "vllm.distributed.parallel_state",
        "sglang.srt.distributed.parallel_state",
    ):
        state = sys.modules.get(name)
        for key, words in (
            ("tp", "tensor_model_parallel"),
            ("pp", "pipeline_model_parallel"),
            ("ep", "expert_model_parallel"),
        ):
            try:
                found[key] = int(getattr(state, f"get_{words}_world_size")())
                found[key + "_rank"] = int(getattr(state, f"get_{words}_rank")())
            except Exception:  # noqa: BLE001 (not there in this version, or not set up: then this group is not known)
                continue
    return found


def _config(model: Any) -> dict[str, Any]:
    """The whole numbers and flags of the model's config, which are needed to split fused weights."""
    config: Any = getattr(model, "config", None)
    try:
        known = config.to_dict() if hasattr(config, "to_dict") else dict(vars(config))
    except TypeError:
        return {}
    return {key: value for key, value in known.items() if isinstance(value, (bool, int)) and isinstance(key, str)}


# --- what is written --------------------------------------------------------------------------------------------------


def _write(found: list[tuple[dict[str, Any], Any]], ranks: dict[str, int], config: dict[str, Any]) -> str:
    rank = ranks["rank"]
    save = os.environ.get("PROBEPATCH_INVENTORY_DATA", "").strip() == "1"
    data = f"rank{rank}.safetensors"
    if save:
        _save(os.path.join(folder(), data), found)
    path = os.path.join(folder(), f"inventory-rank{rank}.jsonl")
    head = {
        "format": FORMAT,
        "ranks": ranks,
        "config": config,
        "data": data if save else None,
        "python": sys.version.split()[0],
    }
    with open(path + ".part", "w", encoding="utf-8") as file:
        for line in (head, *(_described(entry, tensor) for entry, tensor in found), {"end": len(found)}):
            file.write(json.dumps(line) + "\n")
    os.replace(path + ".part", path)
    return path


def _described(entry: dict[str, Any], tensor: Any) -> dict[str, Any]:
    raw = None if tensor.is_meta else _bytes(tensor)
    return dict(
        entry,
        bytes=tensor.numel() * tensor.element_size(),
        sha256=None if raw is None else hashlib.sha256(raw).hexdigest(),
    )


def _save(path: str, found: list[tuple[dict[str, Any], Any]]) -> None:
    """A safetensors file, one tensor after the other; a tied tensor is stored once."""
    head: dict[str, Any] = {}
    at, todo = 0, []
    for entry, tensor in found:
        if entry["alias_of"] or tensor.is_meta or entry["name"] in head:
            continue
        size = tensor.numel() * tensor.element_size()
        head[entry["name"]] = {"dtype": entry["dtype"], "shape": entry["shape"], "data_offsets": [at, at + size]}
        at += size
        todo.append(tensor)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".part", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in todo:
            file.write(_bytes(tensor))
    os.replace(path + ".part", path)


def _bytes(tensor: Any) -> Any:
    """The elements, row-major, as a buffer over the tensor's own memory (on the CPU), which is kept alive by it."""
    whole = tensor.detach().cpu().contiguous()
    size = whole.numel() * whole.element_size()
    if not size:
        return b""
    raw = (ctypes.c_char * size).from_address(whole.data_ptr())
    raw.owner = whole
    return raw


# --- models that nobody else loads ------------------------------------------------------------------------------------


def _transformers(path: str) -> None:
    transformers = importlib.import_module("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype="auto", local_files_only=True)
    write_inventory(model)


def _vllm(path: str, ranks: str = "1", settings: str = "{}") -> None:
    """``ranks`` of tensor parallelism, each of which writes its own."""
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    _vllm_loader()
    small = {"enforce_eager": True, "max_model_len": 64, "max_num_seqs": 1, "skip_tokenizer_init": True}
    fixed = {"load_format": "probepatch_inventory", "tensor_parallel_size": int(ranks)}
    vllm = importlib.import_module("vllm")
    vllm.LLM(model=path, **(small | json.loads(settings) | fixed))


def _vllm_loader() -> None:
    """A loader in vLLM's own register: it writes between the loading and the packing of weights for kernels."""
    loaders = importlib.import_module("vllm.model_executor.model_loader")
    default: Any = loaders.DefaultModelLoader

    class Loader(default):  # type: ignore[misc]
        def __init__(self, load_config: Any) -> None:
            load_config.load_format = "auto"
            super().__init__(load_config)

        def load_weights(self, model: Any, model_config: Any) -> None:
            super().load_weights(model, model_config)
            write_inventory(model)

    loaders.register_model_loader("probepatch_inventory")(Loader)


def _file(path: str) -> None:
    """A pickled state dict; ``weights_only`` lets nothing in it run."""
    torch = importlib.import_module("torch")
    state = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    for key in ("model", "state_dict", "module"):
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
    seen: dict[Any, str] = {}
    tensors = [(name, tensor) for name, tensor in state.items() if isinstance(tensor, torch.Tensor)]
    found = [(_entry(name, "", tensor, seen), tensor) for name, tensor in tensors]
    os.makedirs(folder(), exist_ok=True)
    _write(found, {"world": 1, "rank": 0}, {})


if __name__ == "__mp_main__" and sys.argv[1:2] == ["vllm"]:  # a worker that vLLM spawned
    _vllm_loader()
if __name__ == "__main__":
    LOADERS = {"transformers": _transformers, "vllm": _vllm, "file": _file}
    if len(sys.argv) < 3 or sys.argv[1] not in LOADERS or not folder():
        sys.exit("PROBEPATCH_INVENTORY=FOLDER python payload_inventory.py transformers|vllm|file PATH")
    LOADERS[sys.argv[1]](*sys.argv[2:])
