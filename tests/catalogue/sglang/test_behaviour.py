"""The recipes on modules with SGLang's statements, then run: what msprobe is told, and what the lines say."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
STEP = ["start model rank_id=None", "stop", "step"]
Run = Callable[..., dict[str, Any]]


def patched(tmp: Path, tree: str, version: str) -> Path:
    """A copy of a tree that calls itself ``version``, with the recipe that fits it."""
    root = tmp / tree
    shutil.copytree(HERE / "trees" / tree, root)
    (root / f"sglang-{version}.dist-info").mkdir()
    command = [sys.executable, "-m", "probepatch", "apply", str(root)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return root


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return patched(tmp_path_factory.mktemp("plain"), "plain", "0.5.9")


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return patched(tmp_path_factory.mktemp("native"), "native", "0.5.12")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    config = tmp_path / "infer.json"
    config.write_text(json.dumps({"dump_path": str(tmp_path / "dump")}))

    def start(tree: Path, scenario: str, fails: bool = False, stubs: bool = True, **switches: str) -> dict[str, Any]:
        folders = [tree, HERE / "trees" / "stubs"]
        if not stubs:  # torch alone, without msprobe
            shutil.copytree(HERE / "trees" / "stubs" / "torch", tmp_path / "bare" / "torch", dirs_exist_ok=True)
            folders[1] = tmp_path / "bare"
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(map(str, folders)), **switches}
        command = [sys.executable, "-B", str(HERE / "drive_tree.py"), scenario]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if fails:
            assert done.returncode != 0
            return {"error": done.stderr}
        assert done.returncode == 0, done.stderr
        return {**json.loads(done.stdout.splitlines()[-1]), "said": done.stdout}

    return start


def on(tmp_path: Path) -> dict[str, str]:
    return {"DUMP_ON": "1", "MSPROBE_INFER_CONFIG": str(tmp_path / "infer.json")}


def lines(tmp_path: Path, rank: int = 0, name: str = "dispatch_log.jsonl") -> list[dict[str, Any]]:
    file = tmp_path / "dump" / f"rank{rank}" / name
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def hashed(tokens: int) -> str:
    return hashlib.sha256(",".join(map(str, range(tokens))).encode()).hexdigest()


# --- 0.5.8 to 0.5.10: the capture is ours -----------------------------------------------------------------------------


@pytest.mark.parametrize("switches", [{}, {"DUMP_ON": ""}, {"DUMP_ON": "0", "PREFILL_LOGPROB_DIFF": "0"}])
def test_off_means_off(plain: Path, run: Run, tmp_path: Path, switches: dict[str, str]) -> None:
    seen = run(plain, "steps", **switches)
    assert seen["prefill"] is None
    assert seen["msprobe"] is False
    asked = run(plain, "logprobs", **switches)
    assert asked["quiet"] == [False, -1, None]
    assert asked["response"] == [True, 3, []]
    assert run(plain, "arguments", **switches)["disable_cuda_graph"] is False
    assert not (tmp_path / "dump").exists()


def test_a_forward_of_the_scheduler_is_one_step(plain: Path, run: Run, tmp_path: Path) -> None:
    seen = run(plain, "steps", **on(tmp_path))
    assert seen["built"] == ["seed_all mode=True", 'build {"level": "L0", "step": [0], "task": "tensor"}']
    assert seen["prefill"] == STEP
    assert seen["decode"] == STEP
    assert seen["chunks"] == STEP * 2

    prefill, decode, chunk, rest = lines(tmp_path)
    assert [line["step"] for line in (prefill, decode, chunk, rest)] == [0, 1, 2, 3]
    assert prefill["phase"] == "prefill"
    assert prefill["request_ids"] == ["a", "b"]
    assert prefill["prompt_sha256"] == [hashed(5), hashed(3)]
    assert (prefill["scheduled_tokens"], prefill["computed_tokens"]) == ([5, 3], [0, 0])
    assert (prefill["prompt_tokens"], prefill["token_count"], prefill["rank"]) == ([5, 3], 8, 0)
    assert isinstance(prefill["pid"], int)
    assert prefill["time"]
    assert (decode["phase"], decode["scheduled_tokens"], decode["computed_tokens"]) == ("decode", [1], [5])
    assert (chunk["phase"], chunk["scheduled_tokens"], chunk["computed_tokens"]) == ("chunked_prefill", [4], [0])
    assert (rest["phase"], rest["scheduled_tokens"], rest["computed_tokens"]) == ("mixed", [5, 1], [4, 6])
    assert rest["phases"] == ["chunked_prefill", "decode"]
    assert not any("token_ids" in key for key in prefill)


def test_prompts_only_leaves_decode_out(plain: Path, run: Run, tmp_path: Path) -> None:
    seen = run(plain, "steps", PROMPTS_ONLY="1", **on(tmp_path))
    assert (seen["prefill"], seen["decode"], seen["chunks"]) == (STEP, [], STEP)
    assert [(line["step"], line["phase"]) for line in lines(tmp_path)] == [(0, "prefill"), (1, "chunked_prefill")]


def test_what_the_scheduler_did_not_send_is_no_step(plain: Path, run: Run, tmp_path: Path) -> None:
    seen = run(plain, "not_steps", **on(tmp_path))
    assert seen.pop("ran") == ["dummy", "idle", "extend", "extend", "target_verify", "split"]
    for name in ("dummy", "idle", "health", "profiling", "verify", "split"):
        assert seen[name] == [], name
    assert lines(tmp_path) == []


def test_a_draft_model_builds_no_debugger(plain: Path, run: Run, tmp_path: Path) -> None:
    assert run(plain, "draft", **on(tmp_path))["built"] is None


def test_an_error_ends_its_step_and_a_repeated_forward_stays_in_it(plain: Path, run: Run, tmp_path: Path) -> None:
    seen = run(plain, "error", **on(tmp_path))
    assert seen["raised"] == "Invalid forward mode: broken"
    assert seen["broken"] == STEP
    assert seen["twice"] == STEP
    assert seen["ran"] == ["broken", "extend", "extend"]
    assert [line["step"] for line in lines(tmp_path)] == [0, 1]


def test_data_parallel_replicas_are_told_apart_by_their_card(plain: Path, run: Run, tmp_path: Path) -> None:
    seen = run(plain, "data_parallel", **on(tmp_path))
    assert seen["step"] == ["start model rank_id=3", "stop", "step"]
    assert [line["rank"] for line in lines(tmp_path, rank=3)] == [3]


def test_a_dump_runs_eagerly_and_without_warm_up(plain: Path, run: Run, tmp_path: Path) -> None:
    seen = run(plain, "arguments", **on(tmp_path))
    assert seen["disable_cuda_graph"] is True
    assert seen["enable_piecewise_cuda_graph"] is False
    assert seen["skip_server_warmup"] is True


def test_prompt_logprobs_are_asked_for_and_written(plain: Path, run: Run, tmp_path: Path) -> None:
    seen = run(plain, "logprobs", PREFILL_LOGPROB_DIFF="1", **on(tmp_path))
    assert seen["quiet"] == [True, 0, []]
    assert seen["response"] == [True, 0, []]
    assert seen["late"] == [True, 2, []]
    first, second = lines(tmp_path, name="prefill_logprobs.jsonl")
    prompt = hashlib.sha256(b"1,2,3,4").hexdigest()
    assert first == {
        "request_id": "quiet",
        "n_tokens": 4,
        "prompt_sha256": prompt,
        "logprobs": [-0.5, -1.5, -2.5],
        "logprobs_mode": "raw",
        "temperature": 1.0,
        "side": "infer",
    }
    assert second["request_id"] == "response"
    assert "[DUMP_DIAG] input_token_logprobs_val: list of 4, elements NoneType, float" in seen["said"]
    assert "no line for request late: the request said logprob_start_len=2; the whole prompt needs 0" in seen["said"]
    assert "no line for request odd: expected None and 3 floats" in seen["said"]


def test_prompt_logprobs_need_no_dump(plain: Path, native: Path, run: Run, tmp_path: Path) -> None:
    alone = {"PREFILL_LOGPROB_DIFF": "1", "MSPROBE_INFER_CONFIG": str(tmp_path / "infer.json")}
    for tree in (plain, native):
        seen = run(tree, "logprobs", stubs=False, **alone)
        assert seen["quiet"] == [True, 0, []]
        assert seen["msprobe"] is False
    written = lines(tmp_path, name="prefill_logprobs.jsonl")
    assert [line["request_id"] for line in written] == ["quiet", "response"] * 2
    assert lines(tmp_path) == []


def test_without_the_switch_no_logprobs_are_asked_for(plain: Path, run: Run, tmp_path: Path) -> None:
    assert run(plain, "logprobs", **on(tmp_path))["quiet"] == [False, -1, None]
    assert lines(tmp_path, name="prefill_logprobs.jsonl") == []


def test_token_ids_only_under_their_switch(plain: Path, run: Run, tmp_path: Path) -> None:
    run(plain, "logprobs", PREFILL_LOGPROB_DIFF="1", DUMP_TOKEN_IDS="1", **on(tmp_path))
    assert lines(tmp_path)[0]["prompt_token_ids"] == [[1, 2, 3, 4]] * 4
    assert lines(tmp_path, name="prefill_logprobs.jsonl")[0]["prompt_token_ids"] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("switches", "said"),
    [
        ({"DUMP_ON": "1"}, "set MSPROBE_INFER_CONFIG to its path"),
        ({"DUMP_ON": "yes"}, "DUMP_ON='yes': say 1 or 0"),
        ({"PREFILL_LOGPROB_DIFF": "1"}, "PREFILL_LOGPROB_DIFF=1 needs the msprobe config of the inference side"),
    ],
)
def test_a_wrong_setting_stops_the_start_and_is_named(
    plain: Path, run: Run, switches: dict[str, str], said: str
) -> None:
    assert said in run(plain, "steps", fails=True, **switches)["error"]


def test_a_config_without_a_folder_is_refused(plain: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "infer.json").write_text("{}")
    assert "`dump_path` is missing" in run(plain, "steps", fails=True, **on(tmp_path))["error"]


# --- from 0.5.11 on: the capture is SGLang's --------------------------------------------------------------------------


def test_every_native_step_has_a_line(native: Path, run: Run, tmp_path: Path) -> None:
    seen = run(native, "native", DUMP_ON="1", FLAG=str(tmp_path / "infer.json"))
    built = ["seed_all mode=True", "build {}"]
    drafted = ["start draft rank_id=None", "stop", "step"]
    assert seen["calls"] == built * 2 + STEP + drafted + STEP * 3
    assert seen["piecewise"] is True
    found = lines(tmp_path)
    assert [line["step"] for line in found] == [0, 1, 2, 3, 4]
    assert [line["phase"] for line in found] == ["prefill", "draft", "other", "idle", "health_check"]
    assert [line["request_ids"] for line in found] == [["a"], [], [], [], ["HEALTH_CHECK_17.5"]]
    assert [line["token_count"] for line in found] == [5, 5, 2, 0, 1]


def test_native_without_dump_on_is_as_it_was(native: Path, run: Run, tmp_path: Path) -> None:
    seen = run(native, "native", FLAG=str(tmp_path / "infer.json"))
    assert seen["calls"].count("step") == 5
    assert seen["piecewise"] is False
    assert lines(tmp_path) == []


def test_native_silence_is_broken(native: Path, run: Run, tmp_path: Path) -> None:
    error = run(native, "native", fails=True, PREFILL_LOGPROB_DIFF="1")["error"]
    assert "set MSPROBE_INFER_CONFIG to its path" in error
    flag = str(tmp_path / "infer.json")
    assert "start it with --msprobe-dump-config PATH" in run(native, "native", fails=True, DUMP_ON="1")["error"]
    without = run(native, "native", fails=True, stubs=False, DUMP_ON="1", FLAG=flag)["error"]
    assert "msprobe cannot be imported in this environment: No module named 'msprobe'" in without
