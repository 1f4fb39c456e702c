#!/usr/bin/env bash
set -euo pipefail
export OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 PYTHONPATH=@ENGINE@

python3 -m sglang.launch_server \
    --model-path @MODEL@ \
    --device cpu \
    --dtype float32 \
    --attention-backend torch_native \
    --sampling-backend pytorch \
    --mem-fraction-static 0.1 \
    --max-total-tokens 512 \
    --context-length 64 \
    --chunked-prefill-size -1 \
    --skip-tokenizer-init "$@"
