"""The page: self-contained, escaped, its pictures well-formed; nothing of a prompt, and no path outside the capture."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from stages.dumps.charts import SHOWN_STEPS, difference_plot, timeline
from stages.dumps.checks import judge
from stages.dumps.page import make_page
from stages.dumps.report import document
from stages.dumps.situation import Situation
from stages.dumps.verify import Source, verify
from tests.stages.dumps.captures import PROMPT, capture, prefill, step

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
VOID = {"meta", "br", "img", "hr", "input", "link"}


class Reader(HTMLParser):
    """Fails on tags that are not closed; collects every tag and attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def report_of(root: Path, train: Path, infer: Path) -> dict[str, Any]:
    found = verify(
        {"train": Source(train, Situation("train", framework="verl")), "infer": Source(infer, Situation("infer"))}
    )
    return document(found, judge(found), root=root, round_=0)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


def pictures(page: str) -> list[ET.Element]:
    return [ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.S)]


def test_a_capture(tmp_path):
    page = make_page(report_of(tmp_path, *capture(tmp_path, ranks=2)))
    reader = read(page)
    assert len(pictures(page)) == 2
    assert not {"script", "link", "img", "iframe", "object", "form"} & {tag for tag, _attributes in reader.tags}
    assert not [
        name for _tag, given in reader.tags for name in given if name.startswith("on") or name in ("src", "href")
    ]
    assert "default-src 'none'" in page
    assert "prefers-color-scheme: dark" in page
    assert "url(" not in page
    for part in (
        "comparable",
        "req-7-1a2b3c4d",
        "vllm-suffix",
        "layers.2.out",
        "int32[11]",
        "prefill_logprob_diff_mean",
    ):
        assert part in page
    assert str(tmp_path) not in page
    assert "dump/train" in page


def test_hostile_names(tmp_path):
    train, infer = tmp_path / "t", tmp_path / "i"
    for side, path in (("train", train), ("infer", infer)):
        step(side, path, 0, {HOSTILE: PROMPT})
        prefill(side, path, HOSTILE, PROMPT)
    report = report_of(tmp_path, train, infer)
    assert HOSTILE not in str(report)  # no id: it goes by its hash
    report["chosen"]["train_request"] = report["statement"] = report["association"][0]["train_request"] = HOSTILE
    report["steps"][0]["why"] = report["sides"]["train"]["framework"] = HOSTILE
    page = make_page(report)
    reader = read(page)
    assert "script" not in {tag for tag, _given in reader.tags}
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert len(pictures(page)) == 2


def test_characters_that_turn_the_line_around(tmp_path):
    report = report_of(tmp_path, *capture(tmp_path))
    report["statement"] = "a\u202eb\x00c"
    report["steps"][0]["why"] = "x\x07]]>y"
    page = make_page(report)
    assert "\u202e" not in page
    assert "\x00" not in page
    assert len(pictures(page)) == 2


def test_folders_outside_the_capture_are_left_out(tmp_path):
    report = report_of(tmp_path, *capture(tmp_path))
    report["problems"].append(
        {
            "name": "log-unreadable",
            "level": "error",
            "what": "/home/somebody/private/run.log cannot be read",
            "where": "/home/somebody/private/run.log:3",
            "todo": "see docs/dumps.md",
        }
    )
    page = make_page(report)
    assert "somebody" not in page
    assert "…/run.log:3" in page
    assert "see docs/dumps.md" in page


def test_a_failed_capture_shows_its_causes(tmp_path):
    train, _infer = capture(tmp_path)
    page = make_page(report_of(tmp_path, train, tmp_path / "none"))
    read(page)
    assert "Why the infer side left no dump" in page
    assert "not checked" in page
    assert len(pictures(page)) == 1  # no log-probs, no plot


def test_empty_folders(tmp_path):
    page = make_page(report_of(tmp_path, tmp_path / "t", tmp_path / "i"))
    read(page)
    assert "no step was dumped" in page


@pytest.mark.parametrize(
    "differences",
    [
        [0.0],
        [0.0, 0.0, 0.0],
        [1e-9, 1e-3, 0.0],
        [0.25],
        [1e-300, 1.0],
        [0.5] * 5000,
        [1e-7 * at for at in range(700)],
    ],
)
def test_the_plot(differences):
    picture = ET.fromstring(difference_plot(differences))
    marks = [one for one in picture.iter() if one.tag.endswith("circle")]
    assert 0 < len(marks) <= 600
    for mark in marks:
        assert 0 <= float(mark.get("cy")) <= 260
        assert 0 <= float(mark.get("cx")) <= 860
    hollow = [mark for mark in marks if mark.get("class") == "zero"]
    assert bool(hollow) == any(
        max(differences[at : at + 1]) == 0 for at in range(len(differences)) if len(differences) < 600
    )


def lane(side: str, rank: int, count: int) -> list[dict[str, Any]]:
    one = {"side": side, "rank": rank, "pid": None, "tokens": 12345, "label": "decode", "why": "", "chosen": False}
    return [{**one, "step": number} for number in range(count)]


def test_the_timeline():
    """Ranks that did the same share a lane; many steps are counted, and do not fill the page."""
    steps = [step for rank in range(64) for step in lane("train", rank, 3)] + lane("infer", 0, 1000)
    picture = ET.fromstring(timeline(steps))
    words = [one.text for one in picture.iter() if one.tag.endswith("text")]
    assert "train rank0 (+63)" in words
    assert f"+{1000 - SHOWN_STEPS}" in words
    assert "12k" in words
    assert len([one for one in picture.iter() if one.tag.endswith("rect")]) == 3 + SHOWN_STEPS
    ET.fromstring(timeline([]))
