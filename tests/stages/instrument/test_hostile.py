"""Jobs and folders that are not as one wishes: endless lines, bytes of no text, links, full disks, cards that are held."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from stages.card.store import changing, read_card
from stages.instrument.record import runs_of
from tests.stages.instrument.made import Task

CARD = "GPU-0a1b2c3d-1111-2222-3333-444455556666"


def python(text: str) -> str:
    return f"{sys.executable} -c {shlex.quote(text)}"


def reached_by(task: Task, *prefix: str) -> None:
    with changing(task.card) as card:
        card.put("train.prefix", list(prefix))
        for stage in ("3", "6"):
            card.data["stages"][stage]["facts"]["train.prefix"] = list(prefix)


def test_200_megabytes_without_a_line_end(task):
    text = "import sys\nfor _ in range(200): sys.stdout.write('x' * 1000000)\nprint('\\nEngineDeadError')\nsys.exit(3)"
    found = task.run("--command", python(text), code=1)
    assert (found["exit_code"], Path(found["log"]).stat().st_size) == (3, 200_000_001 + len("EngineDeadError\n"))
    assert [(one["name"], one["line"]) for one in found["failures"]] == [("engine-not-started", 2)]


def test_bytes_that_are_no_text(task):
    text = (
        "import sys; sys.stdout.buffer.write(bytes(range(256)) * 300 + b'\\x1b[2J\\xff\\nEngineDeadError'); sys.exit(1)"
    )
    found = task.run("--command", python(text), code=1)
    assert Path(found["log"]).read_bytes()[:14] == bytes(range(10)) + b"\n" + bytes([11, 12]) + b"\n"
    assert [one["name"] for one in found["failures"]] == ["engine-not-started"]


def test_a_log_folder_that_is_a_link_is_followed_and_a_dangling_one_is_told(task, tmp_path):
    (tmp_path / "large").mkdir()
    logs = task.root / "logs"
    logs.symlink_to(tmp_path / "large")
    try:
        found = task.run("--command", "echo here; exit 1", code=1)
        (kept,) = (tmp_path / "large").glob("*.log")
        assert (kept.name, kept.read_text()) == (Path(found["log"]).name, "here\n")
        logs.unlink()
        logs.symlink_to(tmp_path / "nowhere/logs")
        error = task.run("--command", "true", code=1, failing=True)["error"]
        assert (error["kind"], str(logs) in error["why"]) == ("not-started", True)
        assert len(runs_of(read_card(task.card))) == 1
    finally:
        logs.unlink()


def test_a_log_folder_that_is_a_file(task):
    (task.root / "logs").write_text("mine")
    try:
        error = task.run("--command", "true", code=1, failing=True)["error"]
        assert (error["kind"], str(task.root / "logs") in error["why"]) == ("not-started", True)
        assert (task.root / "logs").read_text() == "mine"
    finally:
        (task.root / "logs").unlink()


def test_a_full_disk_loses_lines_and_not_the_job(task):
    """A limit on a file's size stands for the disk: writing fails in the same place."""
    limited = 'ulimit -f 64; exec "$@"'
    reached_by(task, "bash", "-c", limited, "--")
    found = task.run("--side", "train", "--command", python("print('x' * 1000000, flush=True)") + "; exit 5", code=1)
    assert found["exit_code"] == 5
    assert found["log_lost"] == 1_000_001 - Path(found["log"]).stat().st_size > 900_000


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_root_that_may_not_be_written(task):
    task.root.chmod(0o555)
    try:
        error = task.run("--command", "true", code=1, failing=True)["error"]
        assert (error["kind"], "denied" in error["why"]) == ("not-started", True)
    finally:
        task.root.chmod(0o755)


def test_a_work_folder_that_is_not_there(task):
    with changing(task.card) as card:
        card.put("train.workdir", "/nowhere")
    error = task.run("--command", "true", code=1, failing=True)["error"]
    assert (error["kind"], error["why"]) == ("not-started", "no such folder: /nowhere")


def test_a_side_that_is_not_reached(task):
    reached_by(task, "false")
    assert task.run("--side", "train", "--command", "true", code=3, failing=True)["error"]["what"]


def test_what_the_job_leaves_open_is_not_waited_for(task):
    found = task.run("--command", f"{python('import time; time.sleep(600)')} & echo over; exit 2", code=1)
    assert found["exit_code"] == 2
    (left,) = found["left"]
    assert "time.sleep" in left["command"]
    assert runs_of(read_card(task.card))[-1]["ended"]["left"][0]["pid"] == left["pid"]
    os.kill(left["pid"], 9)


CARDS = {
    "free": (4, "", 1),
    "held by a process": (71034, f"{CARD}, PID, sleep, 70012\n", 3),
    "held by nobody that is seen": (71034, "", 3),
    "no answer": (None, "", 1),
}


@pytest.mark.parametrize("case", CARDS)
def test_cards_are_looked_at_before(task, tmp_path, monkeypatch, request, case):
    used, holders, code = CARDS[case]
    process = subprocess.Popen(["sleep", "600"])
    request.addfinalizer(lambda: (process.kill(), process.wait()))
    holders = holders.replace("PID", str(process.pid))
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "cards").write_text(
        f"0, {CARD}, NVIDIA H100 80GB HBM3, {used}, 81559\n" if used is not None else "no driver\n"
    )
    (folder / "holders").write_text(holders)
    (folder / "nvidia-smi").write_text(
        f'#!/bin/sh\ncase "$*" in *apps*) cat {folder}/holders;; *) cat {folder}/cards;; esac\n'
    )
    (folder / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    with changing(task.card) as card:
        card.put("hardware", "cuda")
        card.data["stages"]["1"]["result"]["baseline_mb"] = {f"train/nvidia/{CARD}": 4, f"infer/nvidia/{CARD}": 4}
    found = task.run("--command", "exit 1", code=code, failing=code == 3)
    if code == 3:
        assert found["error"]["what"] == "a card is not free; nothing was started"
        assert (f"PID {process.pid} " in json.dumps(found["error"])) == bool(holders)
        assert runs_of(read_card(task.card)) == []
        kept = task.run(
            "--keep", str(process.pid), "--command", "exit 1", code=1 if holders else 3, failing=not holders
        )
        assert bool(holders) == ("exit_code" in kept)
    else:
        assert [one["state"] for one in found["cards"]] == ["ok" if used is not None else "unknown"]
