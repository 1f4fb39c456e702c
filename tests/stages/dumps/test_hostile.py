"""Captures and places that would deceive: contradicting lines, two runs, folders that share a line, files that are not ours."""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stages.card.order import INSTRUMENT
from stages.card.store import changing
from stages.dumps.logprobs import prefill_differences
from stages.dumps.printed import Print, Printed, check_printed
from stages.dumps.records import read_records
from stages.dumps.request_ids import origins, request_name
from stages.dumps.situation import Situation
from stages.dumps.verify import Source
from stages.dumps.verify import verify as find
from stages.dumps.workers import WorkerError, spread
from tests.cli.test_commands import answer
from tests.cli.test_shell import ROOT, run
from tests.stages.dumps.captures import PROMPT, capture, prefill, step
from tests.stages.dumps.test_verify import card, failing, named, verify  # noqa: F401 - a fixture

TEXT = "What is the capital of France?"


# --- logs that contradict themselves ----------------------------------------------------------------------------------


def test_of_two_lines_of_one_step_none_is_taken(tmp_path):
    """A second run of a container has the same pid; its dump is what is left, and the first run's line is not about it."""
    capture(tmp_path)
    step("infer", tmp_path / "again", 1, {"other-1a2b3c4d": PROMPT[::-1]})
    log = tmp_path / "dump/infer/rank0/dispatch_log.jsonl"
    log.write_text(log.read_text() + (tmp_path / "again/rank0/dispatch_log.jsonl").read_text())
    report = verify(tmp_path, code=1)
    assert report["comparable"] is False
    assert "step-lines-differ" in named(report)
    assert "2 lines of the log say that they are this step" in report["statement"]


@pytest.mark.parametrize("copy", ["step_1/rank_0", "step01/rank0", "old/step1/rank0"])
def test_of_two_folders_with_one_line_none_is_taken(tmp_path, copy):
    _train, infer = capture(tmp_path)
    shutil.copytree(infer / "step1/rank0", infer / copy)
    report = verify(tmp_path, code=1)
    assert report["verdict"] == "NOTHING_COMPARED"
    assert "2 folders are step 1" in report["statement"]


def test_a_folder_under_its_own_process_keeps_its_line(tmp_path):
    _train, infer = capture(tmp_path)
    for name in ("100", "old"):
        shutil.copytree(infer / "step1/rank0", infer / name / "step1/rank0")
    shutil.rmtree(infer / "step1")
    report = verify(tmp_path)
    assert report["chosen"]["infer"]["folders"] == [str(infer / "100/step1/rank0")]


def test_log_probs_of_the_last_run_and_none_that_contradict(tmp_path):
    for pid, shift in ((1, 0.2), (2, 0.0)):
        prefill("train", tmp_path / "t", "r", PROMPT, shift, pid=pid)
    found = read_records(tmp_path / "t", "train")
    assert [one.pid for one in found.prefills] == [2]
    for shift in (0.2, 0.0):
        prefill("infer", tmp_path / "i", "r", PROMPT, shift)
    other = read_records(tmp_path / "i", "infer")
    assert other.prefills == ()
    assert prefill_differences(found.prefills, other.prefills).spread is None


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, 1.5])
def test_log_probs_that_are_none(tmp_path, wrong):
    train, infer = capture(tmp_path)
    for place, name in ((train, "req-7"), (infer, "req-7-1a2b3c4d")):
        shutil.rmtree(place / "rank0" / "none", ignore_errors=True)
        (place / "rank0/prefill_logprobs.jsonl").unlink()
        prefill("train" if place == train else "infer", place, name, PROMPT, logprobs=[-0.5] * 9 + [wrong])
    report = verify(tmp_path)
    assert (report["logprobs"]["state"], report["logprobs"]["mean"]) == ("not computed", None)


def test_a_prompt_of_one_token(tmp_path):
    for side in ("train", "infer"):
        step(side, tmp_path / f"dump/{side}", 0, {"r": [7]})
        prefill(side, tmp_path / f"dump/{side}", "r", [7])
    report = verify(tmp_path)
    assert (report["logprobs"]["state"], report["logprobs"]["mean"]) == ("not computed", None)
    assert "a prompt of one token has no log-prob" in report["logprobs"]["why"]


def test_one_other_token_in_as_many(tmp_path):
    step("train", tmp_path / "dump/train", 0, {"r": PROMPT})
    step("infer", tmp_path / "dump/infer", 0, {"r-1a2b3c4d": [*PROMPT[:-1], 6]})
    report = verify(tmp_path, code=1)
    assert report["verdict"] == "NOTHING_COMPARED"
    assert "not the same ones" in report["statement"]


def test_many_prints_are_not_compared_for_ever(tmp_path, monkeypatch):
    for number in range(6):
        for side in ("train", "infer"):
            prefill(side, tmp_path / side, f"r{number}", PROMPT, 0.0 if side == "train" else 0.001)
    records = [read_records(tmp_path / side, side).prefills for side in ("train", "infer")]
    monkeypatch.setattr("stages.dumps.printed._MOST_STRETCHES", 30)
    prints = tuple(Print(f"log:{at}", 0.5, 0.5, 0.0) for at in range(1000))
    problems = check_printed(Printed(prints, ()), prefill_differences(*records))
    assert [one.name for one in problems] == ["prefill-print-differs", "prefill-print-unchecked"]


# --- a prompt in place of an id ---------------------------------------------------------------------------------------


def test_a_text_goes_by_its_hash_and_is_tied_all_the_same(tmp_path):
    step("train", tmp_path / "dump/train", 0, {TEXT: PROMPT})
    step("infer", tmp_path / "dump/infer", 0, {f"cmpl-{TEXT}-0-1a2b3c4d": PROMPT})
    report = verify(tmp_path, "--request", TEXT)
    assert report["chosen"]["rule"] == "vllm-suffix+openai-server-index"
    for path in (tmp_path / "dump_verification.json", tmp_path / "dump_verification.html"):
        assert "France" not in path.read_text()


def test_ids_stay_as_they_are():
    for name in ("6f1c0f0b-5c3d-4e0f-9a7b-2c1d0e8f7a61", "cmpl-req_7-0-1a2b3c4d", "0_a_P", "a:b/c@d"):
        assert request_name(name) == name
    for name in ("a b", "<script>alert(1)</script>", "Frage", "ä", "x" * 500):
        made = request_name(name)
        assert made == name if name == "Frage" else name not in made
        assert made in origins(request_name(f"{name}-1a2b3c4d")) or name == "x" * 500


# --- files that change, processes that die ----------------------------------------------------------------------------


def test_a_dump_that_grows_while_it_is_read(tmp_path):
    from stages.dumps.checks import judge

    train, infer = capture(tmp_path)
    sources = {"train": Source(train, Situation("train")), "infer": Source(infer, Situation("infer"))}

    def grow(what: str, done: int, total: int) -> None:
        if what == "shapes":
            with (infer / "step1/rank0/dump.json").open("a") as file:
                file.write(" ")

    judged = judge(find(sources, progress=grow))
    assert judged.comparable is False
    assert "was written to while it was read" in judged.statement


def _dies(path: Path) -> int:
    if path.name == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)
    return 1


def _waits(path: Path) -> int:
    path.with_suffix(".pid").write_text(str(os.getpid()))
    time.sleep(600)
    return 1


def test_a_reading_process_that_is_killed_is_an_error_of_ours(tmp_path):
    files = [tmp_path / name for name in ("a", "deadly", "b")]
    with pytest.raises(WorkerError):
        list(spread(_dies, files, 2, 0))
    assert list(spread(_dies, [files[0], files[2]], 2, 0)) == [1, 1]


def test_reading_processes_end_with_us(tmp_path):
    script = (
        "from pathlib import Path; from stages.dumps.workers import spread; from tests.stages.dumps.test_hostile import _waits\n"
        f"if __name__ == '__main__': list(spread(_waits, [Path({str(tmp_path)!r}) / n for n in 'ab'], 2, 0))"
    )
    (tmp_path / "job.py").write_text(script)
    job = subprocess.Popen([sys.executable, tmp_path / "job.py"], env={**os.environ, "PYTHONPATH": str(ROOT)})
    pids = [tmp_path / "a.pid", tmp_path / "b.pid"]
    while not all(path.exists() and path.read_text() for path in pids):
        assert job.poll() is None
        time.sleep(0.05)
    job.kill()
    job.wait()
    alive = {int(path.read_text()) for path in pids}
    for _each in range(200):
        alive = {pid for pid in alive if Path(f"/proc/{pid}").exists() and "Z" not in _state(pid)}
        if not alive:
            break
        time.sleep(0.05)
    assert not alive


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


# --- places -----------------------------------------------------------------------------------------------------------


def test_other_peoples_files_are_not_written_over(tmp_path):
    train, infer = capture(tmp_path)
    sides = "dumps", "verify", "--train", train, "--infer", infer
    for name in ("dump_verification.json", "dump_verification.html"):
        out = tmp_path / name[-4:]
        out.mkdir()
        (out / name).write_text("mine")
        answer("error", *sides, "--out", out, code=3)
        assert [path.name for path in out.iterdir()] == [name]
        assert (out / name).read_text() == "mine"
    (tmp_path / "link").mkdir()
    (tmp_path / "link/dump_verification.json").symlink_to(tmp_path / "json/dump_verification.json")
    answer("error", *sides, "--out", tmp_path / "link", code=3)
    verify(tmp_path)
    verify(tmp_path)  # over its own


def test_nothing_is_written_into_a_checkout_with_a_ledger(tmp_path):
    train, infer = capture(tmp_path / "capture")
    (tmp_path / "tree/.probepatch").mkdir(parents=True)
    (tmp_path / "tree/inner").mkdir()
    sides = "dumps", "verify", "--train", train, "--infer", infer
    answer("error", *sides, "--out", tmp_path / "tree/inner", code=2)
    done = run(*sides, "--json", cwd=tmp_path / "tree/inner")
    assert done.returncode == 2
    assert list((tmp_path / "tree/inner").iterdir()) == []


def test_a_card_that_is_locked(card):  # noqa: F811
    """Report and evidence go together: neither is written."""
    with changing(card):
        answer("error", "dumps", "verify", "--task", card, code=3)
    assert not list((card.parent.parent / "capture").glob("dump_verification*"))


def test_a_card_that_is_not_of_its_form(card):  # noqa: F811
    for result in (
        {"sides": 3},
        {"sides": {"train": {"dump_path": 7}}},
        {"runs": [3]},
        {"sides": {"train": {"config": "\0"}}},
    ):
        with changing(card) as held:
            held.data["stages"][str(INSTRUMENT)]["result"] = result
        answer("error", "dumps", "verify", "--task", card, code=4)
