"""Each rule passes, fails and is unknown where it should."""

from __future__ import annotations

import pytest

from stages.inputs.report import judge
from stages.inputs.rules.all import RULES
from stages.inputs.run import Known, parse, runs
from tests.stages.inputs.reading import SCRIPTS, report_of, run_of, slime, states, verdict, verl

A, R = "actor_rollout_ref.actor.", "actor_rollout_ref.rollout."
NEW = {"version": "0.9.1"}
OLD = {"version": "0.5.0"}
MEGATRON = "model_engine=megatron"
ENV = "ray_kwargs.ray_init.runtime_env.env_vars."


def job(env: str, *flags: str) -> str:
    return f"E='{env}'\nray job submit --runtime-env-json=\"$E\" -- python3 train.py --sglang-x 1 {' '.join(flags)}\n"


BATCH = f"data.train_batch_size=8 {A}ppo_mini_batch_size=8 {R}n=2 trainer.n_gpus_per_node=4 "
EXPECTED = [
    # --- batches
    ("mini-batches", verl("data.train_batch_size=8", f"{A}ppo_mini_batch_size=8"), "PASS"),
    ("mini-batches", verl("data.train_batch_size=8", f"{A}ppo_mini_batch_size=4"), "FAIL"),
    ("mini-batches", verl("data.train_batch_size=9", f"{A}ppo_mini_batch_size=4"), "FAIL"),
    ("mini-batches", verl("data.train_batch_size=$N"), "UNKNOWN"),
    ("mini-batches", slime("--rollout-batch-size 4 --n-samples-per-prompt 2 --global-batch-size 8"), "PASS"),
    ("mini-batches", slime("--rollout-batch-size 4 --n-samples-per-prompt 2 --global-batch-size 4"), "FAIL"),
    ("mini-batches", slime("--rollout-batch-size 4 --num-steps-per-rollout 1"), "PASS"),
    ("mini-batches", slime("--rollout-batch-size 4 --num-steps-per-rollout=2"), "FAIL"),
    ("gradient-accumulation", verl(BATCH + f"{A}ppo_micro_batch_size_per_gpu=4"), "PASS"),
    ("gradient-accumulation", verl(BATCH + f"{A}ppo_micro_batch_size_per_gpu=2"), "FAIL"),
    ("gradient-accumulation", verl(BATCH), "FAIL"),
    ("gradient-accumulation", verl(BATCH + f"{A}use_dynamic_bsz=True"), "UNKNOWN"),
    # DP is 4 / (TP 2) = 2, so 16 sequences are 8 a rank
    (
        "gradient-accumulation",
        verl(BATCH + f"{MEGATRON} {A}megatron.tensor_model_parallel_size=2 {A}ppo_micro_batch_size_per_gpu=8"),
        "PASS",
    ),
    ("gradient-accumulation", verl(BATCH + f"{A}strategy=veomni {A}ppo_micro_batch_size_per_gpu=8"), "UNKNOWN"),
    ("gradient-accumulation", slime("--global-batch-size 8"), "PASS"),
    ("gradient-accumulation", slime("--global-batch-size 8 --tensor-model-parallel-size 2"), "FAIL"),
    ("log-prob-micro-batches", verl(BATCH + f"{R}log_prob_micro_batch_size_per_gpu=4"), "PASS"),
    ("log-prob-micro-batches", verl(BATCH + f"{R}log_prob_micro_batch_size_per_gpu=1"), "FAIL"),
    ("dynamic-batch", verl(), "PASS"),
    ("dynamic-batch", verl(f"{A}use_dynamic_bsz=True"), "FAIL"),
    ("dynamic-batch", verl(f"{R}log_prob_use_dynamic_bsz=True"), "FAIL"),
    ("dynamic-batch", verl(f"{A}use_dynamic_bsz=$D"), "UNKNOWN"),
    ("dynamic-batch", slime("--use-dynamic-batch-size"), "FAIL"),
    ("balance-batch", verl("trainer.balance_batch=False"), "PASS"),
    ("balance-batch", verl(), "FAIL"),
    ("balance-batch", slime(), "PASS"),
    ("balance-batch", slime("--balance-data"), "FAIL"),
    ("dynamic-sampling", verl("algorithm.filter_groups.enable=True"), "FAIL"),
    ("dynamic-sampling", slime(), "PASS"),
    ("one-prompt", slime("--rollout-batch-size 1"), "PASS"),
    ("one-prompt", slime("--rollout-batch-size 8"), "FAIL"),
    ("samples-per-rank", slime("--n-samples-per-prompt 8"), "PASS"),
    ("samples-per-rank", slime("--n-samples-per-prompt 8 --actor-num-nodes 2"), "FAIL"),
    ("samples-per-rank", slime("--n-samples-per-prompt 8 --actor-num-nodes $N"), "UNKNOWN"),
    # --- padding
    ("remove-padding", verl("actor_rollout_ref.model.use_remove_padding=True"), "PASS"),
    ("remove-padding", verl("actor_rollout_ref.model.use_remove_padding=False"), "FAIL"),
    ("remove-padding", verl(), "UNKNOWN"),
    ("remove-padding", slime(), "PASS"),
    ("remove-padding", slime("--qkv-format bshd"), "FAIL"),
    ("pad-multiplier", slime("--data-pad-size-multiplier 1"), "PASS"),
    ("pad-multiplier", slime(), "FAIL"),
    ("pad-multiplier", slime("--data-pad-size-multiplier 1 --tensor-model-parallel-size 4"), "UNKNOWN"),
    ("pad-multiplier", verl(MEGATRON), "PASS"),
    ("pad-multiplier", verl(MEGATRON, f"{A}megatron.context_parallel_size=2"), "UNKNOWN"),
    # --- the same numbers again
    ("eager", verl(f"{R}enforce_eager=True"), "PASS"),
    ("eager", verl(f"{R}enforce_eager=False"), "FAIL"),
    ("eager", verl(), "UNKNOWN"),
    ("eager", slime("--sglang-disable-cuda-graph"), "PASS"),
    (
        "eager",
        slime("--sglang-cuda-graph-backend-decode disabled --sglang-cuda-graph-backend-prefill disabled"),
        "PASS",
    ),
    ("eager", slime(), "FAIL"),
    ("eager", "vllm serve m --enforce-eager", "PASS"),
    ("eager", "vllm serve m --enforce-eager --no-enforce-eager", "FAIL"),
    ("seed", verl("data.seed=42"), "PASS"),
    ("seed", verl(), "FAIL"),
    ("seed", slime(), "PASS"),
    ("seed", slime("--rollout-seed $RANDOM_SEED"), "UNKNOWN"),
    ("shuffle", verl("data.shuffle=False"), "PASS"),
    ("shuffle", verl("data.shuffle=False", f"{A}shuffle=True"), "FAIL"),
    ("shuffle", slime("--rollout-shuffle"), "FAIL"),
    ("temperature", verl(f"{R}temperature=0.7"), "FAIL"),
    ("temperature", slime("--rollout-temperature 1"), "PASS"),
    # --- ranks
    (
        "same-tp",
        verl(MEGATRON, f"{A}megatron.tensor_model_parallel_size=2", f"{R}tensor_model_parallel_size=2"),
        "PASS",
    ),
    ("same-tp", verl(MEGATRON), "UNKNOWN"),
    ("same-tp", verl(), "FAIL"),
    ("same-tp", verl(f"{R}tensor_model_parallel_size=1"), "PASS"),
    ("same-tp", slime("--tensor-model-parallel-size 2 --rollout-num-gpus-per-engine 2"), "PASS"),
    ("same-tp", slime("--tensor-model-parallel-size 2 --rollout-num-gpus-per-engine 4"), "FAIL"),
    ("same-pp", verl(MEGATRON, f"{A}megatron.pipeline_model_parallel_size=2"), "FAIL"),
    ("same-pp", slime(), "PASS"),
    ("same-cp", slime(), "PASS"),
    ("same-cp", slime("--context-parallel-size 2"), "FAIL"),
    ("same-cp", verl(f"{A}ulysses_sequence_parallel_size=2"), "FAIL"),
    ("same-dp", slime("--colocate --tensor-model-parallel-size 2 --rollout-num-gpus-per-engine 2"), "PASS"),
    ("same-dp", slime("--rollout-num-gpus 4"), "FAIL"),
    ("same-dp", slime(), "UNKNOWN"),
    ("same-dp", verl(f"{R}tensor_model_parallel_size=1", "rollout.nnodes=1", "rollout.n_gpus_per_node=4"), "FAIL"),
    # --- what else runs
    ("no-validation", verl("trainer.val_before_train=False"), "PASS"),
    ("no-validation", verl(), "FAIL"),
    ("no-validation", slime(), "PASS"),
    ("no-validation", slime("--eval-interval 20"), "FAIL"),
    ("no-validation", slime("--eval-interval 20 --skip-eval-before-train"), "PASS"),
    ("bypass", verl("algorithm.rollout_correction.bypass_mode=True"), "FAIL"),
    ("bypass", slime("--use-rollout-logprobs"), "FAIL"),
    ("bypass", slime("--use-rollout-logprobs --get-mismatch-metrics"), "PASS"),
    ("main-forward", slime("--get-mismatch-metrics --custom-tis-function-path a.b"), "PASS"),
    ("main-forward", slime("--get-mismatch-metrics"), "FAIL"),
    ("main-forward", slime(), "UNKNOWN"),
    # --- the engine
    ("prefix-caching", verl(f"{R}enable_prefix_caching=False"), "PASS"),
    ("prefix-caching", verl(), "FAIL"),
    ("prefix-caching", verl(f"{R}name=sglang", f"{R}enable_prefix_caching=False"), "FAIL"),  # verl does not hand it on
    ("prefix-caching", verl(f"{R}name=sglang", f"+{R}engine_kwargs.sglang.disable_radix_cache=True"), "PASS"),
    ("prefix-caching", slime("--sglang-disable-radix-cache"), "PASS"),
    ("chunked-prefill", verl(f"{R}max_num_batched_tokens=4096", "data.max_prompt_length=4096"), "PASS"),
    ("chunked-prefill", verl(f"{R}max_num_batched_tokens=4096", "data.max_prompt_length=8192"), "FAIL"),
    ("chunked-prefill", verl(f"{R}enable_chunked_prefill=False", "data.max_prompt_length=8192"), "PASS"),
    ("chunked-prefill", verl(f"{R}name=sglang"), "FAIL"),
    ("chunked-prefill", verl(f"{R}name=sglang", f"+{R}engine_kwargs.sglang.chunked_prefill_size=-1"), "PASS"),
    ("chunked-prefill", slime("--sglang-chunked-prefill-size -1"), "PASS"),
    ("chunked-prefill", slime("--sglang-chunked-prefill-size 4096 --rollout-max-prompt-len 2048"), "PASS"),
    ("chunked-prefill", slime("--sglang-chunked-prefill-size 4096"), "UNKNOWN"),
    ("chunked-prefill", "vllm serve m --no-enable-chunked-prefill", "PASS"),
    ("prompt-logprobs", slime(job=True), "PASS"),
    ("prompt-logprobs", job('{"env_vars":{"PREFILL_LOGPROB_DIFF":"1"}}'), "PASS"),
    # --- what reaches the workers
    ("dump-on", job('{"env_vars":{"DUMP_ON":"1"}}'), "PASS"),
    ("dump-on", job('{"env_vars":{"DUMP_ON":"0"}}'), "FAIL"),
    ("dump-on", job('{"env_vars":{"DUMP_ON":1}}'), "FAIL"),
    ("dump-on", job('{"env_vars":{}}'), "FAIL"),
    ("dump-on", "export DUMP_ON=1\n" + slime(job=True), "FAIL"),  # the shell's environment does not travel
    ("dump-on", verl(f"""'+{ENV}DUMP_ON="1"'"""), "PASS"),
    ("dump-on", verl(f"+{ENV}DUMP_ON=1"), "FAIL"),  # hydra makes a number of it
    ("dump-on", verl(before="export DUMP_ON=1"), "UNKNOWN"),
    ("dump-on", verl(before="export DUMP_ON=1\nray start --head"), "PASS"),
    ("dump-on", verl(before="ray start --head\nexport DUMP_ON=1"), "FAIL"),
    ("dump-on", "DUMP_ON=1 vllm serve m", "PASS"),
    ("dump-on", "ray job submit --runtime-env env.yaml -- python3 train.py --x", "UNKNOWN"),
    ("dynamo", job('{"env_vars":{"TORCHDYNAMO_DISABLE":"1"}}'), "PASS"),
    ("dynamo", job('{"env_vars":{}}'), "FAIL"),
    ("prompts-only", verl(), "FAIL"),
    ("prompts-only", job('{"env_vars":{"PROMPTS_ONLY":"1"}}'), "PASS"),
    ("runtime-env", job('{"env_vars":{"A":"1"},"working_dir":"."}'), "PASS"),
    ("runtime-env", job('{"env_var":{"A":"1"}}'), "FAIL"),
    ("runtime-env", job('{"env_vars":{"A":true}}'), "FAIL"),
    ("runtime-env", job("null"), "FAIL"),
    ("runtime-env", job("{'a': 1}".replace("'", "")), "FAIL"),
    ("runtime-env", 'ray job submit --runtime-env-json="$OUTSIDE" -- python3 train.py --x', "UNKNOWN"),
    ("second-parse", slime(job=True), "PASS"),
    ("second-parse", slime("--x 'a;b'", job=True), "FAIL"),
    ("second-parse", slime("""--x '{"a":1,"b":2}'""", job=True), "FAIL"),
]


@pytest.mark.parametrize(("rule", "script", "state"), EXPECTED)
def test_a_rule(rule, script, state):
    found = verdict(script, rule)
    assert found.state == state, found.reason
    assert found.reason


def test_every_rule_is_tried_with_every_outcome_it_can_have():
    tried = {(rule, state) for rule, _script, state in EXPECTED}
    for rule in RULES:
        if rule.id != "package":  # it needs a card: test_package.py
            assert {state for one, state in tried if one == rule.id} >= {"PASS"}, rule.id
    failing = {rule for rule, state in tried if state == "FAIL"}
    assert {rule.id for rule in RULES} - failing == {"prompt-logprobs", "package"}


@pytest.mark.parametrize(
    ("version", "state"),
    [("0.5.0", "PASS"), ("0.6.1", "FAIL"), ("0.9.1", "FAIL"), ("1.0", "UNKNOWN"), ("x", "UNKNOWN")],
)
def test_defaults_follow_the_version(version, state):
    assert verdict(verl(f"{R}name=vllm"), "eager", version=version).state == state


def test_a_value_says_where_it_stands_and_what_it_rests_on():
    found = verdict("B=${BALANCE:-False}\n" + verl("trainer.balance_batch=$B", '"$@"'), "balance-batch")
    assert (found.state, found.value, found.where) == ("PASS", "trainer.balance_batch=False", "script.sh:3")
    assert "unless BALANCE is set in the environment" in found.reason
    assert "unless the script is given arguments" in found.reason
    assert verdict(verl("trainer.balance_batch=$B"), "balance-batch", env={"B": "True"}).state == "FAIL"


def test_the_formula_is_told():
    found = verdict(
        slime("--n-samples-per-prompt 8 --actor-num-nodes 2 --tensor-model-parallel-size 4"), "samples-per-rank"
    )
    assert "DP = nodes 2 x devices per node 8 / (TP 4 x PP 1 x CP 1) = 4" in found.reason


def test_the_last_of_two_holds_and_a_condition_makes_it_unknown():
    assert verdict(verl("trainer.balance_batch=True", "trainer.balance_batch=False"), "balance-batch").state == "PASS"
    text = 'A=()\nif [ -n "$Q" ]; then A=(trainer.balance_batch={}); fi\n'
    script = text + verl("trainer.balance_batch=False", '"${A[@]}"')
    assert verdict(script.replace("{}", "True"), "balance-batch").state == "UNKNOWN"
    assert verdict(script.replace("{}", "False"), "balance-batch").state == "PASS"  # it makes no difference


def test_a_base_config_that_is_not_here_leaves_defaults_unknown(tmp_path):
    script = verl("--config-path=$PWD/config", "--config-name=mine")
    assert verdict(script, "balance-batch").state == "UNKNOWN"
    (tmp_path / "mine.yaml").write_text("trainer:\n  balance_batch: false\n")
    assert verdict(verl(f"--config-path={tmp_path}", "--config-name=mine"), "balance-batch").state == "PASS"
    assert verdict(verl("--config-path=config", "--config-name='ppo_megatron_trainer.yaml'"), "same-pp").state == "PASS"


def test_the_framework_is_told_by_its_flags():
    assert run_of("python3 train.py --vllm-enforce-eager").framework == "vime"
    assert run_of("python3 train.py --sglang-x").framework == "slime"
    assert run_of("python3 train.py --x", framework="vime").framework == "vime"
    assert run_of('LAUNCH=(uv run python3)\n"${LAUNCH[@]}" -m verl.trainer.main_ppo a=b').framework == "verl"
    assert runs([parse(SCRIPTS / "x.sh", "python3 -m verl.trainer.sft_trainer a=b\n", Known())], Known()) == []


def test_the_backend_is_told_by_any_of_its_signs():
    either = 'A=()\nif [ -n "$Q" ]; then A=(actor_rollout_ref.actor.strategy=ONE); fi\n' + verl('"${A[@]}"')
    assert run_of(verl()).backend == "fsdp"
    assert run_of(verl("model_engine=megatron")).backend == "megatron"
    assert run_of(verl("actor_rollout_ref.actor.strategy=fsdp2")).backend == "fsdp"
    assert run_of(verl("--config-name=ppo_megatron_trainer")).backend == "megatron"
    assert run_of(either.replace("ONE", "fsdp2")).backend == "fsdp"
    assert run_of(either.replace("ONE", "megatron")).backend is None
    assert run_of(verl("actor_rollout_ref.actor.strategy=$S")).backend is None


def test_dp_attention_has_no_one_tp():
    script = slime("--tensor-model-parallel-size 8", "--rollout-num-gpus-per-engine 64", "--sglang-enable-dp-attention")
    assert verdict(script, "same-tp").state == "UNKNOWN"


def test_an_engine_beside_the_training_is_judged_by_its_own_flags(tmp_path):
    (tmp_path / "train.sh").write_text(verl("actor_rollout_ref.rollout.enforce_eager=True"))
    (tmp_path / "serve.sh").write_text("vllm serve m\n")
    known = {"version": "0.9.1", "engine_version": "0.32.0"}
    report = report_of(tmp_path / "train.sh", tmp_path / "serve.sh", **known)
    training, engine = report.judged
    assert (training.run.framework, training.run.facts.version) == ("verl", "0.9.1")
    assert (engine.run.framework, engine.run.facts.version) == ("vllm", "0.32.0")
    found = [{item.rule.id: item.verdict.state for item in one.items}["eager"] for one in report.judged]
    assert found == ["PASS", "FAIL"]
    (alone,) = report_of(SCRIPTS / "serve_vllm.sh").judged
    assert {item.rule.side for item in alone.items} == {"infer", "both"}


def test_of_one_side_only_its_rules():
    run = run_of(verl())
    train, infer = (states(judge([], [run], side=side)) for side in ("train", "infer"))
    assert "seed" in train and "seed" not in infer
    assert "eager" in infer and "eager" not in train
    assert "dump-on" in train and "dump-on" in infer


def test_documents(tmp_path):
    assert states(report_of(SCRIPTS / "verl.yaml"))["remove-padding"] == "FAIL"
    report = report_of(SCRIPTS / "job.yaml")
    assert states(report)["balance-batch"] == "PASS"
    (tmp_path / "engine.yaml").write_text("enforce-eager: true\nenable-prefix-caching: false\n")
    assert {states(report_of(tmp_path / "engine.yaml"))[rule] for rule in ("eager", "prefix-caching")} == {"PASS"}
    (tmp_path / "c.json").write_text('{"trainer": {"balance_batch": false}, "data": {"seed": 1}}')
    assert states(report_of(tmp_path / "c.json"))["balance-batch"] == "PASS"


def test_lost_flags_are_named(tmp_path):
    base = SCRIPTS / "slime.sh"
    script = tmp_path / "slime.sh"
    text = base.read_text().replace("   --rm-type deepscaler\n", "").replace("--num-rollout 3000", "--num-rollout 1")
    script.write_text(text.replace("   --balance-data\n", ""))
    known = Known()
    run, like = (runs([parse(path, path.read_text(), known)], known) for path in (script, base))
    report = judge([], run, baseline=like)
    assert states(report)["baseline"] == "FAIL"
    (judged,) = report.judged
    kinds = {one.name: (one.kind, one.wanted) for one in judged.lost}
    assert kinds["--rm-type"] == ("lost", False)
    assert kinds["--num-rollout"] == ("changed", False)
    assert kinds["--balance-data"] == ("lost", True)  # a rule asks for that
    reason = next(item.verdict.reason for item in report.all() if item.rule.id == "baseline")
    assert "--rm-type" in reason and "--balance-data" not in reason


def test_nothing_judged_is_no_pass():
    assert not judge([], []).passed
