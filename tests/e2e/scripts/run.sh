#!/usr/bin/env bash
# The baseline: the engine answers the sample, then the trainer takes a step on it.
set -euo pipefail
SEEN=@FOLDER@/infer.seen.json bash @FOLDER@/infer.sh "$@"
SEEN=@FOLDER@/train.seen.json bash @FOLDER@/train.sh
