"""The command that starts a capture: what is put into it, what is only said, and what every parser on the way makes of it."""

from __future__ import annotations

import json
import shlex
import subprocess

import pytest

from stages.inputs.quoting import second_parse
from stages.inputs.run import Known
from stages.instrument.environment import switches, union
from stages.instrument.launching import hydra_words, page, starting, without_prefix
from stages.instrument.native import Native, put
from stages.sides import Side

VERL = Known("verl", "0.9.1", "fsdp", None)
ENV = {"DUMP_ON": "1", "MSPROBE_ACTOR_CONFIG": "/a folder/train's.json"}
TRAIN = "python3 -m verl.trainer.main_ppo trainer.nnodes=1"
SERVE = "python3 -m sglang.launch_server --model-path /m"
SGLANG = Native("sglang", "/c/infer.json", "0.5.23")
ASCEND = Native("vllm_ascend", "/c/infer.json", "0.18.0")


def start(command, known=VERL, env=ENV, native=None):
    return starting(command, None, known, env, native)


def test_a_job_gets_the_variables_in_its_runtime_environment():
    made = start(f"ray job submit --address http://h:8265 -- {TRAIN}")
    words = shlex.split(made.command)
    (given,) = (word.partition("=")[2] for word in words if word.startswith("--runtime-env-json="))
    assert json.loads(given) == {"env_vars": ENV}
    assert words[words.index("--") + 1 :] == shlex.split(TRAIN)
    assert (made.completed, made.doubts, made.read) == (True, (), True)


def test_what_a_job_has_already_stays():
    held = '{"working_dir":".","env_vars":{"A":"b c","DUMP_ON":"0"}}'
    for name in ("--runtime-env-json ", "--runtime-env-json="):
        words = shlex.split(start(f"ray job submit {name}{shlex.quote(held)} -- {TRAIN}").command)
        text = next(word for word in words if word.startswith(("{", "--runtime-env-json={")))
        given = json.loads(text[text.index("{") :])
        assert given == {"working_dir": ".", "env_vars": {"A": "b c", **ENV}}


@pytest.mark.parametrize("held", ["not json", "[]", '{"env_vars":[]}', '{"env_vars":null}'])
def test_a_runtime_environment_that_is_none_is_left_alone(held):
    made = start(f"ray job submit --runtime-env-json {shlex.quote(held)} -- {TRAIN}")
    assert shlex.quote(held) in made.command
    assert made.doubts


def test_a_script_is_left_as_it_is_and_what_it_sets_itself_is_told(tmp_path):
    (tmp_path / "run.sh").write_text(f"export MSPROBE_ACTOR_CONFIG=/other.json\n{TRAIN}\n")
    made = starting("bash run.sh", str(tmp_path), VERL, ENV, None)
    assert (made.command, made.completed, made.read) == ("bash run.sh", False, True)
    (tmp_path / "run.sh").write_text(
        f"{TRAIN} '++ray_kwargs.ray_init.runtime_env.env_vars.MSPROBE_ACTOR_CONFIG=/other.json'\n"
    )
    made = starting("bash run.sh", str(tmp_path), VERL, ENV, None)
    (doubt,) = (one for one in made.doubts if one.name == "MSPROBE_ACTOR_CONFIG")
    assert (doubt.sure, doubt.why) == (True, "the script sets it to /other.json")
    (tmp_path / "run.sh").write_text(f"ray job submit -- {TRAIN}\n")
    made = starting("bash run.sh", str(tmp_path), VERL, ENV, None)
    assert {one.sure for one in made.doubts} == {True}


@pytest.mark.parametrize(
    "command", ["true", "python mine.py", "bash not-there.sh", "'", "$(", "for x in", "\x00", "é" * 70000]
)
def test_what_cannot_be_read_is_left_as_it_is(command):
    made = start(command, native=SGLANG)
    assert (made.command, made.completed, made.read) == (command, False, False)
    assert made.flags


def test_hydra_keeps_texts():
    words = hydra_words({"DUMP_ON": "1", "B": "true", "C": 'a "b" c', "D": "x\\"})
    texts = [word.partition("=")[2] for word in words]
    assert texts[:2] == ['"1"', '"true"']
    assert all(word.startswith("++ray_kwargs.ray_init.runtime_env.env_vars.") for word in words)
    parser = pytest.importorskip("hydra.core.override_parser.overrides_parser").OverridesParser.create()
    assert [one.value() for one in parser.parse_overrides(words)] == ["1", "true", 'a "b" c', "x\\"]


NATIVE = [
    (SERVE, None, SGLANG, ["--msprobe-dump-config", "/c/infer.json"]),
    (SERVE + " --msprobe-dump-config /old.json", None, SGLANG, ["--msprobe-dump-config", "/c/infer.json"]),
    (SERVE + " --msprobe-dump-config=/old.json", None, SGLANG, ["--msprobe-dump-config=/c/infer.json"]),
    ("vllm serve /m", None, ASCEND, ["--additional-config", '{"dump_config_path":"/c/infer.json"}', "--enforce-eager"]),
    (
        """vllm serve /m --enforce-eager --additional-config '{"torchair":{"on":false},"dump_config_path":"/old"}'""",
        None,
        ASCEND,
        ["--enforce-eager", "--additional-config", '{"torchair":{"on":false},"dump_config_path":"/c/infer.json"}'],
    ),
    (TRAIN, VERL, SGLANG, ["++actor_rollout_ref.rollout.engine_kwargs.sglang.msprobe_dump_config=/c/infer.json"]),
    (
        TRAIN,
        VERL,
        ASCEND,
        [
            "++actor_rollout_ref.rollout.engine_kwargs.vllm.additional_config={dump_config_path:/c/infer.json}",
            "actor_rollout_ref.rollout.enforce_eager=true",
        ],
    ),
]


@pytest.mark.parametrize(("command", "known", "native", "tail"), NATIVE)
def test_a_native_engine_gets_its_flags(command, known, native, tail):
    made = start(command, known or Known(None, None, None, None), {}, native)
    assert shlex.split(made.command)[-len(tail) :] == tail
    assert (made.completed, made.flags) == (True, ())
    again = start(made.command, known or Known(None, None, None, None), {}, native)
    assert again.command == made.command  # once is enough


def test_an_engine_that_the_script_starts_beside_the_training_gets_its_own_flag(tmp_path):
    (tmp_path / "serve.sh").write_text(SERVE + ' "$@"\n')
    (tmp_path / "run.sh").write_text(f"bash {tmp_path}/serve.sh\n{TRAIN}\n")
    made = starting("bash run.sh", str(tmp_path), VERL, {}, SGLANG)
    assert made.flags == ("--msprobe-dump-config", "/c/infer.json")


def test_what_cannot_be_joined_is_said_and_not_overwritten():
    made = start("vllm serve /m --additional-config config.yaml", Known(None, None, None, None), {}, ASCEND)
    assert made.command == "vllm serve /m --additional-config config.yaml"
    assert made.flags[0] == "--additional-config"
    assert put(["x", "--additional-config"], ASCEND.words(None)) is None


def test_the_older_release_candidate_has_another_key():
    assert json.loads(Native("vllm_ascend", "/c", "0.12.0rc1").words(None)[1]) == {"dump_config": "/c"}


def test_flags_survive_the_second_shell_of_ray():
    vime = Known("vime", None, "megatron", None)
    made = start("ray job submit -- python3 train.py --num-rollout 1", vime, ENV, ASCEND)
    entry = shlex.split(made.command)
    arrived = second_parse(entry[entry.index("--") + 1 :])
    at = arrived.index("--vllm-additional-config")
    assert json.loads(arrived[at + 1]) == {"dump_config_path": "/c/infer.json"}
    slime = start("ray job submit -- python3 train.py --num-rollout 1", Known("slime", None, None, None), ENV, SGLANG)
    assert "--sglang-msprobe-dump-config /c/infer.json" in slime.command


def test_one_job_or_two():
    train = {**switches("log_prob", True), "MSPROBE_ACTOR_CONFIG": "/t"}
    assert union(train, {"DUMP_ON": "1", "MSPROBE_INFER_CONFIG": "/i"}) == {**train, "MSPROBE_INFER_CONFIG": "/i"}
    assert union(train, {**switches("log_prob", True), "DUMP_PHASE": "prefill"}) is None


@pytest.mark.parametrize("prefix", [(), ("env", "A=1"), ("bash", "-c", '"$@"', "--")])
def test_the_page_can_be_pasted(tmp_path, prefix):
    made = start("printf '%s|' \"$MSPROBE_ACTOR_CONFIG\" \"$PWD\" 'it'\\''s'")
    text = page("train", prefix, str(tmp_path), "verl", made, ENV)
    (line,) = (one for one in text.splitlines() if "printf" in one)
    done = subprocess.run(["bash", "-c", line.strip()], capture_output=True, text=True, check=True)
    assert done.stdout == f"{ENV['MSPROBE_ACTOR_CONFIG']}|{tmp_path}|it's|"


@pytest.mark.parametrize("prefix", [("ssh", "h"), ("docker", "exec", "-i", "c"), ("conda", "run", "-n", "e")])
def test_a_baseline_that_repeats_the_prefix_is_meant_behind_it(prefix):
    assert without_prefix(f"{' '.join(prefix)} bash run.sh", prefix) == "bash run.sh"
    assert without_prefix("sshd", prefix) == "sshd"
    assert Side("train", prefix, "python3").command("bash")[0] == prefix[0]
