"""Patched by the shipped recipes, runners of vLLM's and vllm-ascend's shapes: one step for each real forward, on every way out."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[3]
TREES = Path(__file__).parent / "trees"
DRIVER = Path(__file__).parent / "drive" / "runner.py"
RUNNERS = {
    "v1": ("vllm", "vllm.v1.worker.gpu_model_runner", "GPUModelRunner"),
    "v2": ("vllm", "vllm.v1.worker.gpu.model_runner", "GPUModelRunner"),
    "ascend-capture": ("ascend-capture", "vllm_ascend.worker.model_runner_v1", "NPUModelRunner"),
    "ascend-inline": ("ascend-inline", "vllm_ascend.worker.model_runner_v1", "NPUModelRunner"),
    "ascend-native": ("ascend-native", "vllm_ascend.worker.model_runner_v1", "NPUModelRunner"),
}
CAPTURING = ["v1", "v2", "ascend-capture"]
NATIVE = ["ascend-inline", "ascend-native"]
SHORT, LONG = [5, 6, 7], list(range(20, 31))  # the driver's prompts
DUMPED = ["start", "forward", "stop", "step"]


def probepatch(command: str, *line: str | Path) -> str:
    full = [sys.executable, "-m", "probepatch", command, *map(str, line)]
    done = subprocess.run(full, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


class Trees:
    """Patched copies of the trees, made when first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path:
        tree = self.folder / name
        if not tree.exists():
            shutil.copytree(TREES / name, tree, ignore=shutil.ignore_patterns("__pycache__"))
            probepatch("apply", tree)
        return tree


class Run:
    """One process with a runner; its log lines lie in a folder of its own."""

    def __init__(self, trees: Trees, folder: Path) -> None:
        self.trees = trees
        self.dump = folder / "dump"
        self.config = folder / "config.json"
        self.config.write_text(json.dumps({"dump_path": str(self.dump)}))

    def __call__(
        self, kind: str, *steps: str, switches: str = "DUMP_ON", tree: Path | None = None, **settings: Any
    ) -> Any:
        name, module, runner = RUNNERS[kind]
        path = [tree or self.trees.path(name), TREES / "stubs"]
        settings |= (
            {"dump_config_path": str(self.config)} if kind in NATIVE and "dump_config_path" not in settings else {}
        )
        env = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path)), "PYTHONDONTWRITEBYTECODE": "1"}
        env |= dict.fromkeys(switches.split(), "1") | {"MSPROBE_INFER_CONFIG": str(self.config)}
        command = [sys.executable, str(DRIVER), module, runner, json.dumps(settings), *steps]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) | {"output": done.stderr}

    def lines(self, name: str = "dispatch_log.jsonl") -> list[dict[str, Any]]:
        file = self.dump / "rank0" / name
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def logged(self, *keys: str) -> list[tuple[Any, ...]]:
        return [tuple(line[key] for key in keys) for line in self.lines()]


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Trees:
    return Trees(tmp_path_factory.mktemp("trees"))


@pytest.fixture
def run(trees: Trees, tmp_path: Path) -> Run:
    return Run(trees, tmp_path)


def kinds(names: list[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("kind", names)


def hash_of(prompt: list[int]) -> str:
    return hashlib.sha256(",".join(map(str, prompt)).encode()).hexdigest()


@kinds(CAPTURING)
def test_each_real_forward_is_one_step(kind: str, run: Run) -> None:
    seen = run(kind, "dummy", "prefill", "dummy", "empty", "prefill", "decode")

    dummies = ["forward"] * (2 if kind == "v1" else 1)  # vLLM's first runner has one in an empty step too
    assert seen["events"] == ["seed", "build", *DUMPED, *dummies, *DUMPED, *DUMPED]
    assert run.logged("step", "phase", "request_ids", "prompt_tokens", "token_count") == [
        (0, "prefill", ["a"], [3], 3),
        (1, "prefill", ["a"], [3], 3),
        (2, "decode", ["a"], [3], 1),
    ]
    assert {line["prompt_sha256"][0] for line in run.lines()} == {hash_of(SHORT)}
    assert {line["rank"] for line in run.lines()} == {0}


@kinds(CAPTURING)
@pytest.mark.parametrize("role", ["last", "middle", "pooling"])
def test_every_way_out_ends_the_step(kind: str, role: str, run: Run) -> None:
    seen = run(kind, "prefill", "two", role=role)

    assert seen["events"] == ["seed", "build", *DUMPED, *DUMPED]
    assert len(run.lines()) == 2


@kinds(CAPTURING)
def test_a_failing_forward_ends_its_step(kind: str, run: Run) -> None:
    seen = run(kind, "prefill", "prefill", fails=True)

    assert seen["returned"] == ["broken", "broken"]
    assert seen["events"] == ["seed", "build", *DUMPED, *DUMPED]


@pytest.mark.parametrize("role", ["encoder", "kv"])
def test_ways_out_without_a_forward_start_nothing(role: str, run: Run) -> None:
    seen = run("v1", "prefill" if role == "encoder" else "empty", role=role)

    assert seen["events"] is None
    assert not run.dump.exists()


def test_warm_up_of_the_second_runner_is_not_dumped(run: Run) -> None:
    seen = run("v2", "dummy", "warm-up", "mixed-warm-up", "prefill")

    assert seen["events"][-6:] == ["seed", "build", *DUMPED]
    assert run.logged("step", "request_ids") == [(0, ["a"])]


@kinds(CAPTURING)
def test_phases_come_from_the_schedulers_counts(kind: str, run: Run) -> None:
    run(kind, "two", "chunk", "mixed", "speculative", "again", "cached-prefix", "embedded")

    assert run.logged("phase", "request_ids", "computed_tokens", "scheduled_tokens") == [
        ("prefill", ["a", "b"], [0, 0], [3, 11]),
        ("chunked_prefill", ["a", "b"], [0, 0], [3, 5]),
        ("mixed", ["b", "a"], [5, 3], [6, 1]),
        ("decode", ["a"], [3], [4]),
        ("chunked_prefill", ["a"], [0], [5]),
        ("prefill", ["b"], [8], [3]),
        ("prefill", ["e"], [0], [2]),
    ]
    assert run.lines()[-1]["prompt_sha256"] == [None]


@kinds(CAPTURING)
def test_prompts_only_leaves_steps_with_decoding_out(kind: str, run: Run) -> None:
    seen = run(kind, "two", "decode", "chunk", "mixed", switches="DUMP_ON PROMPTS_ONLY DUMP_TOKEN_IDS")

    assert seen["events"].count("forward") == 4
    assert seen["events"].count("start") == 2
    assert run.logged("step", "phase", "prompt_token_ids") == [
        (0, "prefill", [SHORT, LONG]),
        (1, "chunked_prefill", [SHORT, LONG]),
    ]


@kinds([*CAPTURING, *NATIVE])
def test_switched_off_nothing_happens(kind: str, run: Run) -> None:
    off = {"dump_config_path": None} if kind in NATIVE else {}
    plain = TREES / RUNNERS[kind][0]
    steps = ("dummy", "two", "empty", "decode")

    assert run(kind, *steps, switches="", **off) == run(kind, *steps, switches="", tree=plain, **off)
    assert run(kind, *steps, switches="", **off)["events"] is None
    assert not run.dump.exists()


@kinds([*CAPTURING, *NATIVE])
def test_prompt_logprobs_are_logged_without_a_dump(kind: str, run: Run) -> None:
    off = {"dump_config_path": None} if kind in NATIVE else {}
    seen = run(kind, "two", switches="PREFILL_LOGPROB_DIFF", **off)

    assert seen["events"] is None
    assert seen["output"].count("[DUMP_DIAG]") == 1
    assert "LogprobsTensors(logprob_token_ids=float32[2, 1], logprobs=float32[2, 1])" in seen["output"]
    keys = ("side", "request_id", "n_tokens", "prompt_sha256", "logprobs", "logprobs_mode", "temperature")
    assert [tuple(line[key] for key in keys) for line in run.lines("prefill_logprobs.jsonl")] == [
        ("infer", name, len(prompt), hash_of(prompt), [-0.5] * (len(prompt) - 1), "raw", 1.0)
        for name, prompt in (("a", SHORT), ("b", LONG))
    ]


@kinds(CAPTURING)
def test_logprobs_of_an_unknown_shape_stop_the_line_not_the_run(kind: str, run: Run) -> None:
    seen = run(kind, "two", "decode", nested=True, switches="PREFILL_LOGPROB_DIFF")

    assert seen["returned"][0] == ["a", "b"]
    assert "[DUMP_DIAG] prompt_logprobs_dict: dict of 2, the first: list of 3" in seen["output"]
    assert "no line for request a: logprob_token_ids is NoneType, expected a tensor [2, 1 or more]" in seen["output"]
    assert run.lines("prefill_logprobs.jsonl") == []


@kinds(CAPTURING)
def test_a_compiled_engine_is_refused_at_the_start(kind: str, run: Run) -> None:
    seen = run(kind, "prefill", eager=False)

    assert "DUMP_ON=1 needs enforce_eager=True" in seen["error"]


@kinds(CAPTURING)
def test_a_config_without_a_folder_is_refused_at_the_start(kind: str, run: Run) -> None:
    run.config.write_text("{}")

    assert "`dump_path` is missing" in run(kind, "prefill")["error"]


@kinds(NATIVE)
@pytest.mark.parametrize("role", ["last", "middle", "pooling"])
def test_the_engines_own_steps_get_a_line_each(kind: str, role: str, run: Run) -> None:
    seen = run(kind, "prefill", "two", "decode", role=role, switches="DUMP_ON PROMPTS_ONLY")

    assert seen["events"] == ["build", *DUMPED * 3]  # nothing that it does not do by itself
    assert run.logged("step", "phase", "request_ids") == [
        (0, "prefill", ["a"]),
        (1, "prefill", ["a", "b"]),
        (2, "decode", ["a"]),
    ]


@kinds(NATIVE)
def test_a_step_that_the_engine_did_not_end_has_no_line(kind: str, run: Run) -> None:
    seen = run(kind, "empty", "prefill", fails=True)

    assert seen["events"] == ["build", "start", "forward"]
    assert run.lines() == []


@kinds(NATIVE)
def test_an_engine_whose_own_debugger_is_off_is_refused(kind: str, run: Run) -> None:
    seen = run(kind, "prefill", dump_config_path=None)

    assert "the engine's own debugger is off" in seen["error"]


@kinds(NATIVE)
def test_the_second_runner_of_vllm_ascend_is_refused(kind: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    second = (RUNNERS[kind][0], "vllm_ascend.worker.v2.model_runner", "NPUModelRunner")
    monkeypatch.setitem(RUNNERS, kind, second)

    assert "VLLM_USE_V2_MODEL_RUNNER=0" in run(kind)["error"]
    assert "error" not in run(kind, switches="")


def test_requests_are_asked_for_their_prompts_logprobs(trees: Trees) -> None:
    script = """
import os
from types import SimpleNamespace as Params
from vllm.v1.engine.input_processor import InputProcessor
def sent(**given):
    params = Params(is_sampling=True, max_tokens=1, **given)
    params.clone = lambda: Params(**{k: v for k, v in vars(params).items() if k != "clone"})
    out = vars(InputProcessor().process_inputs("a", params))
    assert vars(params).items() >= given.items()
    return {key: out.get(key) for key in ("prompt_logprobs", "skip_reading_prefix_cache")}
cached = {"skip_reading_prefix_cache": False}
assert sent(prompt_logprobs=None, **cached) == {"prompt_logprobs": None, **cached}
os.environ["PREFILL_LOGPROB_DIFF"] = "1"
assert sent(prompt_logprobs=None, **cached) == {"prompt_logprobs": 0, "skip_reading_prefix_cache": True}
assert sent(prompt_logprobs=3, **cached) == {"prompt_logprobs": 3, **cached}
assert sent(prompt_logprobs=None) == {"prompt_logprobs": 0, "skip_reading_prefix_cache": None}
"""
    path = os.pathsep.join(map(str, (trees.path("vllm"), TREES / "stubs")))
    env = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", sorted({tree for tree, _module, _class in RUNNERS.values()}))
def test_revert_brings_the_tree_back(name: str, tmp_path: Path) -> None:
    tree = tmp_path / name
    shutil.copytree(TREES / name, tree, ignore=shutil.ignore_patterns("__pycache__"))
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    probepatch("apply", tree)
    probepatch("revert", tree)

    assert {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()} == before
