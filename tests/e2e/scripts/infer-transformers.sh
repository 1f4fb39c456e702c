#!/usr/bin/env bash
set -euo pipefail
export OMP_NUM_THREADS=1 PYTHONPATH=@ENGINE@

python3 @HERE@/generate_transformers.py @MODEL@ "$@"
