"""verl's response-segment difference on a mask without a token: not measured where dumps are on, else as it was.

python debug_metrics.py PATCHED
"""

from __future__ import annotations

import math
import os
import sys

import cpu
import torch


def metrics(mask: list[list[int]]):
    from verl import DataProto
    from verl.utils.debug.metrics import calculate_debug_metrics

    probs = torch.tensor([[-0.5, -1.0, -2.0], [-0.1, -0.2, -0.3]])
    fields = {"rollout_log_probs": probs, "old_log_probs": probs * 1.1, "response_mask": torch.tensor(mask)}
    return calculate_debug_metrics(DataProto.from_dict({**fields, "responses": torch.ones(2, 3, dtype=torch.int64)}))


def main(patched: bool) -> None:
    nothing = [[0, 0, 0], [0, 0, 0]]
    measured = metrics([[1, 1, 0], [1, 1, 1]])
    assert measured["training/rollout_probs_diff_valid"] == 1
    os.environ["DUMP_ON"] = "1"
    assert metrics([[1, 1, 0], [1, 1, 1]]) == measured
    missing = metrics(nothing)
    assert missing.keys() == measured.keys()
    assert missing.pop("training/rollout_probs_diff_valid") == 0
    assert all(math.isnan(value) for value in missing.values()), missing
    os.environ["DUMP_ON"] = "0"
    if patched:  # off: an error, as published; from 0.8 on verl answers like this itself
        try:
            metrics(nothing)
        except (RuntimeError, IndexError):
            return
        raise AssertionError("switched off, something changed")


if __name__ == "__main__":
    cpu.flash_attention_stub()
    cpu.platform()
    main(sys.argv[1] == "patched")
