"""What must not leave the machine, wherever it was put; and what has to pass."""

from __future__ import annotations

import pytest

from stages.dumps.leaks import LeakError, check_leaks

IDS = [151644, 8948, 198, 2610, 525, 264, 10950, 17847]


@pytest.mark.parametrize(
    "part",
    [
        {"switches": {"PROMPT": "hello"}},
        {"switches": {"X": "151644, 8948, 198, 2610, 525, 264"}},
        {"switches": {"X": "[151644 8948 198 2610 525 264]"}},
        {"switches": {"X": "-0.11,-0.25,-3.5,-0.01,-2.0,-0.5"}},
        {"config": {"data.promptText": "x"}},
        {"config": {"Prompt-Ids": "x"}},
        {"config": {"inputIds": 1}},
        {"config": {"prompt_tokens": IDS}},
        {"config": {"step": IDS * 2}},
        {"config": {"rank": [0.1, 0.2, 0.3, 0.4, 0.5]}},
        {"config": {"shape": [0.5] * 6}},
        {"config": {"list": [[1, 5], [3, 2], [9, 4]]}},
        {"config": {f"v{at}": at * 0.5 for at in range(40)}},
        {"config": {"What is the capital of France?\nParis": 1}},
        {"config": {"x" * 300: 1}},
        {"task": {"baseline_command": "python run.py --prompt 'What is the capital of France?'"}},
        {"task": {"baseline_command": 'PROMPT="Who are you, really" bash run.sh'}},
        {"task": {"scope": "password: hunter2hunter2"}},
    ],
)
def test_planted(part):
    with pytest.raises(LeakError) as raised:
        check_leaks({"format": "x", **part})
    told = f"{raised.value.what} {raised.value.why}"
    for secret in ("hello", "8948", "France", "really", "hunter2"):
        assert secret not in told


@pytest.mark.parametrize(
    "part",
    [
        {
            "command": "CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 bash run.sh data.max_prompt_length=1024 data.prompt_key=prompt"
        },
        {"command": "ASCEND_RT_VISIBLE_DEVICES=7,6,5,4,3,2,1,0 python -m verl.trainer --max-tokens 16"},
        {"ranks": list(range(64)), "missing_layers": [3, 9, 12, 40, 41, 59], "shape": [1, 11, 4096]},
        {"prompt_tokens": 190, "token_ids_equal": True, "sample.prompt_source": "/data/gsm8k.parquet row 0"},
        {"time": "2026-11-29T17:00:00Z", "text_of": "the input has 16 tokens, the prompt 11"},
        {"config": {"step": [0, 1], "rank": [], "list": ["Module.model.layers.0"], "level": "L0"}},
    ],
)
def test_what_passes(part):
    check_leaks({"format": "x", **part})
