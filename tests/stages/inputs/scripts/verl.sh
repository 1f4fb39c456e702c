#!/usr/bin/env bash
# GRPO on one node; everything below can be set from outside.
set -xeuo pipefail

MODEL_PATH=${MODEL_PATH:-Qwen/Qwen3-8B}
NGPUS_PER_NODE=${NGPUS_PER_NODE:-8}

train_batch_size=${TRAIN_BATCH_SIZE:-64}
mini_batch_size=${MINI_BATCH_SIZE:-32}
max_prompt_length=${MAX_PROMPT_LENGTH:-1024}
max_response_length=${MAX_RESPONSE_LENGTH:-2048}
tokens_per_gpu=$((max_prompt_length + max_response_length))
rollout_n=${ROLLOUT_N:-8}
actor_tp=${ACTOR_TP:-2}
rollout_tp=${ROLLOUT_TP:-4}

train_files=$HOME/data/gsm8k/train.parquet

DATA=(
    data.train_files="$train_files"
    data.train_batch_size=${train_batch_size}
    data.max_prompt_length=${max_prompt_length}
    data.max_response_length=${max_response_length}
)

ACTOR=(
    actor_rollout_ref.model.path="$MODEL_PATH"
    actor_rollout_ref.actor.ppo_mini_batch_size=${mini_batch_size}
    actor_rollout_ref.actor.use_dynamic_bsz=True  # by tokens
    actor_rollout_ref.actor.ppo_max_token_len_per_gpu=${tokens_per_gpu}
    actor_rollout_ref.actor.megatron.tensor_model_parallel_size=${actor_tp}
    actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=1
)

ROLLOUT=(
    actor_rollout_ref.rollout.name=vllm
    actor_rollout_ref.rollout.n=${rollout_n}
    actor_rollout_ref.rollout.tensor_model_parallel_size=${rollout_tp}
)

TRAINER=(
    trainer.balance_batch=True
    trainer.logger='["console","wandb"]'
    trainer.n_gpus_per_node=${NGPUS_PER_NODE}
    trainer.nnodes=1
    trainer.val_before_train=False
)

python3 -m verl.trainer.main_ppo \
    model_engine=megatron \
    "${DATA[@]}" \
    "${ACTOR[@]}" \
    "${ROLLOUT[@]}" \
    "${TRAINER[@]}" \
    "$@"
