"""What a process is, by its words."""

from __future__ import annotations

import pytest

from stages.preflight.kinds import is_spawned, kind


@pytest.mark.parametrize(
    ("argv", "wanted"),
    [
        (["VLLM::EngineCore"], "vLLM"),
        (["VLLM::Worker_TP0"], "vLLM"),
        (["EngineCore_0"], "vLLM"),
        (["/venv/bin/python3.11", "/venv/bin/vllm", "serve", "/models/a"], "vLLM"),
        (["python", "-u", "-m", "vllm.entrypoints.openai.api_server"], "vLLM"),
        (["sglang::scheduler_TP0"], "SGLang"),
        (["python3", "-X", "faulthandler", "-m", "sglang.launch_server", "--port", "30000"], "SGLang"),
        (["ray::IDLE"], "Ray"),
        (["ray::WorkerDict.actor_rollout_generate"], "Ray"),
        (["/venv/lib/python3.11/site-packages/ray/core/src/ray/raylet/raylet", "--raylet_socket_name=x"], "Ray"),
        (["/venv/lib/python3.11/site-packages/ray/core/src/ray/gcs/gcs_server"], "Ray"),
        (["/venv/bin/python", "-u", "/venv/lib/python3.11/site-packages/ray/dashboard/dashboard.py"], "Ray"),
        (["python3", "/venv/bin/ray", "start", "--head"], "Ray"),
        (["/venv/bin/python", "/venv/bin/torchrun", "--nproc_per_node=8", "train.py"], "trainer"),
        (["python3", "-m", "torch.distributed.run", "x.py"], "trainer"),
        (["python3", "-m", "verl.trainer.main_ppo", "a=b"], "trainer"),
        (["python3", "train.py", "--actor-num-nodes", "1"], "trainer"),
        (["python3", "/root/slime/train.py"], "trainer"),
        (["python", "pretrain_gpt.py"], "trainer"),
        (["deepspeed", "x.py"], "trainer"),
        # names that only stand somewhere
        (["vim", "vllm.sh"], None),
        (["grep", "vllm", "serve"], None),
        (["tail", "-f", "/logs/raylet.out"], None),
        (["bash", "-c", "vllm serve"], None),
        (["python3", "-c", "import vllm"], None),
        (["python3", "train.py"], None),
        (["python3", "-m", "vllmish.server"], None),
        (["python3"], None),
        (["node", "ray.js"], None),
    ],
)
def test_kind(argv, wanted):
    assert kind(argv) == wanted


def test_a_child_of_multiprocessing():
    assert is_spawned(["python3", "-c", "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5)"])
    assert not is_spawned(["python3", "-m", "http.server"])
