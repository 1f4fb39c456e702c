"""A `load` round under real msprobe: one step, then the payload's own closing line, then a forward that belongs to nobody.

    python drive_load.py PAYLOAD FOLDER

The frameworks' modules that a payload imports are stood in for; prints as JSON what the forwards gave.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import types
from pathlib import Path
from types import SimpleNamespace

import torch

SAMPLE = {"request_id": "r", "prompt_sha256": None, "prompt_tokens": 2, "prompt_ids": [3, 4], "token_count": 2}
LAYER = "Module.layers.1.Linear.forward.0"


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _layer in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def stand_in(name: str, **members) -> None:
    """A module, and the packages above it."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:end]), types.ModuleType(parts[end - 1]))
    vars(sys.modules[name]).update(members)


def payload(path: Path):
    stand_in("verl.protocol", DataProto=type("DataProto", (), {}))
    stand_in("verl.utils.device", get_torch_device=None)
    stand_in("vllm.logger", init_logger=lambda name: None)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    module.PARAMETERS = dict.fromkeys(("actor_config", "infer_config"), ("MSPROBE_CONFIG", None))
    return module


def close(module, model) -> None:
    """The line of the step that just ended, as the patched sites write it."""
    lines = {
        "probepatch_sglang": lambda: module.log_step({}, None),
        "probepatch_slime": lambda: module.log_micro_batch(model, [SAMPLE]),
        "probepatch_transformers": lambda: module._log_step({}),
        "probepatch_verl": lambda: module.log_micro_batch(marked(module)),
        "probepatch_verl_rollout": lambda: module.log_prefill([3, 4], ["r"]),
        "probepatch_vllm": lambda: module.log_step([SimpleNamespace(**share(module))]),
    }
    lines[module.__name__]()


def marked(module) -> dict:
    module._requests[:] = [SAMPLE]
    ones = torch.ones(1, 2, dtype=torch.int64)
    return {module.ROW: torch.tensor([0]), "input_ids": ones, "attention_mask": ones}


def share(module) -> dict:
    return {
        "request_id": "r",
        "prompt": module.Prompt([3, 4], 2, None),
        "computed": 0,
        "scheduled": 2,
        "phase": "prefill",
    }


def main(path: Path, folder: Path) -> None:
    from msprobe.pytorch import PrecisionDebugger

    config = folder / "config.json"
    names = ("MSPROBE_CONFIG", "MSPROBE_INFER_CONFIG")
    os.environ |= {"DUMP_ON": "1"} | dict.fromkeys(names, str(config))
    source = folder / "source" / "step0" / "proc0" / "dump_tensor_data"  # no process group here
    source.mkdir(parents=True)
    torch.save(torch.full((2, 4), 7.0), source / f"{LAYER}.input.0.pt")
    load = {"path": str(folder / "source"), "modules": [LAYER], "step": [], "rank": []}
    common = {"task": "tensor", "level": "L0", "dump_path": str(folder / "dump"), "rank": [], "step": [0]}
    config.write_text(json.dumps(common | {"tensor": {}, "load": load | {"dump_after_load": True}}))
    torch.manual_seed(0)
    model, given = Model().eval(), torch.ones(2, 4)
    with torch.no_grad():
        plain, overridden = model(given), model.layers[2](model.layers[1](torch.full((2, 4), 7.0)))
        module = payload(path)
        PrecisionDebugger(config_path=str(config))
        PrecisionDebugger.start(model=model)
        stubbed = model(given)
        PrecisionDebugger.stop()
        PrecisionDebugger.step()
        close(module, model)
        after = model(given)
    seen = {"stubbed": torch.equal(stubbed, overridden), "after": torch.equal(after, plain)}
    print(json.dumps(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
