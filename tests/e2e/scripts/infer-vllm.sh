#!/usr/bin/env bash
set -euo pipefail
export OMP_NUM_THREADS=1 PYTHONPATH=@ENGINE@

vllm serve @MODEL@ \
    --dtype float32 \
    --max-model-len 64 \
    --max-num-seqs 2 \
    --no-enable-chunked-prefill \
    --skip-tokenizer-init "$@"
