"""A training step whose forward, or whose backward, fails: its msprobe step ends at once, and nothing else begins.

python failing_update.py KIND MODEL
"""

from __future__ import annotations

import importlib
import socket
import sys
from pathlib import Path

import cpu
import torch
import worker as drive_worker


class Broken(Exception):
    """It failed because it was told to."""


def fail(*_arguments):
    raise Broken


def main(kind: str, model: Path) -> None:
    torch.set_num_threads(1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        cpu.environment(free.getsockname()[1])
    drive = importlib.import_module(kind)
    torch.distributed.init_process_group("gloo")
    worker = drive.build(model, 1)
    layers = {name: module for name, module in drive.module(worker).named_modules() if name.endswith("layers.1")}
    (layer,) = layers.values()
    old_log_probs, _entropy = drive.log_prob(worker)
    assert "msprobe" not in sys.modules
    for number, hooked in enumerate((layer.register_forward_pre_hook, layer.register_full_backward_hook)):
        hook = hooked(fail)
        try:
            drive.update(worker, old_log_probs)
        except Broken as broken:  # with its traceback, which holds the frames that it left
            state = drive_worker.debugger_state()
            assert state == {"built": True, "running": False, "steps": number + 1}, (number, state)
            assert broken.__traceback__ is not None
        else:
            raise AssertionError("the training step did not fail")
        hook.remove()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
