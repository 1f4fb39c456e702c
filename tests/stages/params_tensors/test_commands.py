"""The commands as real processes: exit codes, JSON under its schema, and the task card."""

from __future__ import annotations

import json

import pytest

from stages.card.card import PERMISSIONS
from stages.card.evidence import record
from stages.card.permissions import permit
from stages.card.store import changing
from tests.cli.test_commands import answer
from tests.cli.test_shell import run
from tests.stages.params_tensors.made import f32, matrix, save, with_bytes

KINDS = ("structure", "weights")


@pytest.fixture
def sides(tmp_path):
    """Equal but for one bit, which `structure` cannot see."""
    one = {"a": matrix(4, 4), "b": f32(1, 2)}
    save(tmp_path / "train/model.safetensors", one)
    save(tmp_path / "infer/model.safetensors", {**one, "b": with_bytes(one["b"], 4, b"\1")})
    return ["--train", tmp_path / "train", "--infer", tmp_path / "infer"]


def compare(kind, *arguments, code=0, **environment):
    return answer("params-tensors", "params", kind, *arguments, code=code, **environment)


def test_without_a_card(sides, tmp_path):
    found = compare("structure", *sides)
    assert (found["verdict"], found["compared"], found["written"], found["findings"]) == ("EXACT", 2, None, [])
    found = compare("weights", *sides, "--out", tmp_path / "w.json", code=1)
    (finding,) = found["findings"]
    assert (finding["name"], finding["verdict"], finding["difference"]["first_index"]) == ("b", "DIFF", [1])
    written = json.loads((tmp_path / "w.json").read_text())
    assert written == {key: value for key, value in found.items() if key not in ("written", "next")}
    shown = run("params", "weights", *sides)
    assert (shown.returncode, shown.stderr) == (1, "")
    assert "DIFF" in shown.stdout
    assert "row 1" in shown.stdout
    assert "MISMATCH: 1 DIFF, 1 EXACT" in shown.stdout
    assert "no task card: nothing was recorded" in shown.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_wishes(sides, tmp_path, kind):
    for arguments in (
        [],
        sides[:2],
        [*sides[:3], tmp_path / "nowhere"],
        [*sides, "--set", "x"],
        [*sides, "--set", "x=-1"],
        [*sides, "--vocab-size", "0"],
        [*sides, "--train-names", "nothing"],
        [*sides, "--train", ""],
        ["--train", tmp_path, "--infer", tmp_path],
    ):
        answer("error", "params", kind, *arguments, code=2)
    (tmp_path / "train/model.safetensors").write_bytes(b"nonsense")
    save(tmp_path / "train/other.safetensors", {"a": matrix(4, 4)})
    answer("error", "params", kind, "--train", tmp_path / "train/model.safetensors", *sides[2:], code=4)
    assert compare(kind, *sides, code=1)["problems"][0]["kind"] == "broken"


def test_the_payload_is_written_once(tmp_path):
    done = run("params", "structure", "--payload", tmp_path / "p.py")
    assert done.returncode == 0
    compile((tmp_path / "p.py").read_text(), "p.py", "exec")
    assert run("params", "structure", "--payload", tmp_path / "p.py").returncode == 3


def test_a_name_cannot_steer_the_terminal(tmp_path):
    for side in ("train", "infer"):
        save(tmp_path / side / "m.safetensors", {f"{side}\x1b[2J": f32(1), "a": f32(1)})
    shown = run("params", "weights", "--train", tmp_path / "train", "--infer", tmp_path / "infer")
    assert "\x1b" not in shown.stdout + shown.stderr
    assert "train^[[2J" in shown.stdout


@pytest.fixture
def card(tmp_path):
    answer("task-init", "task", "init", tmp_path / "task")
    path = tmp_path / "task/task_card.json"
    with changing(path) as card:
        for name in ("model.path", "baseline_command", "artifacts"):
            card.put(name, "/x")
        card.put("usage", "dump")
        card.put("train.framework", "verl")
        card.put("infer.framework", "vllm")
    return path


def test_out_of_order_is_refused_and_in_order_is_written(sides, card):
    error = answer("error", "params", "weights", *sides, "--task", card, code=3)["error"]
    assert error["kind"] == "out-of-order"
    assert "probepatch preflight" in error["todo"]
    with changing(card) as open_card:
        for stage in (1, 3, 4):
            record(open_card, stage, True, "done")
        permit(open_card, dict.fromkeys(PERMISSIONS, True), "this test")
    found = compare("weights", *sides, "--task", card, code=1)
    assert found["written"] == str(card.with_name("param_weights.json"))
    assert found["next"].startswith("probepatch params report")
    assert compare("structure", *sides, "--task", card)["written"] == str(card.with_name("param_structure.json"))
