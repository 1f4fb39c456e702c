"""Dumps that msprobe writes, of a tiny Qwen2, at every level, and of a process that dies.

PROBEPATCH_REAL_PYTHON   an interpreter with torch, Transformers and msprobe
"""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
from pathlib import Path

import pytest

from stages.dumps.coverage import cover
from stages.dumps.layout import EMPTY, FILLED, find_folders
from stages.dumps.outline import outline
from stages.dumps.problem import ERROR
from stages.dumps.reading import read_dump
from stages.dumps.steps import label
from stages.dumps.token_ids import BACK, PADDING, read_ids
from stages.sides import Side
from tests.stages.dumps.made import line

pytestmark = pytest.mark.real
PYTHON = os.environ.get("PROBEPATCH_REAL_PYTHON")
TOKENS = (11, 1, 5)
MAKE = """
import os, socket, sys, torch
out, level, task, ranks, killed = sys.argv[1:]
if ranks == "rank":
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free.getsockname()[1]), RANK="0", WORLD_SIZE="1")
    torch.distributed.init_process_group("gloo")
from msprobe.pytorch import PrecisionDebugger, seed_all
from transformers import Qwen2Config, Qwen2ForCausalLM
seed_all(1)
model = Qwen2ForCausalLM(Qwen2Config(vocab_size=128, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, attn_implementation="eager")).eval()
debugger = PrecisionDebugger(task=task, level=level, dump_path=out, step=[])
for number, count in enumerate((11, 1, 5)):
    ids = torch.arange(3, 3 + count)[None]
    debugger.start(model)
    with torch.no_grad():
        model(input_ids=torch.nn.functional.pad(ids, (4, 0)) if killed == "pad" else ids, use_cache=False)
    if killed == "yes" and number == 1:
        os._exit(9)
    debugger.stop()
    debugger.step()
"""


def make(out: Path, level: str, task: str, ranks: str = "proc", killed: str = "no"):
    if PYTHON is None:
        pytest.skip("PROBEPATCH_REAL_PYTHON is not set")
    env = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    command = [PYTHON, "-c", MAKE, str(out), level, task, ranks, killed]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == (9 if killed == "yes" else 0), done.stderr[-2000:]
    return find_folders(out)


@pytest.mark.parametrize(
    ("level", "task", "ranks"), [("L0", "tensor", "rank"), ("L0", "statistics", "proc"), ("mix", "tensor", "proc")]
)
def test_what_msprobe_writes(tmp_path, level, task, ranks):
    folders, problems = make(tmp_path, level, task, ranks)
    assert [(one.step, one.state) for one in folders] == [(0, FILLED), (1, FILLED), (2, FILLED)]
    assert all((one.rank == 0) is (ranks == "rank") for one in folders)
    assert problems == ()
    for folder, tokens in zip(folders, TOKENS, strict=True):
        one, dump = outline(folder.dump), read_dump(folder.dump)
        assert (one.task, one.level, one.heads[0].rows) == (task, level, tokens)
        assert one.entries == len(dump.entries)
        assert [problem for problem in one.problems if problem.level == ERROR] == []
        assert cover([one], 2).complete is True
        files = {name.name for name in (folder.path / "dump_tensor_data").glob("*.pt")}
        named = {tensor.data_name for entry in dump.entries for tensor in entry.tensors}
        assert named == files if task == "tensor" else named == {None}


def test_functions_only(tmp_path):
    folders, _problems = make(tmp_path, "L1", "statistics")
    one = outline(folders[0].dump)
    assert (one.modules, one.heads[0].rows) == (0, 11)
    assert [problem.name for problem in cover([one], 2).problems] == ["no-modules"]


def test_a_process_that_dies_leaves_a_header(tmp_path):
    folders, problems = make(tmp_path, "L0", "statistics", killed="yes")
    assert [one.state for one in folders] == [FILLED, EMPTY]
    assert [one.name for one in problems] == ["trailing-step-empty"]
    assert [one.name for one in outline(folders[1].dump).problems] == ["never-flushed"]


@pytest.mark.parametrize(("killed", "end"), [("no", None), ("pad", BACK)])
def test_the_ids_are_hashed_where_they_are(tmp_path, killed, end):
    folders, _problems = make(tmp_path, "L0", "tensor", killed=killed)
    steps = []
    for folder, count in zip(folders, TOKENS, strict=True):
        sha = hashlib.sha256(",".join(map(str, range(3, 3 + count))).encode()).hexdigest()
        steps.append(label(folder, line(folder.step, prompts=(count,), prompt_sha256=(sha,)), outline(folder.dump)))
    ids = read_ids(Side("train", (), str(PYTHON)), steps)
    for step, one in zip(steps, ids, strict=True):
        assert (one.real, one.rest) == (end, PADDING if end else None)
        assert step.problem == ("padding-left" if end else "")
        assert step.line is not None
        assert (one.sha256 == step.line.prompt_sha256[0]) is (end is None)


def test_a_pickle_in_place_of_a_tensor_never_runs(tmp_path):
    folders, _problems = make(tmp_path / "dump", "L0", "tensor")
    (path,) = (folders[0].path / "dump_tensor_data").glob("*embed_tokens*input.0.pt")
    path.write_bytes(pickle.dumps(_Canary(tmp_path / "ran")))
    step = label(folders[0], line(0, prompts=(11,)), outline(folders[0].dump))
    (one,) = read_ids(Side("train", (), str(PYTHON)), [step])
    assert (one.sha256, "cannot be loaded" in one.error) == (None, True)
    assert not (tmp_path / "ran").exists()
    pickle.loads(path.read_bytes())  # it would have run
    assert (tmp_path / "ran").exists()


class _Canary:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)
