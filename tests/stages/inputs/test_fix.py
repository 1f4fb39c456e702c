"""Fixing: only what was read for certain, proved before it is written, and taken back byte for byte."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from codemods.errors import FindingError, RefusedError
from stages.inputs.entries import Entry
from stages.inputs.fix import Fixed, fix
from stages.inputs.run import Known, parse, runs
from tests.stages.inputs.reading import SCRIPTS, slime, verl

NEW = {"version": "0.9.1"}
A, R = "actor_rollout_ref.actor.", "actor_rollout_ref.rollout."
ROOT = Path("/nowhere/script.sh")


def fixed(text: str, path: Path = ROOT, only: tuple[str, ...] = (), **known: str) -> Fixed:
    facts = Known(**known)
    return fix(parse(path, text, facts), facts, only=only)


def after(text: str, *only: str, **known: str) -> str:
    return fixed(text, only=only, **known).after.decode()


def arguments(text: str, path: Path = ROOT, **known: str) -> dict[str, Entry]:
    facts = Known(**known)
    (run,) = runs([parse(path, text, facts)], facts)
    return {one.name: one for one in run.facts.entries}


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (verl("trainer.balance_batch=True"), verl("trainer.balance_batch=False")),
        (verl("trainer.balance_batch='True' x=1"), verl("trainer.balance_batch=False x=1")),
        (verl('"trainer.balance_batch=True"'), verl("trainer.balance_batch=False")),
        (verl("+trainer.balance_batch=True"), verl("+trainer.balance_batch=False")),
        (
            "B=True\n" + verl("trainer.balance_batch=$B other=$B"),
            "B=True\n" + verl("trainer.balance_batch=False other=$B"),
        ),
        (
            "A=(trainer.balance_batch=True)\n" + verl('"${A[@]}"'),
            "A=(trainer.balance_batch=False)\n" + verl('"${A[@]}"'),
        ),
        ("A='x=1 trainer.balance_batch=True'\n" + verl("$A"), "A='x=1 trainer.balance_batch=False'\n" + verl("$A")),
        ('A="x=1 trainer.balance_batch=$B"\n' + verl("$A"), None),  # unknown: not touched
        (verl("x=1"), verl("x=1 trainer.balance_batch=False")),
        (verl("x=1", '"$@"'), verl("x=1 trainer.balance_batch=False", '"$@"')),
        (verl("\\\n    x=1 \\\n    y=2"), verl("\\\n    x=1 \\\n    y=2 \\\n    trainer.balance_batch=False")),
        (verl("x=1 2>&1 | tee log"), verl("x=1 trainer.balance_batch=False 2>&1 | tee log")),
        (verl("x=1 # note"), verl("x=1 trainer.balance_batch=False # note")),
        (
            verl("trainer.balance_batch=True", "trainer.balance_batch=True"),
            verl("trainer.balance_batch=True", "trainer.balance_batch=False"),
        ),
    ],
)
def test_an_override(before, expected):
    assert after(before, "balance-batch") == (before if expected is None else expected)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (slime("--balance-data", "--x 1"), slime("--x 1")),
        (slime("--x 1", "--balance-data"), slime("--x 1")),
        (
            "A=(\n   --x 1\n   --balance-data\n   # note\n)\n" + slime('"${A[@]}"'),
            "A=(\n   --x 1\n   # note\n)\n" + slime('"${A[@]}"'),
        ),
        ("A=(\n   --balance-data\n)\n" + slime("${A[@]}"), "A=(\n)\n" + slime("${A[@]}")),
        (slime("\\\n   --balance-data \\\n   --x"), slime("\\\n   --x")),
        (slime("\\\n   --x \\\n   --balance-data"), slime("\\\n   --x")),
        ("A='--balance-data --x 1'\n" + slime("$A"), "A=' --x 1'\n" + slime("$A")),
        (slime("--balance-data", "--balance-data"), slime().replace(" \n", "\n")),
    ],
)
def test_a_flag_is_taken_out(before, expected):
    assert after(before, "balance-batch") == expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("vllm serve m\n", "vllm serve m --no-enable-prefix-caching\n"),
        ("vllm serve m --enable-prefix-caching\n", "vllm serve m --no-enable-prefix-caching\n"),
        ("python3 train.py --vllm-x 1\n", "python3 train.py --vllm-x 1 --no-vllm-enable-prefix-caching\n"),
        ("python3 -m sglang.launch_server --x 1\n", "python3 -m sglang.launch_server --x 1 --disable-radix-cache\n"),
        (verl(f"{R}name=sglang"), verl(f"{R}name=sglang", f"++{R}engine_kwargs.sglang.disable_radix_cache=True")),
    ],
)
def test_a_pair_of_flags(before, expected):
    assert after(before, "prefix-caching") == expected


ENVS = {
    "double": 'E="{\n  \\"env_vars\\": {\n    \\"A\\": \\"1\\"\n  }\n}"\n',
    "single": 'E=\'{"env_vars":{"A":"1"}}\'\n',
    "unknown inside": 'E="{\\"env_vars\\": {\\"A\\": \\"${A}\\"}}"\n',
    "document": 'E=$(cat <<EOF\n{\n  "env_vars": {\n    "A": "$A"\n  }\n}\nEOF\n)\n',
    "quoted document": 'read -r -d \'\' E <<\'EOF\'\n{"env_vars": {"A": "1"}}\nEOF\n',
    "no env_vars": 'E=\'{"working_dir": "."}\'\n',
    "empty env_vars": 'E=\'{"env_vars": {}, "working_dir": "."}\'\n',
    "wrong value": 'E=\'{"env_vars": {"DUMP_ON": 0, "A": "1"}}\'\n',
}


@pytest.mark.parametrize("name", ENVS)
def test_variables_reach_the_runtime_env(name, tmp_path):
    script = ENVS[name] + 'ray job submit --runtime-env-json="$E" -- python3 train.py --sglang-x 1\n'
    text = after(script, "dump-on", "dynamo")
    assert text.count("\n") >= script.count("\n")
    (tmp_path / "ray").write_text('#!/bin/bash\nprintf "%s" "${3#--runtime-env-json=}"\n')
    (tmp_path / "ray").chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "A": "1"}
    done = subprocess.run(["bash", "-c", text], env=env, capture_output=True, text=True, check=False)
    read = json.loads(done.stdout)
    assert read["env_vars"]["DUMP_ON"] == "1"
    assert read["env_vars"]["TORCHDYNAMO_DISABLE"] == "1"
    assert all(isinstance(value, str) for value in read["env_vars"].values())
    assert set(read) <= {"env_vars", "working_dir"}


def test_without_a_runtime_env_one_is_made_and_null_is_not():
    text = after("ray job submit -- python3 train.py --sglang-x 1\n", "dump-on")
    assert (
        text
        == """ray job submit --runtime-env-json='{"env_vars":{"DUMP_ON":"1"}}' -- python3 train.py --sglang-x 1\n"""
    )


def test_verl_takes_variables_through_hydra_as_texts():
    text = after(verl("x=1"), "dump-on", version="0.9.1")
    assert """'++ray_kwargs.ray_init.runtime_env.env_vars.DUMP_ON="1"'""" in text
    assert "ray_kwargs" in fixed(verl("x=1"), only=("dump-on",)).left[0].why  # older ones have no such key
    again = after(text.replace('"1"', "1"), "dump-on", version="0.9.1")
    assert again == text


def test_an_exported_variable_is_told_to_ray_as_well():
    text = "export DUMP_ON=1\n" + verl("x=1")
    done = fixed(text, only=("dump-on",), version="0.9.1")
    assert """'++ray_kwargs.ray_init.runtime_env.env_vars.DUMP_ON="1"'""" in done.after.decode()
    assert [item.verdict.state for item in done.after_items if item.rule.id == "dump-on"] == ["PASS"]


def test_a_whole_script_passes_afterwards():
    script = SCRIPTS / "slime.sh"
    done = fixed(script.read_text(), script, version="0.2.4")
    assert not done.left
    assert done.counts(done.after_items)["FAIL"] == 0
    given = arguments(done.after.decode(), script, version="0.2.4")
    assert {
        name: given[name].text for name in ("--rollout-batch-size", "--n-samples-per-prompt", "--global-batch-size")
    } == {
        "--rollout-batch-size": "1",
        "--n-samples-per-prompt": "4",  # DP = 8 / TP 2
        "--global-batch-size": "4",
    }
    assert "--rm-type" in given
    assert len({edit.id for edit in done.edits}) == len(done.edits)
    assert all(edit.recipe == "inputs-fix" and edit.why and edit.line for edit in done.edits)


def test_what_needs_a_choice_is_left_and_named():
    done = fixed((SCRIPTS / "verl.sh").read_text(), SCRIPTS / "verl.sh", **NEW)
    assert {left.rule for left in done.left} == {"same-tp", "same-dp"}
    assert done.counts(done.after_items)["FAIL"] == 2
    text = done.after.decode()
    assert f"{A}use_dynamic_bsz=False  # by tokens\n" in text
    assert f"{A}ppo_mini_batch_size=64\n" in text
    assert f"{A}ppo_micro_batch_size_per_gpu=128 " in text  # 64 x 8 / DP 4
    assert text.rstrip().endswith('"$@"')


def test_a_flag_of_another_file_is_overridden_or_left(tmp_path):
    (tmp_path / "args.sh").write_text("ARGS=(--balance-data --rollout-temperature 0.5)\n")
    script = tmp_path / "run.sh"
    script.write_text(f'source {tmp_path}/args.sh\npython3 train.py --sglang-x 1 "${{ARGS[@]}}"\n')
    done = fixed(script.read_text(), script, only=("balance-batch", "temperature"))
    assert "args.sh:1" in next(left.why for left in done.left if left.rule == "balance-batch")
    assert done.after.decode().endswith('"${ARGS[@]}" --rollout-temperature 1.0\n')


def test_unknown_is_not_touched():
    text = verl("trainer.balance_batch=$B", "data.seed=$S", f"{R}temperature=$T")
    done = fixed(text, only=("balance-batch", "seed", "temperature"))
    assert done.edits == ()
    assert done.after.decode() == text


def test_cr_lf_is_refused_with_the_reason():
    with pytest.raises(RefusedError) as caught:
        fixed(verl("x=1").replace("\n", "\r\n"))
    assert "CR" in caught.value.what and "last argument" in str(caught.value.why) and "sed" in str(caught.value.todo)


def test_a_script_that_starts_nothing():
    with pytest.raises(FindingError):
        fixed("echo hello\n")


def test_a_config_keeps_its_form():
    text = (SCRIPTS / "verl.yaml").read_text()
    done = fixed(text, SCRIPTS / "verl.yaml", **NEW)
    expected = text.replace("shuffle: true", "shuffle: false").replace('"true" ', "false ")
    assert done.after.decode() == expected.replace("use_remove_padding: false", "use_remove_padding: true")
    assert any("YAML" in left.why for left in done.left)
    job = fixed((SCRIPTS / "job.yaml").read_text(), SCRIPTS / "job.yaml", **NEW)
    assert job.edits == ()
    assert job.left


def test_text_that_is_not_utf_8_stays():
    text = "# caf\udce9\n" + verl("trainer.balance_batch=True") + "# \udcff\n"
    done = fixed(text, only=("balance-batch",))
    assert done.after == text.replace("=True", "=False").encode("utf-8", "surrogateescape")
