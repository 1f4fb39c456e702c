"""Case 48: a job that ended well and left no dump. Every cause is checked with the interpreter that ran the job."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stages.dumps.causes import first_confirmed, likely_causes
from stages.dumps.situation import CONFIRMED, NOT_CHECKED, RULED_OUT, Cause, Situation, read_signs
from stages.sides import Side

GOOD = {"task": "tensor", "level": "L0", "dump_path": "/w/dump", "rank": [], "step": [0]}


def environment(folder: Path, **files: str) -> Side:
    """An interpreter of a side's own: this one with ``files`` (dotted module names) on its path."""
    for name, text in files.items():
        path = folder / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        for parent in path.relative_to(folder).parents:
            if parent != Path():
                (folder / parent / "__init__.py").touch()
        path.write_text(text)
    folder.mkdir(exist_ok=True)
    return Side("infer", ("env", f"PYTHONPATH={folder}", "PYTHONNOUSERSITE=1"), sys.executable)


def installed(folder: Path, name: str, version: str) -> None:
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def states(causes: tuple[Cause, ...]) -> dict[str, str]:
    return {one.name: one.state for one in causes}


def test_the_case(tmp_path):
    """Package missing in the engine's environment, a key that the version does not know, a runner without dump code."""
    engine = environment(tmp_path / "engine", **{"vllm_ascend.ascend_config": "x = c.get('dump_config_path')\n"})
    installed(tmp_path / "engine", "vllm_ascend", "0.11.0")
    log = tmp_path / "run.log"
    log.write_text("INFO engine is up\nINFO 1 request done\n")
    known = Situation(
        name="infer",
        side=engine,
        framework="vllm_ascend",
        launch='vllm serve /m --enforce-eager --additional-config {"dump_config":"/w/c.json"}',
        environment={"USE_V2_RUNNER": "1"},
        config=GOOD,
        world_size=1,
        log=log,
        job_rc=0,
    )
    causes = likely_causes(known)
    assert states(causes) == {
        "job-failed": RULED_OUT,
        "msprobe-missing": CONFIRMED,
        "engine-flag": CONFIRMED,
        "graph-mode": RULED_OUT,
        "config-filter": RULED_OUT,
        "model-runner-v2": CONFIRMED,
        "switch-missing": CONFIRMED,
    }
    by_name = {one.name: one for one in causes}
    first = first_confirmed(causes)
    assert first is by_name["msprobe-missing"]
    assert first.what == "msprobe cannot be imported in the inference side's environment: it is not installed"
    assert by_name["engine-flag"].why == (
        "vllm_ascend 0.11.0 does not know `dump_config`: it expects a path under `dump_config_path`"
    )
    assert by_name["model-runner-v2"].why == "USE_V2_RUNNER=1"


def test_a_dependency_of_msprobe_is_missing(tmp_path):
    """The engine's own message would be wrong: msprobe is installed, its dependency is not."""
    side = environment(
        tmp_path, **{"msprobe.pytorch": "import tensorboard_that_is_not_there\nclass PrecisionDebugger: ...\n"}
    )
    installed(tmp_path, "mindstudio_probe", "26.2.0")
    (cause,) = [one for one in likely_causes(Situation("infer", side, "sglang")) if one.name == "msprobe-missing"]
    assert (cause.state, cause.what) == (
        CONFIRMED,
        "msprobe cannot be imported in the inference side's environment: tensorboard_that_is_not_there missing",
    )
    assert "install tensorboard_that_is_not_there there" in cause.todo


def test_msprobe_is_there(tmp_path):
    side = environment(tmp_path, **{"msprobe.pytorch": "class PrecisionDebugger: ...\n"})
    assert states(likely_causes(Situation("train", side, "verl")))["msprobe-missing"] == RULED_OUT


def test_nothing_is_known():
    """No guess: all causes that can be checked are unchecked, and none is confirmed."""
    for name in ("train", "infer"):
        causes = likely_causes(Situation(name))
        assert {one.state for one in causes} == {NOT_CHECKED}
        assert first_confirmed(causes) is None
        assert all(one.why for one in causes)


def test_an_interpreter_that_does_not_answer():
    side = Side("infer", (), "/no/such/python")
    causes = likely_causes(Situation("infer", side, "sglang", launch="sglang.launch_server --msprobe-dump-config /c"))
    assert states(causes)["msprobe-missing"] == states(causes)["engine-flag"] == NOT_CHECKED


@pytest.mark.parametrize(
    ("framework", "launch", "state"),
    [
        ("vllm", "vllm serve /m --tensor-parallel-size 2", CONFIRMED),  # case 49
        ("vllm", "vllm serve /m --tensor-parallel-size 2 --enforce-eager", RULED_OUT),
        ("vllm", "python -m vllm.entrypoints.openai.api_server --model /m", CONFIRMED),
        ("vllm", "python train.py actor_rollout_ref.rollout.enforce_eager=True", RULED_OUT),
        ("vllm", "python train.py actor_rollout_ref.rollout.enforce_eager=False", CONFIRMED),
        ("vllm", "python drive.py", NOT_CHECKED),
        ("sglang", "python -m sglang.launch_server --model-path /m", CONFIRMED),
        ("sglang", "python -m sglang.launch_server --model-path /m --msprobe-dump-config /c.json", RULED_OUT),
        ("sglang", "python train.py --sglang-disable-cuda-graph", RULED_OUT),
        ("transformers", None, RULED_OUT),
        ("vllm", None, NOT_CHECKED),
    ],
)
def test_graph_mode(framework, launch, state):
    assert states(likely_causes(Situation("infer", framework=framework, launch=launch)))["graph-mode"] == state


@pytest.mark.parametrize(
    ("config", "size", "logged", "state"),
    [
        (GOOD, 2, (), RULED_OUT),
        ({**GOOD, "rank": [4, 5]}, 2, (), CONFIRMED),  # case 45
        ({**GOOD, "rank": [0]}, 1, (), CONFIRMED),
        ({**GOOD, "rank": [0]}, None, (), NOT_CHECKED),
        ({**GOOD, "level": "L1"}, 2, (), CONFIRMED),
        ({**GOOD, "step": [3]}, 2, (0, 1), CONFIRMED),
        ({**GOOD, "step": ["1-3"]}, 2, (0, 1), RULED_OUT),
        ([], 2, (), CONFIRMED),
        (None, 2, (), NOT_CHECKED),
    ],
)
def test_the_configs_filter(config, size, logged, state):
    known = Situation("train", config=config, world_size=size, steps_logged=frozenset(logged))
    assert states(likely_causes(known))["config-filter"] == state


@pytest.mark.parametrize(
    ("log", "environment_", "recipes", "state"),
    [
        ("Using V2 Model Runner\n", {}, None, CONFIRMED),
        ("Model Runner V2 requires Triton; using the V1 model runner instead.\n", {}, None, RULED_OUT),
        ("", {"VLLM_USE_V2_MODEL_RUNNER": "1"}, None, CONFIRMED),
        ("", {"VLLM_USE_V2_MODEL_RUNNER": "0"}, None, RULED_OUT),
        ("", {}, None, NOT_CHECKED),
        ("Using V2 Model Runner\n", {}, ("vllm-v2-runner",), RULED_OUT),
    ],
)
def test_the_model_runner(tmp_path, log, environment_, recipes, state):
    path = tmp_path / "log"
    path.write_text(log)
    known = Situation("infer", framework="vllm", log=path, environment=environment_, recipes=recipes)
    assert states(likely_causes(known))["model-runner-v2"] == state


def test_the_switch(tmp_path):
    path = tmp_path / "log"
    path.write_text("(4006) [rank 0] [INFO] Dump switch is turned on at step 0.\n")
    assert states(likely_causes(Situation("train", log=path)))["switch-missing"] == RULED_OUT
    path.write_text("training\r" * 100_000)
    assert states(likely_causes(Situation("train", log=path)))["switch-missing"] == CONFIRMED
    assert states(likely_causes(Situation("train", steps_logged=frozenset({0}))))["switch-missing"] == RULED_OUT
    assert states(likely_causes(Situation("train", log=tmp_path / "none")))["switch-missing"] == NOT_CHECKED
    assert states(likely_causes(Situation("train", launch="DUMP_ON=0 bash run.sh")))["switch-missing"] == CONFIRMED


def test_what_an_engine_swallowed(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"WARNING Please install msprobe to use the dump\n\xff\x00\n")
    assert read_signs(path).swallowed == "Please install msprobe"
    assert states(likely_causes(Situation("infer", log=path)))["msprobe-missing"] == CONFIRMED


def test_the_flag_of_sglang(tmp_path):
    old = environment(tmp_path / "old", **{"sglang.srt.server_args": "x = 1\n"})
    new = environment(tmp_path / "new", **{"sglang.srt.server_args": "msprobe_dump_config: str | None = None\n"})
    launch = "python -m sglang.launch_server --msprobe-dump-config /c.json"
    assert states(likely_causes(Situation("infer", old, "sglang", launch=launch)))["engine-flag"] == CONFIRMED
    assert states(likely_causes(Situation("infer", new, "sglang", launch=launch)))["engine-flag"] == RULED_OUT
    without = Situation("infer", new, "sglang", launch="python -m sglang.launch_server")
    assert states(likely_causes(without))["engine-flag"] == CONFIRMED


def test_another_copy_than_the_patched_one(tmp_path):
    side = environment(tmp_path, **{"vllm.v1.worker": ""})
    known = Situation("infer", side, "vllm", recipes=("vllm-v1-runner",))
    assert states(likely_causes(known))["other-copy"] == CONFIRMED
    assert states(likely_causes(replace(known, script_checked=True)))["other-copy"] == RULED_OUT  # by its PYTHONPATH
    (tmp_path / "vllm/probepatch_vllm.py").write_text("")
    assert states(likely_causes(known))["other-copy"] == RULED_OUT
