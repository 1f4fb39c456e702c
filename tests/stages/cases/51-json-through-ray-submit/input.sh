#!/usr/bin/env bash
# Four ways to hand JSON to an entry point; a shell parses it once more behind `ray job submit`.
ray job submit -- python3 train.py --rollout-batch-size 1 --cfg '{"dump_config_path": "/d/a.json"}'
ray job submit -- python3 train.py --rollout-batch-size 1 --cfg "{'a':{'n':1}}"
ray job submit -- python3 train.py --rollout-batch-size 1 --cfg '{"dump_config_path":"/d/a.json"}' --next 1
ARGS='--cfg {"dump_config_path": "/d/a.json"}'; ray job submit -- python3 train.py --rollout-batch-size 1 $ARGS
