#!/bin/bash
export VLLM_ASCEND_ENABLE_NZ=0
ROLLOUT_ARGS=(
   --rollout-batch-size 1
   --n-samples-per-prompt 2
   --global-batch-size 2
   --rm-type math
)
VLLM_ARGS=(
   --vllm-additional-config '{"weight_nz_mode":0}'
   --vllm-enforce-eager
   --vllm-enable-prefix-caching
   --rollout-num-gpus-per-engine 1
)
ray job submit --address="http://127.0.0.1:8265" -- python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 2 --colocate --data-pad-size-multiplier 1 "${ROLLOUT_ARGS[@]}" "${VLLM_ARGS[@]}"
