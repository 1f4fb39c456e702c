"""The script that runs inside a side, on real modules of torch, in one process and in two ranks."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import cli
from stages.params_tensors import payload_inventory
from stages.params_tensors.opening import open_side
from stages.params_tensors.tensors import NoTensorsError, TensorFileError
from tests.stages.params_tensors.comparing import report, verdicts
from tests.stages.params_tensors.made import save

ROOT = Path(cli.__file__).parent
SCRIPT = Path(payload_inventory.__file__)


def test_a_pickled_file_without_torch_is_a_clear_error(tmp_path):
    (tmp_path / "a.pt").write_bytes(b"")
    (tmp_path / "empty").mkdir()
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path}/stub exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (tmp_path / "stub").mkdir()
    (tmp_path / "stub/torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\")\n")
    with pytest.raises(NoTensorsError) as error:
        open_side(tmp_path / "a.pt", tmp_path / "scratch", str(python))
    assert "--torch-python" in (error.value.todo or "")
    with pytest.raises(NoTensorsError, match="does not run"):
        open_side(tmp_path / "a.pt", tmp_path / "scratch", str(tmp_path / "nowhere"))


MODEL = """
import sys, torch
sys.path.insert(0, {folder!r})
import payload_inventory
from torch import nn

class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("id_map", torch.tensor([3, 1, 2, 0]))
        self.register_buffer("inv_freq", torch.ones(2), persistent=False)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed_tokens = nn.Embedding(8, 4)
        self.lm_head = nn.Linear(4, 8, bias=False)
        self.lm_head.weight = self.embed_tokens.weight
        self.wide = nn.Parameter(torch.arange(12.0).reshape(3, 4).t())
        self.small = nn.Parameter(torch.tensor([1.0, -0.0, float("nan")]).bfloat16())
        self.scalar = nn.Parameter(torch.tensor(2.0))
        self.empty = nn.Parameter(torch.empty(0, 3))
        self.gate = Gate()

model = Model()
"""


def run(code: str, folder: Path, *arguments: str, **environment: str) -> str:
    whole = MODEL.format(folder=str(SCRIPT.parent)) + code
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PROBEPATCH_INVENTORY": str(folder), **environment}
    done = subprocess.run([sys.executable, "-c", whole, *arguments], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def lines(path: Path) -> dict[str, dict]:
    return {one["name"]: one for one in map(json.loads, path.read_text().splitlines()) if "name" in one}


def test_off_is_off(tmp_path):
    pytest.importorskip("torch")
    for value in ("", "0"):
        out = run("print(payload_inventory.write_inventory(model))", tmp_path / "out", PROBEPATCH_INVENTORY=value)
        assert out == "None\n"
    assert list(tmp_path.iterdir()) == []


def test_parameters_and_buffers_as_they_are(tmp_path):
    torch = pytest.importorskip("torch")
    run(
        "before = {k: v.clone() for k, v in model.state_dict().items()}\npayload_inventory.write_inventory(model)\n"
        "torch.save(before, sys.argv[1])",
        tmp_path / "out",
        str(tmp_path / "model.pt"),
        PROBEPATCH_INVENTORY_DATA="1",
    )
    found = lines(tmp_path / "out/inventory-rank0.jsonl")
    assert (found["gate.id_map"]["kind"], found["gate.id_map"]["persistent"]) == ("buffer", True)
    assert (found["gate.inv_freq"]["kind"], found["gate.inv_freq"]["persistent"]) == ("buffer", False)
    assert found["lm_head.weight"]["alias_of"] == "embed_tokens.weight"
    assert (found["wide"]["shape"], found["wide"]["stride"], found["small"]["dtype"]) == ([4, 3], [1, 4], "BF16")
    side = open_side(tmp_path / "out", tmp_path / "scratch")
    stored = side.leaves["wide"][0]
    assert stored.file is not None
    raw = stored.file.read_bytes()[stored.offset :][: stored.length]
    assert (
        torch.frombuffer(bytearray(raw), dtype=torch.float32).reshape(4, 3).equal(torch.arange(12.0).reshape(3, 4).t())
    )
    compared = report(tmp_path / "out", tmp_path / "model.pt")
    assert (set(verdicts(compared).values()), compared.verdict) == ({"EXACT"}, "EXACT")
    assert compared.compared == len(found) - 1


def test_hashes_are_those_of_the_saved_tensors(tmp_path):
    pytest.importorskip("torch")
    run("payload_inventory.write_inventory(model)", tmp_path / "hashes")
    run("payload_inventory.write_inventory(model)", tmp_path / "data", PROBEPATCH_INVENTORY_DATA="1")
    assert [path.name for path in (tmp_path / "hashes").iterdir()] == ["inventory-rank0.jsonl"]
    assert report(tmp_path / "hashes", tmp_path / "data").verdict == "EXACT"


def test_megatrons_marks_are_read(tmp_path):
    pytest.importorskip("torch")
    code = """
layer = nn.Module(); layer.layer_number = 7; layer.w = nn.Parameter(torch.ones(2, 2))
layer.w.tensor_model_parallel = True; layer.w.partition_dim = 1
model = nn.Module(); model.decoder = nn.Module(); model.decoder.layers = nn.ModuleList([layer])
payload_inventory.write_inventory([model], {"world": 2, "rank": 1, "tp": 2, "tp_rank": 1, "pp": 2})
"""
    run(code, tmp_path / "out")
    (one,) = lines(tmp_path / "out/inventory-rank1.jsonl").values()
    assert (one["name"], one["shard"]) == ("decoder.layers.6.w", {"dim": 1, "index": 1, "count": 2})


RANKS = """
import os, torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.device_mesh import init_device_mesh
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[2], RANK=sys.argv[1], WORLD_SIZE="2", LOCAL_RANK=sys.argv[1])
dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 3))
whole = {k: v.clone() for k, v in model.state_dict().items()}
fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
payload_inventory.write_inventory(model)
if sys.argv[1] == "0":
    torch.save(whole, sys.argv[3])
dist.barrier()
dist.destroy_process_group()
"""


def test_two_ranks_of_fsdp_are_the_whole_model(tmp_path):
    pytest.importorskip("torch")
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    code = MODEL.format(folder=str(SCRIPT.parent)) + RANKS
    env = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PROBEPATCH_INVENTORY": str(tmp_path / "out"),
        "PROBEPATCH_INVENTORY_DATA": "1",
    }
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(rank), port, str(tmp_path / "whole.pt")], env=env, stderr=subprocess.PIPE
        )
        for rank in range(2)
    ]
    for rank in ranks:
        said = rank.communicate(timeout=120)[1]
        assert rank.returncode == 0, said.decode()
    found = report(tmp_path / "out", tmp_path / "whole.pt")
    assert (len(verdicts(found)), found.verdict) == (4, "EXACT")


def test_a_state_dict_of_the_older_format(tmp_path):
    torch = pytest.importorskip("torch")
    state = {"a": torch.ones(2, 3), "b": torch.zeros(4, dtype=torch.int64)}
    torch.save({"model": state, "step": 3}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    torch.save(state, tmp_path / "new.pt")
    found = report(tmp_path / "old.pt", tmp_path / "new.pt")
    assert (verdicts(found), found.verdict) == ({"a": "EXACT", "b": "EXACT"}, "EXACT")


class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/probepatch-was-here",)


def test_nothing_in_a_pickled_file_runs(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "evil.bin").write_bytes(pickle.dumps({"a": Evil()}))
    with pytest.raises(TensorFileError):
        open_side(tmp_path / "evil.bin", tmp_path / "scratch")
    assert not Path("/tmp/probepatch-was-here").exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}\n",
        '{"format": "probepatch/inventory/1", "ranks": {"rank": 0}, "config": {}, "data": null}\n',
        '{"format": "probepatch/inventory/1", "ranks": {"rank": 0}, "config": {}, "data": "../x.safetensors"}\n{"end": 0}\n',
        '{"format": "probepatch/inventory/1", "ranks": {"rank": -1}, "config": {}, "data": null}\n{"end": 0}\n',
        '{"format": "probepatch/inventory/1", "ranks": {"rank": 0}, "config": {}, "data": null}\n{"name": "a"}\n{"end": 1}\n',
        '{"format": "probepatch/inventory/1", "ranks": {"rank": 0}, "config": {}, "data": null}\n{"end": 3}\n',
        "nonsense\n",
    ],
)
def test_a_broken_inventory(tmp_path, text):
    (tmp_path / "inventory-rank0.jsonl").write_text(text)
    with pytest.raises(TensorFileError):
        open_side(tmp_path, tmp_path / "scratch")


def test_a_rank_that_stands_twice(tmp_path):
    text = '{"format": "probepatch/inventory/1", "ranks": {"rank": 0}, "config": {}, "data": null}\n{"end": 0}\n'
    for name in ("inventory-rank0.jsonl", "inventory-rank1.jsonl"):
        (tmp_path / name).write_text(text)
    with pytest.raises(TensorFileError, match="two inventories"):
        open_side(tmp_path, tmp_path / "scratch")


def test_a_folder_of_pickles_beside_safetensors_is_not_read_twice(tmp_path):
    save(tmp_path / "model.safetensors", {})
    (tmp_path / "pytorch_model.bin").write_bytes(b"never opened")
    assert open_side(tmp_path, tmp_path / "scratch").form == "folder"


def test_a_pipe_is_no_pickle(tmp_path):
    os.mkfifo(tmp_path / "model.pt")
    with pytest.raises(TensorFileError, match="no regular file"):
        open_side(tmp_path / "model.pt", tmp_path)
