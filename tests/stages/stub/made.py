"""Small dumps as msprobe leaves them, with tensors of the stand-in for torch."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

STANDIN = Path(__file__).with_name("standin")
LAYER = "Module.model.layers.1.{}.forward.0"
TRAIN, INFER = LAYER.format("FSDPQwen2DecoderLayer"), LAYER.format("Qwen2DecoderLayer")
NUMBERS = (0.5, -1.0, 2.0, 4.0, 0.25, 8.0)


def save(path: Path, numbers: Sequence[float] = NUMBERS, shape: Sequence[int] = (1, 2, 3)) -> Path:
    """A .pt file of the stand-in."""
    return save_text(path, json.dumps([list(numbers), list(shape), "torch.float32"]))


def save_text(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data.json", text)
    return path


def tensor(shape: Sequence[int] = (1, 2, 3), dtype: str = "torch.float32") -> dict[str, Any]:
    return {
        "type": "torch.Tensor",
        "dtype": dtype,
        "shape": list(shape),
        "Max": 1.0,
        "Min": 0.0,
        "Mean": 0.5,
        "Norm": 1.0,
    }


def entry(*inputs: Any, **kwargs: Any) -> dict[str, Any]:
    return {"input_args": list(inputs), "input_kwargs": kwargs, "output": [tensor()], "parameters": {}}


def dump(
    folder: Path, entries: Mapping[str, Any], place: str = "step0/rank0", task: str = "tensor", level: str = "L0"
) -> Path:
    """One dump.json below ``folder``; gives its dump_tensor_data."""
    path = folder / place / "dump.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    head = {
        "task": task,
        "level": level,
        "framework": "pytorch",
        "dump_data_dir": str(path.parent / "dump_tensor_data"),
    }
    path.write_text(json.dumps({**head, "data": dict(entries)}))
    (path.parent / "dump_tensor_data").mkdir(exist_ok=True)
    return path.parent / "dump_tensor_data"


def sides(root: Path, infer_place: str = "step0/proc77") -> tuple[Path, Path]:
    """The dump folders of both sides: the training side in a group, with a batch axis; the inference side without either."""
    train, infer = root / "dump/train", root / "dump/infer"
    layer = entry(tensor(), None, position_ids=tensor([1, 2], "torch.int64"), position_embeddings=[tensor(), tensor()])
    data = dump(train, {TRAIN: layer, "Module.model.norm.FSDPQwen2RMSNorm.forward.0": entry(tensor())})
    save(data / f"{TRAIN}.input.0.pt", [0.0] * 6)
    data = dump(infer, {INFER: entry(tensor([2, 3]))}, infer_place)
    save(data / f"{INFER}.input.0.pt", shape=[2, 3])
    return train, infer


def instruction(path: Path, *modules: Mapping[str, Any], **more: Any) -> Path:
    """The usual one, changed by what is given; a key set to None is left out."""
    usual = {
        "round": 1,
        "target_side": "train",
        "source_side": "infer",
        "isolate_boundary": "what goes into layer 1",
        "dump_after_load": True,
        "modules": [dict(one) for one in modules or (module(),)],
    }
    path.write_text(json.dumps({key: value for key, value in {**usual, **more}.items() if value is not None}))
    return path


def module(**more: Any) -> dict[str, Any]:
    usual = {
        "target": TRAIN,
        "argument": "input.0",
        "source": f"step0/proc77/dump_tensor_data/{INFER}.input.0.pt",
        "transform": [{"rule": "rename"}, {"rule": "add_batch"}],
    }
    return {key: value for key, value in {**usual, **more}.items() if value is not None}


def python(folder: Path, load: bool = True, msprobe: bool = True) -> Path:
    """An interpreter with the stand-in for torch, and with a msprobe that takes every config."""
    site = folder / "site"
    site.mkdir(exist_ok=True)
    if msprobe:
        package = site / "msprobe"
        (package / "pytorch/dump/module_load").mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "pytorch/__init__.py").write_text(
            "import json\nclass PrecisionDebugger:\n    def __init__(self, config_path): json.load(open(config_path))\n"
        )
        for part in ("dump", *(["dump/module_load"] if load else [])):
            (package / "pytorch" / part / "__init__.py").touch()
        if load:
            (package / "pytorch/dump/module_load/tensor_loader.py").touch()
        info = site / "mindstudio_probe-26.2.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mindstudio-probe\nVersion: 26.2.0\n")
    path = folder / "python"
    path.write_text(f'#!/bin/sh\nPYTHONPATH={site}:{STANDIN} exec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return path
