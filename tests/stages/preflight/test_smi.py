"""The vendors' tools: every layout that is known of them is read, and what they do not tell stays unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from stages.preflight.smi import npu, nvidia, rocm
from stages.preflight.smi.card import Card, Holder, UnreadableError

SAMPLES = Path(__file__).parent / "samples"


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


def test_npu_with_one_chip_each():
    free, held, other = npu.parse([sample("npu-910b.txt")])
    assert free == Card("npu", "0000:C1:00.0/0", 0, "910B3", "OK", 3388, 65536, ())
    assert (held.index, held.used, held.holders) == (1, 61204, (Holder(4242, "", 57700), Holder(4243, "", 131)))
    assert (other.index, other.holders) == (2, ())


def test_npu_with_two_chips_each_counts_by_physical_id():
    cards = npu.parse([sample("npu-two-chips.txt")])
    assert [card.index for card in cards] == [0, 1, 2, 3]
    assert [card.holders for card in cards[:3]] == [(), (), ()]
    assert cards[3] == Card(
        "npu", "0000:A1:00.0/1", 3, "Ascend910", "OK", 60114, 65536, (Holder(7001, "VLLMWorker_TP", 57011),)
    )


def test_npu_without_hbm_has_its_memory_in_the_other_column():
    first, second = npu.parse([sample("npu-310p.txt")])
    assert (first.id, first.index, first.used, first.total) == ("0000:06:00.0/0", 0, 1612, 44280)
    assert (second.id, second.index, second.holders) == ("0000:06:00.0/1", 1, ())


def test_npu_that_tells_the_number_in_the_container():
    held, ill = npu.parse([sample("npu-container-column.txt")])
    assert held.holders == (Holder(880012, "sglangschedul", 48954, 318), Holder(880400, "python3.11", 150, None))
    assert (ill.health, ill.holders) == ("Alarm", ())


def test_npu_950():
    free, held = npu.parse([sample("npu-950.txt")])
    assert free == Card("npu", "0/0", 0, "Ascend950", "OK", 4100, 114688, ())
    assert (held.index, held.holders) == (3, (Holder(5150, "python3", 85000),))


def test_npu_without_its_process_table_does_not_say_nobody():
    text = sample("npu-910b.txt").split("| NPU     Chip")[0]
    assert [card.holders for card in npu.parse([text])] == [None, None, None]
    text = sample("npu-910b.txt").replace("| No running processes found in NPU 2", "| cut off")
    assert [card.holders is None for card in npu.parse([text])] == [False, False, True]


def test_nvidia():
    held, free, unknown = nvidia.parse([sample("nvidia-cards.csv"), sample("nvidia-holders.csv")])
    assert held.holders == (Holder(3120, "VLLM::EngineCore", 70012), Holder(3121, "/opt/a, b/bin/python3", None))
    assert (held.name, held.used, held.total) == ("NVIDIA H100 80GB HBM3", 71034, 81559)
    assert (free.index, free.holders) == (1, ())
    assert (unknown.used, unknown.total) == (None, None)
    assert nvidia.parse([sample("nvidia-cards.csv"), ""])[0].holders == ()
    assert nvidia.parse([sample("nvidia-cards.csv"), "No running processes found\n"])[0].holders == ()
    assert nvidia.parse([sample("nvidia-cards.csv"), "[Insufficient Permissions]\n"])[0].holders is None


def test_rocm():
    (card,) = rocm.parse([sample("rocm-one.json")])
    assert (card.id, card.name, card.used, card.total) == ("0x91a2b3c4d5e6f708", "AMD Instinct MI300X", 133535, 196592)
    assert card.holders == (Holder(2501, "ray::RayTrainWo", 133120), Holder(2402, "odd, name", None))


def test_rocm_does_not_tell_which_of_two_cards_is_held():
    cards = rocm.parse([sample("rocm-two.json")])
    assert [card.holders for card in cards] == [None, None]
    assert rocm.processes(sample("rocm-two.json")) == [Holder(2501, "python3", 133120)]


@pytest.mark.parametrize(
    ("module", "outputs"),
    [
        (npu, ["dcmi module initialize failed. ret is -8005\n"]),
        (npu, ["| NPU Name | Health | x |\n| Chip | Bus-Id | y |\n| 0 910B | OK | z |\n| a | b | c |\n"]),
        (npu, [""]),
        (nvidia, ["NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", ""]),
        (nvidia, ["0, GPU-1, x, 1, 2\nNo devices were found\n", ""]),
        (rocm, ["WARNING: No JSON data to report\n"]),
        (rocm, ['{"system": {}}']),
        (rocm, ["[" * 100_000]),
    ],
)
def test_an_answer_that_is_none(module, outputs):
    with pytest.raises(UnreadableError):
        module.parse(outputs)
