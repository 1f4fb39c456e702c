"""One transformation of tensors in each file: it is checked here, and runs in a side's interpreter, where torch is.

    NEEDS, MAY   the keys that a rule needs, and those it may have: a JSON Schema for each
    TAKES        how many tensors it makes one of; None: any number. A rule without it is applied to every tensor by itself
    apply        (torch, tensor or list of tensors, the rule, the target's rank) -> tensor; raises ValueError with what is wrong

The files import nothing of ours, because only their text reaches the side.
"""

NAMES = (
    *("rename", "slice", "reshape", "permute", "cast", "add_batch", "drop_batch", "concat", "split_tp"),
    *("split_qkv", "fuse_qkv", "split_gate_up", "fuse_gate_up", "sum", "zeros"),
)
