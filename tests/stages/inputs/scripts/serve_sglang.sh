#!/bin/bash
python3 -m sglang.launch_server --model-path /models/m --tp 2 --disable-cuda-graph --chunked-prefill-size=-1 &
