"""The ledger as a file: torn, tampered with, hostile; verify, forget."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from codemods.errors import InvalidError
from codemods.splice import Indent, PlannedEdit, Splice
from patch_ledger import chain
from patch_ledger.admin import forget, recover, show, verify
from patch_ledger.records import FileEntry, Intent, intent_as_json, intent_from_json
from patch_ledger.revert import revert
from patch_ledger.status import status
from patch_ledger.store import OBJECTS, open_ledger
from tests.ledger.conftest import MODULE
from tests.ledger.trees import PlainTree, after_line, apply, snapshot

EDITS = {"pkg/a.py": [after_line(MODULE, 1, b"    tap(x)\n")]}


def ledger_file(tree: PlainTree) -> Path:
    return open_ledger(tree).place / chain.NAME


def test_an_intent_survives_json_without_loss() -> None:
    edit = PlannedEdit(
        "r", "e", "d" * 64, (-1, 3), "A.f", 7, "why\u2028", splices=(
            Splice(5, b"\xff\x00", "naïve\r\n".encode(), True, (0, -2, 1), (0, 3)), Splice(9, b"", b"")
        ), indents=(Indent(b"\t", (6, 8), 0, 1),),
    )  # fmt: skip
    file = FileEntry("a/b.py", "0" * 64, None, None, "1" * 64, (edit,), 0o755, 2, "root:root", "l.py", ("a",), "ok")
    intent = Intent("0123456789ab", "apply", "1.0", "2024-01-01T00:00:00Z", (file,), None)
    assert intent_from_json(json.loads(json.dumps(intent_as_json(intent)))) == intent


def test_a_torn_last_line_is_a_crash_and_is_repaired(in_git: PlainTree) -> None:
    apply(in_git, EDITS)
    path = ledger_file(in_git)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for cut in (1, len(lines[-1]) // 2, len(lines[-1]) - 1):
        path.write_bytes(whole[: len(whole) - cut])
        assert status(in_git).interrupted is not None
        assert recover(in_git).repaired is not None
        assert (in_git.root / "pkg/a.py").read_bytes() != MODULE, "every file was written, so it is committed"
        assert status(in_git).interrupted is None and verify(in_git).problems == ()
    revert(in_git)
    assert (in_git.root / "pkg/a.py").read_bytes() == MODULE


@pytest.mark.parametrize("line", [1, 2])
def test_a_tampered_line_is_named_and_forget_is_the_way_out(in_git: PlainTree, line: int) -> None:
    apply(in_git, EDITS)
    path = ledger_file(in_git)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace(b'"txn"', b'"TXN"')
    path.write_bytes(b"".join(lines))
    before = snapshot(in_git.root)
    for command in (status, revert, recover, show):
        with pytest.raises(InvalidError, match=f"line {line}") as caught:
            command(in_git)
        assert "forget" in str(caught.value.todo) and "verify" in str(caught.value.todo)
    assert verify(in_git).problems
    forget(in_git)
    assert snapshot(in_git.root) == before and status(in_git).edits == ()


def test_removed_and_swapped_lines_break_the_chain(in_git: PlainTree) -> None:
    apply(in_git, EDITS)
    revert(in_git)
    path = ledger_file(in_git)
    lines = path.read_bytes().splitlines(keepends=True)
    for damaged in (lines[1:], [lines[0], *lines[2:]], [lines[2], lines[3], lines[0], lines[1]]):
        path.write_bytes(b"".join(damaged))
        with pytest.raises(InvalidError, match="does not follow"):
            status(in_git)


HOSTILE = [
    {"path": "../../etc/passwd"},
    {"path": "/etc/passwd"},
    {"path": ".git/config"},
    {"path": "a\x00b"},
    {"path": 7},
    {"path": None},
    {"before": "zz"},
    {"before": "../../../etc/passwd"},
    {"mode": 1 << 30},
    {"mode": "0755"},
    {"links": -1},
    {"edits": {}},
    {"edits": [7]},
    {"made": ["../x"]},
    {"made": "pkg"},
]


@pytest.mark.parametrize("change", HOSTILE, ids=str)
def test_a_hostile_record_with_good_hashes_is_refused(in_git: PlainTree, change: dict[str, object]) -> None:
    apply(in_git, EDITS)
    place = open_ledger(in_git).place
    record = intent_as_json(open_ledger(in_git).history[0][0])
    record["files"][0] |= change
    (place / chain.NAME).unlink()
    chain.append(place, chain.Chain(), record)
    before = snapshot(in_git.root)
    for command in (status, revert):
        with pytest.raises(InvalidError, match="line 1"):
            command(in_git)
    assert snapshot(in_git.root) == before


@pytest.mark.parametrize(
    "data",
    [b"{}\n", b"null\n", b"\n", b"\xff\xfe\n", b"[" * 100_000 + b"\n", b"9" * 10_000 + b"\n", b"x" * 1_000_000 + b"\n"],
    ids=["object", "null", "empty", "bytes", "deep", "number", "long"],
)
def test_lines_that_are_no_records(in_git: PlainTree, data: bytes) -> None:
    apply(in_git, EDITS)
    ledger_file(in_git).write_bytes(data)
    with pytest.raises(InvalidError, match="line 1"):
        status(in_git)


def test_a_path_that_became_a_link_out_of_the_tree_is_left_alone(plain: PlainTree, tmp_path: Path) -> None:
    apply(plain, EDITS)
    outside = tmp_path / "outside.py"
    path = plain.root / "pkg/a.py"
    path.rename(outside)
    path.symlink_to(outside)
    data = outside.read_bytes()
    refused = revert(plain, force=True).refused
    assert refused[0].state == "unreadable" and "leads out of the tree" in refused[0].why
    assert outside.read_bytes() == data


def test_a_ledger_that_is_a_link_is_refused(plain: PlainTree, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (plain.root / ".probepatch").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidError, match="not a folder of our making"):
        apply(plain, EDITS)
    assert os.listdir(tmp_path / "elsewhere") == []


def test_a_lost_original_is_named(in_git: PlainTree) -> None:
    apply(in_git, EDITS)
    for path in (open_ledger(in_git).place / OBJECTS).iterdir():
        path.write_bytes(b"other")
    assert "missing or changed" in verify(in_git).problems[0]
    with pytest.raises(InvalidError, match="original bytes"):
        revert(in_git)


def test_forget_touches_no_file(plain: PlainTree, in_git: PlainTree) -> None:
    apply(in_git, EDITS)
    before = snapshot(in_git.root)
    place = open_ledger(in_git).place
    forget(in_git)
    assert snapshot(in_git.root) == before
    assert list(place.glob("ledger-*.jsonl")) and list(place.glob(f"ledger-*.{OBJECTS}/*"))
    assert status(in_git).edits == () and revert(in_git).txn == ""


def test_forget_in_a_plain_folder_removes_the_ledger(plain: PlainTree) -> None:
    apply(plain, EDITS)
    before = snapshot(plain.root)
    forget(plain)
    assert snapshot(plain.root) == before and os.listdir(plain.root) == ["pkg"]
