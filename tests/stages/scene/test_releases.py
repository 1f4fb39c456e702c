"""The scene on released trees, got through pip: what runs by default, and the lines of the three places, checked by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stages.scene.test_scene import scene, thing
from tests.verl.wheels import unpack as released

pytestmark = pytest.mark.network


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory):
    """``release(version)``: verl's wheel, unpacked."""

    def unpack(version: str) -> Path:
        return released("verl", version, tmp_path_factory.mktemp(f"verl-{version}"))

    return unpack


@pytest.mark.parametrize(
    ("version", "runs", "native", "trim", "capture", "skips"),
    [
        (
            "0.6.1",
            {"worker": "legacy", "trainer": "v0", "rollout": "spmd"},
            False,
            {"verl-legacy-fsdp": ("verl/workers/fsdp_workers.py", 978)},
            {
                "verl-legacy-fsdp": ("verl/workers/actor/dp_actor.py", 351),
                "verl-legacy-megatron": ("verl/workers/actor/megatron_actor.py", 561),
            },
            ["verl/trainer/ppo/ray_trainer.py:1110"],
        ),
        (
            "0.7.1",
            {"worker": "legacy", "trainer": "v0", "rollout": "async"},
            False,
            {
                "verl-legacy-fsdp": ("verl/workers/fsdp_workers.py", 1118),
                "verl-legacy-megatron": ("verl/workers/megatron_workers.py", 891),
            },
            {"verl-legacy-fsdp": ("verl/workers/actor/dp_actor.py", 478)},
            ["verl/trainer/ppo/ray_trainer.py:1394", "verl/experimental/separation/ray_trainer.py:493"],
        ),
        (
            "0.9.1",
            {"worker": "engine", "trainer": "V1", "rollout": "async"},
            True,
            {"verl-engine-fsdp": ("verl/workers/engine_workers.py", 704)},
            {"verl-engine-fsdp": ("verl/workers/engine/fsdp/transformer_impl.py", 760)},
            ["verl/trainer/ppo/v1/trainer_base.py:1642"],
        ),
    ],
)
def test_verl(release, version, runs, native, trim, capture, skips):
    side = scene(release(version))
    assert {one["about"]: one["runs"] for one in side["defaults"]} == runs
    assert (side["version"]["declared"], side["native_msprobe"], side["changes"]) == (version, native, [])
    assert (side["backend"], side["backends"]) == (None, ["fsdp", "megatron"])
    for role, wanted in (("trim", trim), ("capture", capture)):
        places = thing(side, role)["places"]
        running = {one["recipe"]: (one["file"], one["line"]) for one in places if one["runs"] is not False}
        assert wanted.items() <= running.items()
        assert {one["recipe"].split("-")[1] for one in places if one["runs"] is not False} == {runs["worker"]}
    assert {*skips} <= {f"{one['line']['file']}:{one['line']['line']}" for one in side["skips"]}
    assert {one["shape"] for one in side["loops"]} == {"micro-batch loop", "megatron schedule"}
    assert thing(side, "link")["state"] == "found"


def test_the_engine_in_the_trainers_process(release):
    side = scene(release("0.6.1"), "--side", "infer")
    (place,) = thing(side, "capture")["places"]
    assert (place["file"], place["line"], place["runs"]) == (
        "verl/workers/rollout/vllm_rollout/vllm_rollout_spmd.py",
        382,
        True,
    )
    assert side["skips"] == []  # the trainer's


def test_a_changed_statement_is_a_change_that_blocks(release):
    tree = release("0.9.1")
    file = tree / "verl/workers/engine_workers.py"
    file.write_text(
        file.read_text().replace("output = self.actor.infer_batch(data)", "output = self.actor.infer(data)")
    )
    side = scene(tree, code=1)
    missed = [one["what"].split(":")[0] for one in side["changes"] if one["blocks"]]
    assert missed == ["verl-engine-fsdp/dump-log-prob", "verl-engine-megatron/dump-log-prob"]
    assert thing(side, "trim")["state"] == "candidates"
    assert thing(side, "capture")["state"] == "found"
