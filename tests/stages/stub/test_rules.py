"""Every rule on real tensors, against what it means written out number by number.

PROBEPATCH_REAL_PYTHON   an interpreter with torch
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import stages.stub

pytestmark = pytest.mark.real
PYTHON = os.environ.get("PROBEPATCH_REAL_PYTHON")
RULES = Path(stages.stub.__file__).parent / "rules"
CHECKS = """
import importlib.util, itertools, sys, torch
def rule(name):
    spec = importlib.util.spec_from_file_location(name, f"{sys.argv[1]}/{name}.py")
    module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)
    return lambda value, rank=0, **keys: module.apply(torch, value, keys, rank)
def same(one, other):
    assert one.dtype == other.dtype and torch.equal(one, other), (one, other)
def refused(call, word):
    try:
        call()
    except ValueError as error:
        assert word in str(error), error
        return
    raise AssertionError(f"not refused: {word}")
names = "rename slice reshape permute cast add_batch drop_batch concat split_tp split_qkv fuse_qkv split_gate_up"
names += " fuse_gate_up sum zeros"
R = {name: rule(name) for name in names.split()}
x = torch.randn(2, 3, 8)

same(R["rename"](x), x)
same(R["slice"](x, axis=-1, start=2, stop=5), x[..., 2:5]); same(R["slice"](x, axis=1, start=1), x[:, 1:])
for keys in (dict(axis=3), dict(axis=-4), dict(axis=0, start=2), dict(axis=0, stop=3), dict(axis=2, start=5, stop=5)):
    refused(lambda: R["slice"](x, **keys), "")
same(R["reshape"](x, shape=[6, -1]), x.reshape(6, 8))
for shape in ([5], [-1, -1], [0, 48], [2, 3, 9]):
    refused(lambda: R["reshape"](x, shape=shape), "does not become")
same(R["permute"](x, order=[1, 0, 2]), x.transpose(0, 1))
for order in ([0, 1], [0, 0, 1], [0, 1, 3]):
    refused(lambda: R["permute"](x, order=order), "each axis")
same(R["add_batch"](x[0]), x[:1])
same(R["add_batch"](x, axis=3), x[..., None])
refused(lambda: R["add_batch"](x, axis=4), "no place")
same(R["drop_batch"](x[:1]), x[0]); same(R["drop_batch"](x[:, :1], axis=1), x[:, 0])
refused(lambda: R["drop_batch"](x), "not of size 1"); refused(lambda: R["drop_batch"](torch.tensor(1.0)), "not of size 1")
same(R["concat"]([x, x[:1]], axis=0), torch.cat([x, x[:1]])); same(R["concat"]([x], axis=0), x)
refused(lambda: R["concat"]([x, x[:1]], axis=1), "do not fit"); refused(lambda: R["concat"]([x, x.double()], axis=1), "dtypes")
refused(lambda: R["concat"]([x], axis=3), "no axis")
same(torch.cat([R["split_tp"](x, rank, axis=-1, size=4) for rank in range(4)], -1), x)
same(R["split_tp"](x, 5, axis=-1, size=4), x[..., 2:4]); same(R["split_tp"](x, 5, axis=-1, size=4, index=3), x[..., 6:])
refused(lambda: R["split_tp"](x, 0, axis=1, size=2), "equal parts")
refused(lambda: R["split_tp"](x, 0, axis=0, size=2, index=2), "no part")
same(R["sum"]([x, x * 2, x]), x + x * 2 + x)
refused(lambda: R["sum"]([x, x[:1]]), "alike")
refused(lambda: R["sum"]([x, x.double()]), "alike")
same(R["zeros"](x), x * 0 + 0.0)
same(R["cast"](x, dtype="bfloat16"), x.bfloat16())
same(R["cast"](torch.arange(3), dtype="int32"), torch.arange(3, dtype=torch.int32))
same(R["cast"](torch.tensor([-float("inf"), 1.0]), dtype="float16"), torch.tensor([-float("inf"), 1.0]).half())
refused(lambda: R["cast"](torch.tensor([1e6]), dtype="float16"), "too large")
refused(lambda: R["cast"](x, dtype="int64"), "cannot hold")
refused(lambda: R["cast"](torch.tensor([300]), dtype="int8"), "cannot hold")
refused(lambda: R["cast"](torch.tensor([2]), dtype="bool"), "cannot hold")
refused(lambda: R["cast"](torch.tensor([(1 << 24) + 1]), dtype="float32"), "cannot hold")

for kv, each, head, axis in itertools.product((1, 2, 3), (1, 2, 4), (1, 4), (-1, 0, 1)):
    q = kv * each
    def heads(count, base):  # every number says which head and place it is
        flat = torch.tensor([base + 100 * h + d for h in range(count) for d in range(head)], dtype=torch.float32)
        shape = [1, 1, 1]; shape[axis] = count * head
        return flat.reshape(shape).expand([2 if n != axis % 3 else count * head for n in range(3)]).contiguous()
    Q, K, V = heads(q, 10000), heads(kv, 20000), heads(kv, 30000)
    keys = dict(q_heads=q, kv_heads=kv, head_dim=head, axis=axis)
    for layout in ("contiguous", "interleaved"):
        if layout == "contiguous":
            want = torch.cat([Q, K, V], axis)
        else:
            pick = lambda t, h: t.narrow(axis, h * head, head)
            groups = [[*[pick(Q, g * each + n) for n in range(each)], pick(K, g), pick(V, g)] for g in range(kv)]
            want = torch.cat([part for group in groups for part in group], axis)
        fused = R["fuse_qkv"]([Q, K, V], layout=layout, **keys)
        same(fused, want)
        for part, wanted in zip("qkv", (Q, K, V)):
            same(R["split_qkv"](fused, part=part, layout=layout, **keys), wanted)
keys = dict(q_heads=4, kv_heads=2, head_dim=1, axis=-1)
same(R["split_qkv"](x, part="k", layout="contiguous", **keys), x[..., 4:6])
refused(lambda: R["split_qkv"](x, part="k", layout="contiguous", **{**keys, "head_dim": 2}), "make 16")
refused(lambda: R["split_qkv"](x, part="q", layout="interleaved", q_heads=4, kv_heads=2, head_dim=1, axis=5), "no axis")
refused(lambda: R["split_qkv"](torch.zeros(9), part="q", layout="interleaved", q_heads=3, kv_heads=3, head_dim=2), "make 18")
refused(lambda: R["split_qkv"](torch.zeros(9), part="q", layout="interleaved", q_heads=5, kv_heads=2, head_dim=1), "groups")
refused(lambda: R["fuse_qkv"]([x, x, x], layout="contiguous", **keys), "need")
h = torch.zeros(2, 2)
refused(lambda: R["fuse_qkv"]([torch.zeros(2, 4), h, h.double()], layout="contiguous", **keys), "dtypes")

for axis in (-1, 0, 1):
    gate, up = torch.randn(2, 4, 6), torch.randn(2, 4, 6)
    want = {"contiguous": torch.cat([gate, up], axis)}
    turns = [one.narrow(axis, n, 1) for n in range(gate.shape[axis]) for one in (gate, up)]
    want["interleaved"] = torch.cat(turns, axis)
    for layout, fused in want.items():
        same(R["fuse_gate_up"]([gate, up], layout=layout, axis=axis), fused)
        same(R["split_gate_up"](fused, part="gate", layout=layout, axis=axis), gate)
        same(R["split_gate_up"](fused, part="up", layout=layout, axis=axis), up)
refused(lambda: R["split_gate_up"](x, part="up", layout="contiguous", axis=1), "halves")
refused(lambda: R["fuse_gate_up"]([x, x[:1]], layout="contiguous"), "gate is")
print("checked")
"""


def test_rules():
    if PYTHON is None:
        pytest.skip("PROBEPATCH_REAL_PYTHON names no interpreter")
    done = subprocess.run([PYTHON, "-c", CHECKS, str(RULES)], capture_output=True, text=True, check=False)
    assert done.stdout.strip().endswith("checked"), done.stderr[-3000:]
