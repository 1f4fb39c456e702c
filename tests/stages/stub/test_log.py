"""Lines of msprobe 26.2.0 as it prints them, and what they mean for a round."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codemods.errors import UsageError
from stages.stub.backward import missing_backward
from stages.stub.log import read_log
from stages.stub.manifest import Manifest, Prepared
from tests.stages.stub.made import INFER, TRAIN

FILE = f"step0/rank0/dump_tensor_data/{TRAIN}.input.0.pt"
MANIFEST = Manifest(
    *(Path("/w/src"), 1, "train", "infer", "b", True, 0, [0], True, "/w/dump/train"),
    (Prepared(FILE, TRAIN, "input.0", 0, 0, [1, 2, 3], "torch.float32", "0", None),),
    [],
)
WARNING = "2026-11-29 23:40:49 (32331) [rank 0] [WARNING] [load] "
LINES = {
    f"[load] invalid module: {TRAIN}": ("invalid-module", "error"),
    f"1 module(s) were configured but never matched during this step: ['{TRAIN}']": ("never-matched", "error"),
    f"1 module(s) were configured but never matched during this step: ['{INFER}']": ("never-matched", "warning"),
    f"source data missing: /w/src/{FILE}, keep original value": ("source-missing", "error"),
    f"source data missing: /w/src/{FILE.replace('rank0', 'rank1')}, keep original value": ("source-missing", "error"),
    f"source data missing: /w/src/{FILE.replace('rank0', 'proc9')}, keep original value": ("source-missing", "error"),
    f"source data missing: /w/src/{FILE.replace('step0', 'step1')}, keep original value": ("source-missing", "note"),
    f"source data missing: /w/src/{FILE.replace('input.0', 'kwargs.position_ids')}, keep original value": (
        "source-missing",
        "note",
    ),
    f"tensor mismatch for {TRAIN}.input.0: source shape=[1, 5, 64] dtype=torch.float32 vs current shape=[1, 4, 64]"
    " dtype=torch.float32, override may cause forward error": ("tensor-mismatch", "error"),
    f"failed to load /w/src/{FILE}: load pt file failed, keep original value": ("load-failed", "error"),
    "no proc* directory found in /w/src/step0. Please verify load.path": ("no-process-folder", "error"),
    "no proc* directory found in /w/src/stepNone. Please verify load.path": ("no-process-folder", "note"),
}


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("around", ["{}\n", "\x1b[36m(WorkerDict pid=7)\x1b[0m {}\r\n", "x\n{}"])
def test_what_the_lines_mean(tmp_path, line, around):
    path = tmp_path / "log"
    path.write_text(around.format(WARNING + line))
    (found,) = read_log(path, MANIFEST).problems
    assert (found.name, found.level) == LINES[line]
    assert found.where == f"{path}:{2 if around[0] == 'x' else 1}"


def test_what_says_that_it_worked(tmp_path):
    path = tmp_path / "log"
    path.write_text(
        "[INFO] [load] module validation: 2/3 modules valid in model\n"
        "[INFO] [load] note: forward.N call_index cannot be verified before runtime, mismatched call_index will result in"
        " source data missing warning during forward\n"
        f"[DEBUG] [load] override {TRAIN}.input.0 <- /w/src/{FILE}\n"
        "source data missing: somebody else's line.pt\n"
    )
    log = read_log(path, MANIFEST)
    assert (log.problems, log.validated, log.confirmed) == ([], (2, 3), {f"{TRAIN}.input.0"})
    assert log.lines == 3


def test_only_rank_0_looks_for_the_modules(tmp_path):
    path = tmp_path / "log"
    path.write_text(f"[load] invalid module: {TRAIN}\n")
    (found,) = read_log(path, replace(MANIFEST, ranks=[2, 3])).problems
    assert found.level == "note"


def test_endless_lines_and_many_of_them(tmp_path):
    path = tmp_path / "log"
    line = f"[load] invalid module: {TRAIN}\n".encode()
    path.write_bytes(b"x" * (3 << 20) + line + line * 500 + b"[load] \xff\x00" + b"y" * (1 << 18))
    log = read_log(path, MANIFEST)
    assert len(log.problems) == 20
    assert log.problems[0].where == f"{path}:2"
    assert log.lines == 501
    for other in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UsageError):
            read_log(other, MANIFEST)


def test_backward_entries_above_and_below():
    def names(path, *kinds):
        return [f"Module.{path}.M.{kind}" for kind in kinds]

    forward = [f"Module.{path}.M.forward.0" for path in ("l0.a", "l0", "l1.a", "l1", "l2")]
    backward = [f"Module.{path}.M.backward.0" for path in ("l2", "l1", "l1.a", "l0", "l0.a")]
    before = [*forward, *backward, "Module.l0.a.M.parameters_grad.0"]
    entry = "Module.l1.M.forward.0"
    cut = [*forward, *names("l2", "backward.0"), *names("l1.a", "backward.0")]
    (note,) = missing_backward(before, cut, [entry])
    assert (note.name, note.level) == ("backward-missing", "note")
    assert note.what.startswith("4 ")
    note, warning = missing_backward(before, forward, [entry])
    assert (warning.name, warning.level) == ("backward-missing-below", "warning")
    assert "l2" in warning.what
    assert [*missing_backward(before, before, [entry])] == []
    assert [*missing_backward(forward, forward, [entry])] == []
