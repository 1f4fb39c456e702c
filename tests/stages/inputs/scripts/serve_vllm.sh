#!/bin/bash
PORT=${1:-8000}
exec vllm serve /models/m --port "$PORT" -tp 2 --max-num-batched-tokens 4096 > serve.log 2>&1
