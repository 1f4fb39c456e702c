"""The baseline command is read, never run."""

from __future__ import annotations

import pytest

from stages.preflight.baseline import read


@pytest.mark.parametrize(
    ("command", "folder", "program", "script"),
    [
        ("bash run.sh", "/w", "bash", "run.sh"),
        ("./run.sh --x", "/w", "./run.sh", "./run.sh"),
        ("cd /opt/verl && bash -x examples/run.sh trainer.n=1", "/opt/verl", "bash", "examples/run.sh"),
        ("cd sub; A=1 B='x y' nohup python3 -u train.py > log 2>&1 &", "/w/sub", "python3", "train.py"),
        ("source /v/bin/activate && export X=1 && python -m verl.trainer.main_ppo", "/w", "python", None),
        ("docker exec C bash run.sh", "/w", "bash", "run.sh"),
        ("ray job submit --address=http://127.0.0.1:8265 -- python3 train.py --a", "/w", "ray", "train.py"),
        ("timeout 60 env Q=1 torchrun --nproc_per_node 2 t.py", "/w", "torchrun", "t.py"),
        ("bash -c 'python3 x.py'", "/w", "bash", None),
        ("bash \\\n  run.sh", "/w", "bash", "run.sh"),
    ],
)
def test_program_and_script(command, folder, program, script):
    found = read(command, "/w", ("docker", "exec", "C"))
    assert (found.folder, found.program, found.script, found.whole) == (folder, program, script, True)


@pytest.mark.parametrize("command", ["$PY train.py", "bash 'run.sh", "`which python` x.py"])
def test_what_cannot_be_read_is_none(command):
    found = read(command, None, ())
    assert (found.program, found.whole) == (None, False)


def test_a_script_behind_a_variable():
    found = read("bash $HOME/run.sh", "/w", ())
    assert (found.program, found.script, found.whole) == ("bash", None, False)


def test_ports_variables_and_cards():
    found = read(
        "MASTER_PORT=29511 ASCEND_RT_VISIBLE_DEVICES=2,3 PYTHONPATH=/a:/b python3 -m x --port 8001 --dashboard-port=8266"
        " trainer.server_port=9000 ++actor.port=9001 --address http://localhost:8265 --report 12 support=77",
        None,
        (),
    )
    assert found.opens == (8001, 8266, 9000, 9001, 29511)
    assert found.calls == (8265,)
    assert found.cards == frozenset({2, 3})
    assert found.variables["PYTHONPATH"] == "/a:/b"
    assert read("CUDA_VISIBLE_DEVICES=GPU-1 x", None, ()).cards is None
    assert read("x --address http://10.0.0.4:8265", None, ()).calls == ()
