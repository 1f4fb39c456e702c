"""What keeps a package from being written: dumps that are gone, a card and a report that disagree, a place that is not ours."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from stages.card.evidence import digest
from stages.card.order import INSTRUMENT, VERIFY
from stages.card.store import changing, read_card
from tests.stages.dumps.test_handoff import hand_over, verified  # noqa: F401 - a fixture
from tests.stages.dumps.test_verify import card  # noqa: F401 - a fixture


def test_dumps_that_went_or_changed_after_the_verification(verified):  # noqa: F811
    dump = verified.parent.parent / "capture/dump/infer/step1/rank0/dump.json"
    os.utime(dump, (time.time() + 60, time.time() + 60))
    assert "has changed since" in hand_over(verified, code=3)["error"]["why"]
    dump.unlink()
    assert "is not there any more" in hand_over(verified, code=3)["error"]["why"]


def test_a_card_that_says_more_than_its_report(verified):  # noqa: F811
    """Two verifications at once, or a hand on the card."""
    path = verified.parent.parent / "capture/dump_verification.json"
    report = json.loads(path.read_text())
    path.write_text(json.dumps({**report, "comparable": False}))
    with changing(verified) as held:
        held.data["stages"][str(VERIFY)]["files"][str(path)] = digest(path)
    assert hand_over(verified, code=3)["error"]["kind"] == "not-comparable"
    path.write_text(json.dumps({**report, "chosen": None}))
    with changing(verified) as held:
        held.data["stages"][str(VERIFY)]["files"][str(path)] = digest(path)
    assert hand_over(verified, code=4)["error"]["kind"] == "report"
    with changing(verified) as held:
        del held.data["stages"][str(VERIFY)]["result"]["report"]
    hand_over(verified, code=3)


def test_a_config_that_is_no_strict_json(verified):  # noqa: F811
    path = read_card(verified).data["stages"][str(INSTRUMENT)]["result"]["sides"]["infer"]["config"]
    Path(path).write_text('{"task": "tensor", "limit": NaN}')
    assert hand_over(verified)["sides"]["infer"]["msprobe_config"]["content"] is None
    os.unlink(path)
    os.mkfifo(path)
    assert hand_over(verified)["sides"]["infer"]["msprobe_config"]["content"] is None


def test_where_the_package_goes(verified, tmp_path):  # noqa: F811
    tree = tmp_path / "tree"
    (tree / "out").mkdir(parents=True)
    with changing(verified) as held:
        held.put("train.checkout", str(tree))
    hand_over(verified, "--out", tree / "out", code=2)
    assert list((tree / "out").iterdir()) == []
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "handoff.json").write_text('{"mine": 1}')
    hand_over(verified, "--out", foreign, code=3)
    assert (foreign / "handoff.json").read_text() == '{"mine": 1}'
    hand_over(verified, "--out", tmp_path / "free")
    hand_over(verified, "--out", tmp_path / "free")
