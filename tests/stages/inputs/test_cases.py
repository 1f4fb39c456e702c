"""Known accidents of launch scripts, each with its right outcome; the scripts run for real, with a stand-in for ray."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stages.inputs.quoting import for_ray, for_shell, override
from tests.cli.test_commands import answer
from tests.cli.test_shell import run
from tests.stages.inputs.reading import CASES

RAY = f"""#!{sys.executable}
# stands in for ray: joins the entry point as ray does, and gives the line to a second shell
import os, subprocess, sys
words = sys.argv[1:]
for word in words:
    if word.startswith("--runtime-env-json="):
        open(os.environ["OUT"] + ".env", "w").write(word.partition("=")[2])
line = subprocess.list2cmdline(words[words.index("--") + 1:])
subprocess.run([os.environ["SECOND"], "-c", line])
"""
PYTHON = f"""#!{sys.executable}
import json, os, sys
open(os.environ["OUT"], "a").write(json.dumps(sys.argv[1:]) + "\\n")
"""
SHELLS = [shell for shell in ("/bin/sh", shutil.which("bash")) if shell]


def started(script: Path, folder: Path, shell: str = "/bin/sh") -> list[list[str]]:
    """The arguments that python3 gets, in order, after both shells."""
    for name, text in (("ray", RAY), ("python3", PYTHON)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    out = folder / "out"
    out.write_text("")
    env = {"PATH": f"{folder}:/usr/bin:/bin", "OUT": str(out), "SECOND": shell}
    subprocess.run(["bash", str(script)], env=env, capture_output=True, check=False, timeout=60)
    return [json.loads(line) for line in out.read_text().splitlines()]


@pytest.fixture
def case(tmp_path):
    """``case(name)``: the case's script in a folder of its own."""

    def copy(name: str) -> Path:
        folder = tmp_path / "scripts"
        shutil.copytree(CASES / name, folder)
        return folder / "input.sh"

    return copy


@pytest.fixture
def tools(tmp_path):
    folder = tmp_path / "tools"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("shell", SHELLS)
def test_json_through_ray_submit(case, tools, shell):
    """What the rule says of each of four forms is what happens to it."""
    script = case("51-json-through-ray-submit")
    found = answer("inputs-check", "inputs", "check", script, code=1)
    said = [next(rule for rule in run["rules"] if rule["rule"] == "second-parse") for run in found["runs"]]
    arrived = [argv[argv.index("--cfg") + 1 :] for argv in started(script, tools, shell)]
    whole = [
        value[0] == '{"dump_config_path": "/d/a.json"}' or value[0] == '{"dump_config_path":"/d/a.json"}'
        for value in arrived
    ]
    assert [rule["state"] == "PASS" for rule in said] == whole == [True, False, True, False]
    assert [rule["where"] for rule in said] == ["input.sh:3", "input.sh:4", None, "input.sh:6"]
    assert "compactly" in said[0]["reason"]  # with blanks it lives by its quotes alone
    assert "{a:{n:1}}" in said[1]["reason"]
    assert "split at its blanks" in said[3]["reason"]


@pytest.mark.parametrize("shell", SHELLS)
def test_what_is_generated_survives(tools, tmp_path, shell):
    value = {"dump_config_path": "/d/a.json", "level": "L0", "rank": [0, 1]}
    script = tmp_path / "s.sh"
    script.write_text(f"ray job submit -- python3 train.py --cfg {for_shell(for_ray(value))} --next 1\n")
    ((*_program, flag, text, after, one),) = started(script, tools, shell)
    assert (flag, json.loads(text), after, one) == ("--cfg", value, "--next", "1")


def test_hydra_grammar_and_cr(case):
    """CR LF is told before anything is edited; what is generated is quoted for the shell and for hydra."""
    script = case("53-hydra-grammar")
    before = script.read_bytes()
    found = answer("inputs-check", "inputs", "check", script, code=1)
    (ends,) = [rule for rule in found["rules"] if rule["rule"] == "line-ends"]
    assert ends["state"] == "FAIL" and "\\r" in ends["reason"]
    refused = answer("error", "inputs", "fix", script, code=3)["error"]
    assert "CR" in refused["what"] and refused["todo"]
    assert script.read_bytes() == before
    assert not (script.parent / ".probepatch").exists()

    script.write_bytes(before.replace(b"\r\n", b"\n"))  # what the user is told to do
    adding = {
        "+env.HCA": "mlx5_0:1,mlx5_1:1",
        "+rollout.engine_kwargs.vllm.additional_config": {"dump_config_path": "/d/a.json"},
        "+note": "训推一致",
        "+path": "/a/b=c",
    }
    words = [override(name, value) for name, value in adding.items()]
    assert words == [
        '+env.HCA="mlx5_0:1,mlx5_1:1"',
        "+rollout.engine_kwargs.vllm.additional_config={dump_config_path:/d/a.json}",
        '+note="训推一致"',
        '+path="/a/b=c"',
    ]
    text = script.read_text().rstrip("\n") + "".join(f" \\\n  {for_shell(word)}" for word in words) + "\n"
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.replace("'", "\x00").replace('"', '\\"').replace("\x00", '"')) == [
        "trainer.nnodes=1",
        "data.tag=base",
        *words,
    ]


def test_runtime_env_json(case, tools):
    """The switches go into ``env_vars`` as texts; the misspelt key is told and left; revert gives the exact bytes."""
    script = case("59-runtime-env-json")
    before = hashlib.sha256(script.read_bytes()).hexdigest()
    found = answer("inputs-check", "inputs", "check", script, code=1)
    (run_,) = found["runs"]
    rule = next(rule for rule in run_["rules"] if rule["rule"] == "runtime-env")
    assert (rule["state"], rule["value"]) == ("FAIL", "env_var")
    assert any("${ARGS[@]} without quotes" in note for note in found["notes"])

    fixed = answer("inputs-fix", "inputs", "fix", script, code=1)
    assert {"rule": "runtime-env", "why": rule["reason"]} in fixed["scripts"][0]["left"]
    started(script, tools)
    env = json.loads((tools / "out.env").read_text())
    assert list(env) == ["env_vars", "env_var"]
    assert env["env_vars"] == {
        "PYTHONPATH": "/root/Trainer/",
        "CUDA_DEVICE_MAX_CONNECTIONS": "1",
        "TORCHDYNAMO_DISABLE": "1",
        "DUMP_ON": "1",
        "PROMPTS_ONLY": "1",
    }
    assert env["env_var"] == {"DUMP_ON": 1}
    assert run("revert", script.parent).returncode == 0
    assert hashlib.sha256(script.read_bytes()).hexdigest() == before
