"""``capture run`` as a real process, with jobs of every kind: what is kept of them, how they end, and what is left."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stages.card.evidence import evidence, record
from stages.card.permissions import permit
from stages.card.store import changing, read_card
from stages.instrument import jobs
from stages.instrument.record import runs_of
from stages.sides import Side
from tests.cli.test_commands import answer
from tests.cli.test_shell import ROOT, run
from tests.stages.instrument.made import Task
from tests.stages.task.reach import fakes

DUMP = """for config in "$MSPROBE_ACTOR_CONFIG" "$MSPROBE_INFER_CONFIG"; do [ -z "$config" ] || python3 -c '
import json, os, sys
folder = json.load(open(sys.argv[1]))["dump_path"] + "/step0/rank0"
os.makedirs(folder)
open(folder + "/dump.json", "w")' "$config"; done; """
NAP = "'import time; time.sleep(600)'"


def alive(pid: int) -> bool:
    """Not gone, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def last_run(task: Task) -> dict:
    return runs_of(read_card(task.card))[-1]


def test_the_patched_trainer_dumps_and_the_log_is_kept(task):
    command = f"cd {task.train} && {task.folder}/train-env/bin/python -m mini.trainer 'two words' \"it's\""
    found = task.run("--side", "train", "--command", command)
    assert (found["exit_code"], found["failed"], found["dumps"]) == (0, False, {"train": 1})
    assert Path(found["log"]).read_text() == "[[3]] ['two words', \"it's\"]\n"
    assert (task.root / "dump/train/step0/rank0/dump.json").is_file()
    assert found["next"] == f"probepatch dumps verify --task {task.card}"
    ended = last_run(task)["ended"]
    assert (ended["code"], ended["left"], ended["dumps"]) == (0, [], {"train": 1})
    card = answer("task-status", "task", "status", "--task", task.card)
    assert card["stages"][6]["state"] == "done"
    error = task.run("--side", "train", "--command", command, code=3, failing=True)["error"]
    assert (error["kind"], "step0" in error["why"]) == ("dump-path", True)


def test_both_sides_in_one_job(task):
    found = task.run("--command", DUMP)
    assert (found["side"], found["dumps"]) == ("both", {"train": 1, "infer": 1})
    assert {"MSPROBE_ACTOR_CONFIG", "MSPROBE_INFER_CONFIG", "DUMP_ON"} <= set(found["environment"])


def test_a_run_comes_before_its_verification(task):
    def following() -> str:
        first: str = answer("task-status", "task", "status", "--task", task.card)["next"][0]["command"]
        return first.split(" --")[0]

    error = answer("error", "dumps", "verify", "--task", task.card, code=3)["error"]
    assert "capture run" in error["todo"]
    assert following() == "probepatch capture run"
    task.run("--command", DUMP)
    assert following() == "probepatch dumps verify"


def test_a_failed_verification_is_of_an_earlier_run(task):
    with changing(task.card) as card:
        record(card, 7, False, "no layer")
    task.run("--command", DUMP)
    assert evidence(read_card(task.card), 7) is None


def test_for_people(task):
    done = run("capture", "run", "--command", DUMP + "echo done", "--task", task.card)
    assert done.returncode == 0, done.stderr
    assert "the job: exit code 0; folders with a dump: train 1, infer 1; log: " in done.stdout
    assert f"next: `probepatch dumps verify --task {task.card}`" in done.stdout


@pytest.mark.parametrize(
    ("command", "code"),
    [("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143), ("no-such-program", 127), ("exit 0", 0), ("(", 2)],
)
def test_a_job_that_fails_or_leaves_no_dump(task, command, code):
    found = task.run("--command", command, code=1)
    assert (found["exit_code"], found["failed"], found["without_dump"]) == (code, True, ["infer", "train"])
    reverts = [line for line in found["native_control"] if line.startswith("probepatch revert ")]
    assert len(reverts) == 2
    assert f"cd {task.folder} && true" in found["native_control"]
    assert found["native_control"][-1].startswith("probepatch capture prepare")
    assert [one["name"] for one in found["failures"]] == (["program-missing"] if code == 127 else [])


def test_what_the_processes_really_got_is_told(task):
    command = "CUDA_VISIBLE_DEVICES=3 sleep 3; echo Engine core initialization failed; exit 1"
    found = task.run("--command", f"export ASCEND_RT_VISIBLE_DEVICES=0,1; {command}", code=1)
    seen = {one["visible"] for one in found["devices"]}
    assert "ASCEND_RT_VISIBLE_DEVICES=0,1, CUDA_VISIBLE_DEVICES=3" in seen
    assert [(one["name"], one["line"]) for one in found["failures"]] == [("engine-not-started", 1)]
    done = run("capture", "run", "--command", "exit 1", "--task", task.card, CUDA_VISIBLE_DEVICES="5")
    assert "CUDA_VISIBLE_DEVICES=5" in done.stdout
    assert "native control" in done.stdout


def test_the_log_has_no_carriage_returns(task):
    found = task.run("--command", DUMP + r"printf 'a 1%%\ra 2%%\r\nb\r'; sleep 0.3; printf '\nc'")
    assert Path(found["log"]).read_bytes() == b"a 1%\na 2%\nb\nc"


def test_a_timeout_ends_the_whole_job(task):
    command = f"(env -i setsid {sys.executable} -c {NAP} &) ; {sys.executable} -c {NAP} & setsid sleep 600 & wait"
    found = task.run("--timeout", "2", "--command", command, code=1)
    assert (found["ended_by"], found["exit_code"], found["failed"]) == ("timeout", None, True)
    assert last_run(task)["ended"]["why"] == "timeout"
    told = {one["pid"] for one in found["left"]}
    job = last_run(task)["job"]
    there = subprocess.run(["pgrep", "-f", "time.sleep.600"], capture_output=True, text=True).stdout.split()
    ours = [int(pid) for pid in there if _of_folder(int(pid), task)]
    for pid in ours:
        os.kill(pid, signal.SIGKILL)
    while alive(job["pid"]):  # it stays as long as anybody may write to the log
        time.sleep(0.1)
    assert told == set()
    assert len(ours) <= 1  # what left the session and threw its environment away cannot be told from others


def _of_folder(pid: int, task: Task) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/cwd") == str(task.folder)
    except OSError:
        return False


def test_an_interruption_ends_the_job_and_what_it_started(task):
    command = f"echo $$ > {task.folder}/pid; sleep 600 & echo $! >> {task.folder}/pid; wait"
    words = ["capture", "run", "--command", command, "--task", str(task.card)]
    for number in (signal.SIGINT, signal.SIGTERM):
        (task.folder / "pid").unlink(missing_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-m", "probepatch", *words],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        while not (task.folder / "pid").exists() or len((task.folder / "pid").read_text().split()) < 2:
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(number)
        _out, said = process.communicate(timeout=120)
        assert process.returncode == 130, said
        assert "the job was ended; its log: " in said
        assert not runs_of(read_card(task.card))[-1]["ended"]["left"]
        assert not any(alive(int(pid)) for pid in (task.folder / "pid").read_text().split())
        assert last_run(task)["ended"]["why"] == "interrupted"


def test_processes_that_ignore_signals_are_ended_nevertheless(tmp_path):
    side = Side("train", (), sys.executable)
    program = (
        "import signal,time\nfor n in (2, 15): signal.signal(n, signal.SIG_IGN)\nprint(1, flush=True)\ntime.sleep(600)"
    )
    command = f"trap '' INT TERM; env -i {sys.executable} -c {shlex.quote(program)}; sleep 600"
    job = jobs.start(side, command, str(tmp_path), {}, str(tmp_path / "logs/log"))
    while not (seen := jobs.look(side, job, 0, {})).text:
        time.sleep(0.1)
    assert len(seen.processes) == 2  # the shell by its mark, the other by its session
    assert jobs.end(side, job, 0.3) == []
    assert not any(alive(one["pid"]) for one in seen.processes)
    assert jobs.end(side, job, 0.3) == []


def test_another_job_is_not_touched(tmp_path):
    side = Side("train", (), sys.executable)
    one, other = (jobs.start(side, "sleep 600", None, {}, str(tmp_path / name)) for name in ("one", "other"))
    assert jobs.end(side, one, 3) == []
    (there,) = jobs.look(side, other, 0, {}).processes
    assert alive(there["pid"])
    elsewhere = jobs.Job.read({**other.as_json(), "boot": "another machine"})
    assert jobs.end(side, elsewhere, 3) == []
    assert alive(there["pid"])
    assert jobs.end(side, other, 3) == []
    assert not alive(there["pid"])


def test_a_job_is_not_ended_with_us(task):
    """The terminal is gone, and the job goes on."""
    command = f"sleep 3; {DUMP} echo over"
    words = ["capture", "run", "--command", command, "--task", str(task.card)]
    process = subprocess.Popen([sys.executable, "-m", "probepatch", *words], cwd=ROOT, start_new_session=True)
    while not runs_of(read_card(task.card)):
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    log = Path(last_run(task)["job"]["log"])
    for _turn in range(200):
        if Path(f"{log}.rc").exists():
            break
        time.sleep(0.1)
    assert Path(f"{log}.rc").read_text() == "0\n"
    assert log.read_text() == "over\n"
    assert last_run(task)["ended"] is None


PREFIXES = {
    "ssh": "ssh node7",
    "docker": "docker exec -i c1",
    "docker without -i": "docker exec c1",
    "docker with a shell": "docker exec -i c1 bash -c",
    "docker over ssh": "ssh node7 docker exec -i c1",
    "conda": "conda run -n train",
}


@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES)
def test_a_prefix_whose_words_are_parsed_again(task, tmp_path, prefix, monkeypatch):
    for name, value in fakes(tmp_path / "fakes").items():
        monkeypatch.setenv(name, value)
    with changing(task.card) as card:
        card.put("train.prefix", prefix.split())
        for stage in ("3", "6"):
            card.data["stages"][stage]["facts"]["train.prefix"] = prefix.split()
    found = task.run(
        "--side", "train", "--command", DUMP + "printf '%s|' 'a  b' '$HOME' \"it's\" 'x\\y' \"$DUMP_ON\"; exit 0"
    )
    assert Path(found["log"]).read_text() == "a  b|$HOME|it's|x\\y|1|"
    assert found["dumps"] == {"train": 1}
    assert last_run(task)["job"]["prefix"] == prefix.split()
    done = task.run(
        "--side", "train", "--config", f"train={_config(task, 'again')}", "--command", f"{prefix} exit 4", code=1
    )
    assert (done["command"], done["exit_code"]) == ("exit 4", 4)
    control = next(line for line in done["native_control"] if line.startswith(prefix.split()[0]))
    assert subprocess.run(["bash", "-c", control]).returncode == 0


def test_a_connection_that_is_lost_for_a_while(task, tmp_path, monkeypatch):
    found = fakes(tmp_path / "fakes")
    ssh, down = tmp_path / "fakes/ssh", tmp_path / "down"
    ssh.write_text(
        ssh.read_text().replace(
            "import os, sys\n", f"import os, sys\nif os.path.exists({str(down)!r}): sys.exit(255)\n"
        )
    )
    monkeypatch.setenv("PATH", found["PATH"])
    with changing(task.card) as card:
        card.put("train.prefix", ["ssh", "node7"])
        for stage in ("3", "6"):
            card.data["stages"][stage]["facts"]["train.prefix"] = ["ssh", "node7"]
    command = f"echo one; touch {down}; sleep 4; echo two; rm {down}; {DUMP} echo three"
    told = task.run("--side", "train", "--command", command)
    assert (told["exit_code"], told["dumps"]) == (0, {"train": 1})
    assert Path(told["log"]).read_text() == "one\ntwo\nthree\n"


def _config(task: Task, name: str) -> Path:
    path = task.root / f"msprobe/train.{name}.json"
    held = json.loads((task.root / "msprobe/train.json").read_text())
    path.write_text(json.dumps({**held, "dump_path": str(task.root / f"dump/{name}/train")}))
    return path


def test_a_config_of_a_round_wins(task):
    command = f"cd {task.train} && {task.folder}/train-env/bin/python -m mini.trainer"
    task.run("--side", "train", "--command", command)
    config = _config(task, "round1")
    found = task.run("--side", "train", "--config", f"train={config}", "--command", command)
    assert found["environment"]["MSPROBE_ACTOR_CONFIG"] == str(config)
    assert found["dumps"] == {"train": 1}
    assert (task.root / "dump/round1/train/step0/rank0/dump.json").is_file()
    (note,) = found["notes"]
    assert "it is not shown that MSPROBE_ACTOR_CONFIG reaches the workers" in note


def test_a_script_that_sets_its_own_config_is_found_out(task):
    old = task.root / "msprobe/train.json"
    (task.folder / "run.sh").write_text(
        f"export MSPROBE_ACTOR_CONFIG={old}\n{DUMP}\n: python3 -m verl.trainer.main_ppo\n"
    )
    config = _config(task, "round1")
    found = task.run("--side", "train", "--config", f"train={config}", "--command", "bash run.sh", code=1)
    assert found["without_dump"] == ["train"]
    assert any("another config was read" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--config", "train"], "SIDE=PATH"),
        (["--config", "both=/x"], "SIDE=PATH"),
        (["--config", "train=/nowhere.json"], "no msprobe config"),
        (["--config", "infer=/x.json", "--side", "train"], "of no use"),
        (["--command", "curl -H 'Authorization: Bearer abcdefghijklmnop0123456789'"], "credential"),
        (["--timeout", "0"], "--timeout"),
    ],
)
def test_a_wrong_call(task, words, says):
    error = task.run(*words, code=2, failing=True)["error"]
    assert says in error["what"] + (error["why"] or "") + (error["todo"] or "")
    assert runs_of(read_card(task.card)) == []


@pytest.mark.parametrize("text", ["[]", "{}", '{"dump_path": 3}', "[" * 100000, "\xff"])
def test_a_config_that_is_none(task, text):
    path = task.folder / "config.json"
    path.write_bytes(text.encode("latin-1"))
    assert "no msprobe config" in task.run("--config", f"train={path}", code=2, failing=True)["error"]["what"]


def test_sides_that_share_their_processes_take_two_runs(task):
    with changing(task.card) as card:
        for name, phase in (("train", "log_prob"), ("infer", "prefill")):
            card.data["stages"]["6"]["result"]["sides"][name]["environment"]["DUMP_PHASE"] = phase
    error = task.run(code=2, failing=True)["error"]
    assert "one debugger" in error["what"]
    assert task.run("--side", "infer", "--command", DUMP)["environment"]["DUMP_PHASE"] == "prefill"


def test_it_needs_permission_and_a_prepared_capture(task):
    with changing(task.card) as card:
        permit(card, {"AUTH_RUN_DUMP_JOB": False}, "")
    assert task.run(code=3, failing=True)["error"]["kind"] == "not-permitted"
    with changing(task.card) as card:
        permit(card, {"AUTH_RUN_DUMP_JOB": True}, "")
        del card.data["stages"]["6"]
    assert task.run(code=3, failing=True)["error"]["kind"] == "out-of-order"


def test_an_interruption_while_it_starts_leaves_nobody_behind(task):
    """The signal comes when the job runs already, and we do not know of it yet."""
    script = (
        "import os, signal, sys, commands.capture_job as j\n"
        "real = j.start\n"
        "def start(*words):\n"
        "    job = real(*words)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return job\n"
        "j.start = start\n"
        "import cli; sys.exit(cli.main(sys.argv[1:]))\n"
    )
    words = ["capture", "run", "--command", f"echo $$ > {task.folder}/pid; sleep 600", "--task", str(task.card)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script, *words], cwd=ROOT, env=environment, capture_output=True)
    assert done.returncode == 130
    assert last_run(task)["ended"]["why"] == "interrupted"
    pid = task.folder / "pid"
    assert not (pid.exists() and pid.read_text().strip() and alive(int(pid.read_text())))
