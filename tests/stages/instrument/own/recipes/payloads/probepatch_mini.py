"""Leaves a folder as msprobe does, in the dump_path of the config that MSPROBE_ACTOR_CONFIG names."""

import json
import os

PARAMETERS: dict = {}  # probepatch: parameters


def prompts(batch):
    return batch


def dump():
    if os.environ.get("DUMP_ON", "0") == "0":
        return
    variable, default = PARAMETERS["config"]
    with open(os.environ.get(variable) or default, encoding="utf-8") as file:
        folder = os.path.join(json.load(file)["dump_path"], "step0", "rank0")
    os.makedirs(folder)
    with open(os.path.join(folder, "dump.json"), "w", encoding="utf-8") as file:
        json.dump({"task": "tensor", "level": "L0", "data": {}}, file)
