"""`probepatch preflight` on real processes, real environments and tools that answer as the vendors' do."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import jsonschema
import pytest

from stages.card.order import PERMIT, PREFLIGHT, OutOfOrderError, require, state_of
from stages.card.store import changing, make_card, read_card
from tests.cli.test_commands import answer
from tests.cli.test_shell import ROOT, run
from tests.stages.preflight.conftest import CONFIG, alone, msprobe, package, prefix, setting, tool
from tests.stages.preflight.test_smi import sample


def preflight(card: Path, *options: str) -> dict:
    """The answer, without the processes of the machine that the tests run on; its exit code agrees with it."""
    done = run("preflight", "--task", card, *options, "--json")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    result = json.loads(done.stdout)
    jsonschema.validate(result, json.loads((ROOT / "docs/schemas/preflight.json").read_text()))
    assert result["passed"] == (done.returncode == 0) == all(one["state"] != "problem" for one in result["findings"])
    ours = descendants(os.getpid())
    result["processes"] = [one for one in result["processes"] if one["pid"] in ours or one["place"] != "train"]
    result["findings"] = [
        one for one in result["findings"] if one["check"] != "processes" or ours & {*one["facts"].get("pids", ())}
    ]
    return result


def descendants(pid: int) -> set[int]:
    found = {pid}
    for path in Path(f"/proc/{pid}/task").iterdir():
        for child in (path / "children").read_text().split():
            with suppress(OSError):  # it may have ended meanwhile
                found |= descendants(int(child))
    return found


def states(result: dict, check: str, place: str | None = None) -> list[str]:
    return [
        one["state"]
        for one in result["findings"]
        if one["check"] == check and (place is None or place in one["place"].split(", "))
    ]


def finding(result: dict, check: str, state: str) -> dict:
    found = [one for one in result["findings"] if one["check"] == check and one["state"] == state]
    assert len(found) == 1, json.dumps(result["findings"], indent=1)
    return found[0]


def test_nothing_is_wrong(card, tmp_path):
    result = preflight(card)
    assert {one["state"] for one in result["findings"] if one["check"] != "ports"} == {"ok"}
    assert [place["names"] for place in result["places"]] == [["train", "infer", "here"]]
    assert not (tmp_path / "out").exists()
    read = read_card(card)
    evidence = read.data["stages"]["1"]
    for name in ("train", "infer"):  # one place, two interpreters
        assert evidence["result"]["interpreters"][name]["python"].startswith(str(tmp_path / f"{name}/bin/python"))
    assert evidence["result"]["packages"]["infer"]["msprobe"]["version"] == "26.2.0"
    if result["passed"]:  # nobody else runs engines on this machine
        assert result["summary"].startswith("no problem")
        assert result["next"][0]["stage"] == PERMIT
        assert state_of(read, PREFLIGHT) == ("done", result["summary"])
        (tmp_path / "model/config.json").write_text(json.dumps({**CONFIG, "hidden_size": 16}))
        assert state_of(read_card(card), PREFLIGHT)[0] == "stale"


def test_for_people(card):
    done = run("preflight", "--task", card)
    assert done.returncode in (0, 1), done.stderr
    assert "msprobe 26.2.0: PrecisionDebugger can be imported" in done.stdout
    assert "next: `probepatch " in done.stdout
    setting(card, **{"infer.log": None})
    done = run("preflight", "--task", card)
    assert "; not known: log (infer)" in done.stdout
    assert "log (infer): `probepatch task set infer.log=/…`\n" in done.stdout
    assert run("preflight", "--help").returncode == 0
    assert run("preflight", "stpo").returncode == 2


def test_out_of_order(tmp_path):
    path = make_card(tmp_path / "empty")
    error = answer("error", "preflight", "--task", path, code=3)["error"]
    assert error["kind"] == "out-of-order"
    assert "probepatch task set" in error["todo"]
    with pytest.raises(OutOfOrderError):
        require(read_card(path), PREFLIGHT)


# --- sides -------------------------------------------------------------------------------------------------------------


def test_a_side_that_nobody_told_or_that_does_not_answer(card):
    setting(card, **{"train.python": None, "infer.python": "/nowhere/python"})
    result = preflight(card)
    assert states(result, "side") == ["problem", "problem"]
    assert result["places"] == []
    assert "command (train)" in result["summary"]
    assert state_of(read_card(card), PREFLIGHT)[0] == "failed"


def test_the_other_environment_gives_the_opposite_answer(card, sites):
    shutil.rmtree(sites["infer"] / "msprobe")
    result = preflight(card)
    assert states(result, "msprobe", "train") == ["ok", "ok"]
    bad = finding(result, "msprobe", "problem")
    assert bad["place"] == "infer"
    assert bad["facts"]["missing"] == "msprobe"
    assert "mindstudio-probe" in bad["todo"]


# --- packages ----------------------------------------------------------------------------------------------------------


def test_a_missing_dependency_that_engines_swallow(card, sites):
    shutil.rmtree(sites["infer"] / "msprobe")
    shutil.rmtree(sites["infer"] / "mindstudio_probe-26.2.0.dist-info")
    msprobe(sites["infer"], imports="import tensorboard.compat")
    bad = finding(preflight(card), "msprobe", "problem")
    assert bad["facts"]["missing"] == "tensorboard"
    assert "tensorboard" in bad["todo"]
    assert "swallow" in bad["todo"]


@pytest.mark.parametrize("fault", ["raise SystemExit(3)", "import os; os._exit(7)", "raise RuntimeError('no driver')"])
def test_an_import_that_dies(card, sites, fault):
    (sites["train"] / "torch/__init__.py").write_text(fault)
    bad = finding(preflight(card), "msprobe", "problem")
    assert bad["place"] == "train"
    assert bad["facts"]["error"]


def test_load_is_needed_for_analysis_only(card, sites):
    shutil.rmtree(sites["train"] / "msprobe/pytorch/dump/module_load")
    bad = finding(preflight(card), "msprobe", "problem")
    assert (bad["place"], bad["facts"]) == ("train", {"load": False})
    setting(card, usage="dump")
    assert states(preflight(card), "msprobe") == ["ok"] * 4
    assert read_card(card).data["stages"]["1"]["result"]["packages"]["train"]["msprobe"]["load"] is False


def test_the_framework_of_another_place_or_version(card, sites, tmp_path):
    setting(card, **{"train.version": "0.8.0", "infer.checkout": str(tmp_path / "vllm-src")})
    result = preflight(card)
    assert "the card says 0.8.0" in finding(result, "framework", "problem")["what"]
    other = finding(result, "framework", "unknown")
    assert (other["place"], "not from the checkout" in other["what"]) == ("infer", True)
    # the command itself leads to the checkout
    package(tmp_path / "src", "verl", "0.8.0", {})
    setting(card, **{"train.checkout": str(tmp_path / "src"), "train.version": None})
    setting(card, baseline_command=f"PYTHONPATH={tmp_path}/src bash run.sh")
    (found,) = [one for one in preflight(card)["findings"] if one["check"] == "framework" and one["place"] == "train"]
    assert (found["state"], found["facts"]["folder"]) == ("ok", str(tmp_path / "src/verl"))


def test_a_package_that_is_not_there(card, sites):
    shutil.rmtree(sites["infer"] / "vllm")
    shutil.rmtree(sites["infer"] / "torch")
    result = preflight(card)
    assert states(result, "framework", "infer") == ["problem"]
    assert states(result, "torch", "infer") == ["problem"]
    assert states(result, "msprobe", "infer") == ["problem"]


@pytest.mark.real
def test_the_real_msprobe(card):
    if subprocess.run([sys.executable, "-c", "import msprobe.pytorch"], capture_output=True).returncode:
        pytest.skip("needs torch and msprobe in this interpreter")
    setting(card, **{"train.python": sys.executable, "infer.python": sys.executable})
    result = preflight(card)  # neither framework is here
    assert "problem" not in states(result, "msprobe")
    assert states(result, "torch") == ["ok", "ok"]


# --- processes and ports -----------------------------------------------------------------------------------------------


def test_leftovers_are_found_with_their_children(card, spawn, tmp_path):
    setting(card, hardware="cuda")
    engine = spawn("VLLM::EngineCore")
    script = tmp_path / "vllm"
    script.write_text("import subprocess, time\nsubprocess.Popen(['sleep', '301']).wait()\n")
    server = subprocess.Popen([sys.executable, script, "serve", "/model"], start_new_session=True)
    try:
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
        for _turn in range(500):
            if children.read_text().strip():
                break
            time.sleep(0.01)
        result = preflight(card)
        child = int(children.read_text())
        found = finding(result, "processes", "problem")
        assert sorted(found["facts"]["pids"]) == sorted([engine.pid, server.pid, child])
        assert "probepatch preflight stop" in found["todo"]
        assert {one["kind"] for one in result["processes"]} == {"vLLM"}
        kept = [word for pid in (engine.pid, server.pid, child) for word in ("--keep", str(pid))]
        result = preflight(card, *kept)
        assert states(result, "processes") == ["ok"]
        assert all(one["kept"] for one in result["processes"])
    finally:
        os.killpg(server.pid, 9)
        server.wait()


def test_without_cards_somebody_elses_processes_are_told_and_no_problem(card, spawn, tmp_path):
    """They hold no card; a port that the task needs is another matter."""
    setting(card, hardware="cpu", baseline_command="bash run.sh")
    ray = spawn("ray::IDLE")
    found = finding(preflight(card), "processes", "ok")
    assert ray.pid in found["facts"]["pids"]
    assert "no card" in found["what"]
    server = tmp_path / "ray_server.py"
    server.write_text(
        "import socket, sys, time\n"
        "one = socket.create_server(('127.0.0.1', 0))\n"
        "print(one.getsockname()[1], flush=True)\n"
        "time.sleep(300)\n"
    )
    holder = subprocess.Popen([sys.executable, server], stdout=subprocess.PIPE, text=True)
    try:
        port = int(holder.stdout.readline())
        setting(card, baseline_command=f"bash run.sh --port {port}")
        assert finding(preflight(card), "ports", "problem")["facts"] == {"port": port, "pids": [holder.pid]}
    finally:
        holder.kill()
        holder.wait()


def test_we_and_our_ancestors_are_no_leftovers(card):
    words = [sys.executable, "-m", "probepatch", "preflight", "--json", "--task", str(card)]
    script = f"exec -a ray::IDLE bash -c {shlex.quote(shlex.join(words) + '; exit $?')}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment)
    assert done.returncode in (0, 1), done.stderr
    assert not descendants(os.getpid()) & {one["pid"] for one in json.loads(done.stdout)["processes"]}
    assert os.getpid() not in {one["pid"] for one in json.loads(done.stdout)["processes"]}
    assert "ray::IDLE bash" not in done.stdout


def test_a_credential_on_a_command_line_is_not_told(card, spawn):
    one = spawn("VLLM::EngineCore --api-key sk-abcdefghijklmnop1234567890")
    result = preflight(card)
    (found,) = result["processes"]
    assert found["pid"] == one.pid
    assert "sk-abcdef" not in json.dumps(result) + card.read_text()


@pytest.mark.skipif(not alone(), reason="a PID namespace cannot be made here")
def test_a_process_of_another_namespace(card, spawn):
    outer = spawn("outer", body="sleep 300", before=())
    shell = spawn("ray::IDLE", before=("unshare", "-p", "-f", "--mount-proc"))
    inner = wait_for_child(shell.pid)
    result = preflight(card)
    found = finding(result, "processes", "unknown")
    assert inner in found["facts"]["pids"]
    assert "killable only inside its container, where its PID is 1" in found["what"]
    (record,) = result["processes"]
    assert (record["pid"], record["nested"], record["inside"]) == (inner, True, 1)
    permitted(card)
    error = answer("error", "preflight", "stop", str(inner), "--task", card, code=3)["error"]
    assert error["kind"] == "not-stopped"
    assert "inside its container" in error["why"]
    assert shell.poll() is None
    assert outer.poll() is None


@pytest.mark.skipif(not alone(), reason="a PID namespace cannot be made here")
def test_a_side_in_a_container_sees_it_as_its_own(card, spawn, tmp_path):
    """The other side lives in the namespace: what is seen from outside as nested is the side's own process."""
    root = spawn("root", body="sleep 300", before=("unshare", "-p", "-m", "-f", "--mount-proc"))
    keeper = wait_for_child(root.pid)
    enter = ["nsenter", "-t", str(keeper), "-p", "-m"]
    engine = subprocess.Popen([*enter, "bash", "-c", "exec -a VLLM::EngineCore sleep 300"], start_new_session=True)
    try:
        outside = wait_for_child(engine.pid)
        setting(card, **{"infer.prefix": shlex.join(enter)})
        result = preflight(card)
        assert sorted(place["names"] for place in result["places"]) == [["infer"], ["train", "here"]]
        (record,) = result["processes"]
        assert (record["place"], record["nested"]) == ("infer", False)
        assert record["pid"] != outside
        permitted(card)
        done = answer("preflight-stop", "preflight", "stop", str(record["pid"]), "--side", "infer", "--task", card)
        assert [one["did"] for one in done["stopped"]] == ["ended"]
        engine.wait(10)
        assert root.poll() is None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(engine.pid, 9)
        engine.wait()


def wait_for_child(pid: int) -> int:
    """The child of unshare or nsenter, once it has become what it shall be."""
    for _turn in range(1000):
        words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if words and b"bash" not in Path(f"/proc/{words[0]}/cmdline").read_bytes().split(b"\0")[0]:
            return int(words[0])
        time.sleep(0.01)
    raise AssertionError("no child")


def test_ports(card):
    with socket.socket() as one, socket.socket() as two:
        for sock in (one, two):
            sock.bind(("127.0.0.1", 0))
            sock.listen()
        busy, called = one.getsockname()[1], two.getsockname()[1]
        setting(card, baseline_command=f"bash run.sh --port {busy} --address http://127.0.0.1:{called}")
        result = preflight(card)
        bad = finding(result, "ports", "problem")
        assert bad["facts"] == {"port": busy, "pids": [os.getpid()]}
        assert any(f"{called} " in one["what"] and one["state"] == "ok" for one in result["findings"])
        assert "problem" not in states(preflight(card, "--keep", str(os.getpid())), "ports")
    result = preflight(card)
    assert "nothing listens" in finding(result, "ports", "unknown")["what"]


# --- cards -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def npus(card, tmp_path):
    """``npu-smi`` behind the training side's prefix; write its answer into the file that is returned."""
    text = tmp_path / "npu.txt"
    tool(tmp_path / "tools", "npu-smi", f'[ "$1" = info ] && cat {shlex.quote(str(text))}')
    setting(card, hardware="ascend", **{"train.prefix": prefix(tmp_path, tmp_path / "tools")})
    setting(card, **{"infer.prefix": str(tmp_path / "reach")})
    return text


def test_no_tool_is_not_free(card):
    for hardware, tools in ((None, "npu-smi, nvidia-smi, rocm-smi"), ("cuda", "nvidia-smi")):
        setting(card, hardware=hardware)
        found = finding(preflight(card), "cards", "unknown")
        assert f"not found here: {tools}; whether a card is free is not known" in found["what"]


def test_cards_and_who_holds_them(card, npus, spawn):
    holder = spawn("VLLM::EngineCore")
    npus.write_text(sample("npu-910b.txt").replace("4242 ", f"{holder.pid:<5}"))
    result = preflight(card)
    assert states(result, "cards") == ["ok", "problem", "ok"]
    bad = finding(result, "cards", "problem")
    assert f"PID {holder.pid} (sleep, 57700 MB)" in bad["what"]
    assert "PID 4243 (?, 131 MB), not visible here" in bad["what"]
    assert f"`probepatch preflight stop {holder.pid}" in bad["todo"]
    setting(card, baseline_command="ASCEND_RT_VISIBLE_DEVICES=0,2 bash run.sh")
    assert states(preflight(card), "cards") == ["ok", "ok", "ok"]


def test_a_number_of_another_namespace_is_not_mistaken(card, npus, spawn):
    """The tool counts on the host; here the number belongs to somebody else's process."""
    stranger = spawn("stranger")
    text = sample("npu-910b.txt").replace(
        "| 4242          |                          |", f"| {stranger.pid:<13} | python3                  |"
    )
    npus.write_text(text)
    bad = finding(preflight(card), "cards", "problem")
    assert f"PID {stranger.pid} (python3, 57700 MB), not visible here" in bad["what"]
    assert stranger.pid not in [one["pid"] for one in read_card(card).data["stages"]["1"]["result"]["processes"]]


def test_memory_goes_back_to_its_baseline(card, npus):
    idle = "\n".join(
        line for line in sample("npu-910b.txt").replace("61204", "3390 ").splitlines() if " 424" not in line
    )
    idle = idle.replace("processes found in NPU 0 ", "processes found in NPU 1 ", 1).replace(
        "| No running processes found in NPU 2",
        "| No running processes found in NPU 0       |\n| No running processes found in NPU 2",
    )
    npus.write_text(idle)
    assert states(preflight(card), "cards") == ["ok", "ok", "ok"]
    first = read_card(card).data["stages"]["1"]["result"]
    assert list(first["baseline_mb"].values()) == [3388, 3390, 3391]
    npus.write_text(idle.replace("3390 /", "23390/"))
    bad = finding(preflight(card), "cards", "problem")
    assert "20000 MB above its baseline of 3390 MB" in bad["what"]
    npus.write_text(idle.replace("3390 /", "3500 /"))
    assert states(preflight(card), "cards") == ["ok", "ok", "ok"]
    later = read_card(card).data["stages"]["1"]["result"]
    assert later["baseline_mb"] == first["baseline_mb"]
    assert later["cards_before"] == first["cards_before"]
    assert later["cards"]["cards"][1]["used_mb"] == 3500


def test_a_full_card_with_nobody_on_it_is_not_free(card, npus):
    text = sample("npu-910b.txt").replace("| 1       0                 | 4242", "| x       0                 | 4242")
    npus.write_text(
        text.replace("| 1       0                 | 4243", "| No running processes found in NPU 1 |\n| x | 4243")
    )
    found = finding(preflight(card), "cards", "unknown")
    assert "61204 of 65536 MB used; nobody is on it; no baseline of it is known" in found["what"]
    assert "container sees only its own" in found["todo"]


def test_a_tool_that_fails(card, npus):
    npus.write_text("dcmi module initialize failed. ret is -8005\n")
    assert "does not answer as it should" in finding(preflight(card), "cards", "unknown")["what"]
    npus.unlink()
    assert states(preflight(card), "cards") == ["unknown"]


def test_nvidia_behind_a_prefix(card, tmp_path):
    for name in ("cards", "holders"):
        (tmp_path / name).write_text(sample(f"nvidia-{name}.csv"))
    tool(
        tmp_path / "tools",
        "nvidia-smi",
        f'case "$1" in --query-gpu*) cat {tmp_path}/cards;; *) cat {tmp_path}/holders;; esac',
    )
    setting(card, hardware="cuda", **{"train.prefix": prefix(tmp_path, tmp_path / "tools")})
    setting(card, **{"infer.prefix": str(tmp_path / "reach")})
    result = preflight(card)
    assert states(result, "cards") == ["problem", "ok", "unknown"]
    assert [card["index"] for card in result["cards"]] == [0, 1, 2]


# --- files -------------------------------------------------------------------------------------------------------------


def test_the_command_its_script_and_its_folder(card, tmp_path):
    setting(card, baseline_command="bash nothere.sh")
    assert "nothere.sh is not there" in finding(preflight(card), "command", "problem")["what"]
    setting(card, baseline_command="no-such-program x")
    assert "no-such-program is not found" in finding(preflight(card), "command", "problem")["what"]
    setting(card, baseline_command="./run.sh")
    assert "not executable" in finding(preflight(card), "command", "problem")["what"]
    (tmp_path / "work/run.sh").chmod(0o755)
    assert states(preflight(card), "command") == ["ok", "ok"]
    setting(card, **{"train.workdir": None, "baseline_command": "bash run.sh"})
    assert states(preflight(card), "command") == ["ok", "unknown"]
    setting(card, **{"train.workdir": str(tmp_path / "nowhere")})
    assert "problem" in states(preflight(card), "command")
    setting(card, **{"train.workdir": str(tmp_path), "baseline_command": "$RUN"})
    assert states(preflight(card), "command") == ["unknown"]


def test_where_the_artefacts_and_logs_go(card, tmp_path, git):
    (tmp_path / "file").write_text("")
    setting(card, artifacts=str(tmp_path / "file/out"), **{"train.log": str(tmp_path / "file/log")})
    result = preflight(card)
    assert states(result, "artifacts") == ["problem", "problem"]
    assert states(result, "log") == ["problem", "ok"]
    with changing(card) as it:
        it.put("artifacts", "relative/out")  # the command does not take it
        it.put("train.log", str(tmp_path / "log"))
    assert states(preflight(card), "artifacts") == ["problem", "problem"]
    setting(card, artifacts=str(tmp_path / "work/verl/out"))
    assert states(preflight(card), "artifacts") == ["ok", "ok"]
    git(tmp_path / "work", "init", "-q")
    assert states(preflight(card), "artifacts") == ["problem", "problem"]


def test_the_disk(card, tmp_path):
    found = finding(preflight(card), "disk", "ok")
    assert found["place"] == "train, infer"
    assert found["facts"]["tokens"] is None
    assert found["facts"]["needed_bytes"] == 2 * (3 * 175_000 + 16 + 64 * found["facts"]["per_token_bytes"] // 2)
    assert states(preflight(card, "--tokens", str(10**15)), "disk") == ["problem"]
    (tmp_path / "model/config.json").write_text(json.dumps({**CONFIG, "max_position_embeddings": None}))
    found = finding(preflight(card), "disk", "unknown")
    assert found["facts"]["fits_tokens"] > 1000
    assert states(preflight(card, "--tokens", "1000"), "disk") == ["ok"]
    assert states(preflight(card, "--dump", "statistics", "--level", "mix"), "disk") == ["ok"]
    (tmp_path / "model/config.json").write_text("{}")
    assert "no usable num_hidden_layers" in finding(preflight(card), "disk", "unknown")["what"]


# --- stop --------------------------------------------------------------------------------------------------------------


def permitted(card: Path) -> None:
    answer("task-permit", "task", "permit", "AUTH_STOP_RUNNING_SERVICES", "--task", card)


def stop(card: Path, *words: str | int, code: int = 0) -> dict:
    schema = "error" if code > 1 else "preflight-stop"
    return answer(schema, "preflight", "stop", *map(str, words), "--task", card, code=code)


def test_stop_by_exact_number_and_with_permission(card, spawn):
    one, two = spawn("VLLM::EngineCore"), spawn("ray::IDLE")
    assert stop(card, one.pid, code=3)["error"]["kind"] == "not-permitted"
    permitted(card)
    assert "no preflight" in stop(card, one.pid, code=2)["error"]["what"]
    preflight(card)
    assert stop(card, os.getpid(), code=3)["error"]["kind"] == "not-stopped"
    assert stop(card, 1, code=3)["error"]["kind"] == "not-stopped"
    done = stop(card, one.pid)
    assert done["stopped"] == [{"pid": one.pid, "did": "ended", "kind": "vLLM", "command": "VLLM::EngineCore 300"}]
    assert one.wait(10) == -15
    assert two.poll() is None
    (record,) = read_card(card).data["stages"]["1"]["result"]["stopped"]
    assert (record["pid"], record["place"]) == (one.pid, "train")
    assert [one["pid"] for one in preflight(card)["processes"]] == [two.pid]
    assert read_card(card).data["stages"]["1"]["result"]["stopped"] == [record]


def test_stop_does_not_hit_the_next_owner_of_a_number(card, spawn):
    one, two = spawn("VLLM::EngineCore"), spawn("ray::IDLE")
    permitted(card)
    preflight(card)
    data = json.loads(card.read_text())
    for record in data["stages"]["1"]["result"]["processes"]:
        record["start"] -= record["pid"] == one.pid
    card.write_text(json.dumps(data))
    error = stop(card, two.pid, one.pid, code=3)["error"]
    assert "another process's now" in error["why"]
    assert (one.poll(), two.poll()) == (None, None)


def test_stop_after_a_restart_of_the_machine(card, spawn):
    one = spawn("VLLM::EngineCore")
    permitted(card)
    preflight(card)
    card.write_text(card.read_text().replace('"boot": "', '"boot": "0'))
    assert "started again since" in stop(card, one.pid, code=3)["error"]["why"]
    assert one.poll() is None


def test_kill_is_asked_for(card, spawn, tmp_path):
    ready = tmp_path / "ready"
    stubborn = f"bash -c 'trap \"\" TERM; touch {ready}; while :; do sleep 300 & wait; done'"
    one = spawn("VLLM::EngineCore", body=stubborn)
    for _turn in range(1000):
        if ready.exists():
            break
        time.sleep(0.01)
    permitted(card)
    preflight(card)
    assert stop(card, one.pid, "--wait", "0.2", code=1)["stopped"][0]["did"] == "running"
    assert one.poll() is None
    assert stop(card, one.pid, "--wait", "0.2", "--kill")["stopped"][0]["did"] == "killed"
    assert one.wait(10) == -9
    assert [one["did"] for one in read_card(card).data["stages"]["1"]["result"]["stopped"]] == ["running", "killed"]


def test_what_ended_by_itself(card, spawn):
    one = spawn("VLLM::EngineCore")
    permitted(card)
    preflight(card)
    one.kill()
    one.wait()
    assert stop(card, one.pid)["stopped"][0]["did"] == "gone"
