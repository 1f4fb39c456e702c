"""What each module of a built model holds as plain attributes: the list that `probepatch params check --modules` reads.

Copy this file next to the job, and call it where the model has been built::

    from list_modules import write_modules
    write_modules(model, "train", "modules.json")     # on the other side: "infer", into the same file or one of its own

Or let it build the model by itself, without its weights::

    python list_modules.py train modules.json transformers MODEL_FOLDER
    python list_modules.py infer modules.json vllm MODEL_FOLDER [SETTINGS]

SETTINGS are the engine's, as JSON, the same as the job's: '{"dtype": "float32", "gpu_memory_utilization": 0.5}'.

Of several ranks the first writes. No tensor is read and nothing of the model is changed.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import sys
from typing import Any

SIDES = ("train", "infer")
_SKIPPED = ("training", "call_super_init", "dump_patches")


def module_list(model: Any) -> dict[str, dict[str, Any]]:
    """{path: {attribute: value}} of every module that holds a number, a flag or a word; its class as ``class``."""
    found = {}
    for path, module in model.named_modules():
        plain = {
            name: value
            for name, value in vars(module).items()
            if not name.startswith("_") and name not in _SKIPPED and _is_plain(value)
        }
        found[path or "."] = {"class": type(module).__name__, **plain}
    return found


def _is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value))


def write_modules(model: Any, side: str, path: str) -> None:
    """Put this side's list into the file; what the other side wrote stays."""
    if _rank() == 0:
        _write(module_list(model), side, path)


def _rank() -> int:
    torch = sys.modules.get("torch")
    spread = getattr(torch, "distributed", None)
    return int(spread.get_rank()) if spread is not None and spread.is_available() and spread.is_initialized() else 0


def _write(modules: dict[str, dict[str, Any]], side: str, path: str) -> None:
    assert side in SIDES, side
    data = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    data[side] = modules
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(data, file, indent=1, sort_keys=True)
    os.replace(path + ".part", path)


# --- models that nobody else builds -----------------------------------------------------------------------------------


def _transformers(path: str, settings: dict[str, Any]) -> dict[str, dict[str, Any]]:
    torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
    config = transformers.AutoConfig.from_pretrained(path, local_files_only=True)
    with torch.device("meta"):
        return module_list(transformers.AutoModelForCausalLM.from_config(config, **settings))


def _vllm(path: str, settings: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """In one process; with ``tensor_parallel_size`` in several, of which the first is asked."""
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    os.environ.setdefault("VLLM_ALLOW_INSECURE_SERIALIZATION", "1")  # our own function goes to the workers
    vllm = importlib.import_module("vllm")
    small = {"enforce_eager": True, "max_model_len": 64, "max_num_seqs": 1, "skip_tokenizer_init": True}
    engine = vllm.LLM(model=path, **({**small, "load_format": "dummy"} | settings))
    found: dict[str, dict[str, Any]] = engine.apply_model(module_list)[0]
    return found


LOADERS = {"transformers": _transformers, "vllm": _vllm}


def main(given: dict[str, Any]) -> dict[str, Any]:
    """``given``: ``loader``, ``model`` and ``settings``. Gives ``modules``, or what was raised."""
    try:
        return {"modules": LOADERS[given["loader"]](given["model"], given["settings"])}
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the side's code raises is told in one line
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    if len(sys.argv) not in (5, 6) or sys.argv[1] not in SIDES or sys.argv[3] not in LOADERS:
        sys.exit("python list_modules.py train|infer FILE transformers|vllm MODEL_FOLDER [SETTINGS]")
    _write(LOADERS[sys.argv[3]](sys.argv[4], json.loads((sys.argv[5:] or ["{}"])[0])), sys.argv[1], sys.argv[2])
