"""``recipe explain``: whose line it is, which edit has a share in it, and what became of it since. Agrees with ``status``."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import cli
from codemods.splice import Indent, PlannedEdit, Splice, leading, render, trailing
from patch_ledger.explain import LineOrigin, line_span, origin
from tests.cli.test_commands import ADDED, FILES, RUNNER, WORKER, answer, run
from tests.conftest import write

IMPORT, WITH = "from tinyrl import probepatch_tinyrl", "with torch.no_grad()"


def line_of(checkout: Path, file: str, words: str) -> int:
    lines = (checkout / file).read_text().split("\n")
    return next(number for number, line in enumerate(lines, 1) if words in line)


def explain(checkout: Path, file: str, words: str, *more: str) -> dict:
    place = f"{file}:{line_of(checkout, file, words)}"
    found = answer("recipe-explain", "recipe", "explain", checkout, place, *more)
    states = {(edit["path"], edit["recipe"], edit["edit"]): edit["state"] for edit in status(checkout)}
    for edit in found["edits"]:
        assert states[found["path"], edit["recipe"], edit["edit"]] == edit["state"]
    return found


def status(checkout: Path) -> list[dict]:
    return json.loads(run("status", checkout, "--json").stdout)["edits"]


def shares(found: dict) -> list[tuple[str, str]]:
    return [(f"{edit['recipe']}/{edit['edit']}", edit["did"]) for edit in found["edits"]]


@pytest.fixture
def applied(demo_checkout: Path) -> Path:
    answer("apply", "apply", demo_checkout, *FILES)
    return demo_checkout


def test_a_line_of_ours(applied):
    found = explain(applied, RUNNER, "probepatch_tinyrl.capture(")
    assert (found["owner"], shares(found)) == ("ours", [("tinyrl-engine/capture-prefill", "line")])
    (edit,) = found["edits"]
    assert (edit["state"], edit["command"], edit["symbol"]) == ("applied", "apply", "ModelRunner.execute_model")
    assert edit["why"] == "the requests of a prefill step, right before its forward"
    assert edit["txn"] == answer("ledger-show", "ledger", "show", applied)["transactions"][0]["txn"]
    assert (edit["verb"], edit["recipe_file"]) == (None, None)
    (edit,) = explain(applied, RUNNER, "probepatch_tinyrl.capture(", *FILES)["edits"]
    assert (edit["verb"], edit["same_recipe"]) == ("before", True)
    assert edit["recipe_file"].endswith("tinyrl-engine.yaml")
    shown = run(
        "recipe", "explain", applied, f"{RUNNER}:{line_of(applied, RUNNER, 'probepatch_tinyrl.capture(')}"
    ).stdout
    assert "an edit of ours put the line here" in shown
    assert "tinyrl-engine/capture-prefill" in shown


def test_a_part_of_a_line_and_a_shared_file(applied):
    found = explain(applied, WORKER, WITH)
    assert (found["owner"], shares(found)) == ("commit", [("tinyrl-trainer/capture-micro-batch", "part")])
    found = explain(applied, ADDED, "import")
    assert found["owner"] == "ours"
    assert shares(found) == [("tinyrl-engine/helpers", "line"), ("tinyrl-trainer/helpers", "line")]
    assert shares(explain(applied, WORKER, IMPORT)) == [("tinyrl-trainer/import-helpers", "line")]


def test_lines_of_the_commit_and_of_the_user(applied):
    found = explain(applied, WORKER, "import logging")
    assert (found["owner"], found["edits"]) == ("commit", [])
    path = applied / WORKER
    path.write_text(path.read_text().replace("        outputs = []\n", "        outputs = []\n        mine = 1\n"))
    found = explain(applied, WORKER, "mine = 1")
    assert (found["owner"], found["edits"]) == ("yours", [])
    assert "after our edits" in found["because"]
    assert explain(applied, WORKER, WITH)["edits"][0]["state"] == "nearby"
    (applied / "tinyrl/loop.py").write_text("mine = 2\n")
    assert explain(applied, "tinyrl/loop.py", "mine")["owner"] == "yours"


def test_a_line_that_somebody_changed_since(applied):
    path = applied / RUNNER
    path.write_text(path.read_text().replace("[len(r.prompt) for r in requests])", "None)"))
    found = explain(applied, RUNNER, "probepatch_tinyrl.capture(")
    assert (found["owner"], shares(found)) == ("yours", [("tinyrl-engine/capture-prefill", "changed")])
    assert found["edits"][0]["state"] == "inside"
    untouched = explain(applied, RUNNER, 'if scheduler_output.phase == "prefill"')
    assert (untouched["owner"], shares(untouched)) == ("ours", [("tinyrl-engine/capture-prefill", "line")])


def test_after_a_revert_nothing_is_ours(applied):
    answer("receipt", "revert", applied, "--recipe", "tinyrl-engine")
    found = explain(applied, RUNNER, "logits = self.model(input_ids)")
    assert (found["owner"], found["edits"]) == ("commit", [])
    answer("receipt", "revert", applied)
    assert explain(applied, WORKER, WITH)["owner"] == "commit"


def test_a_folder_without_git(tmp_path):
    write(tmp_path, {"m.py": "def run(x):\n    y = f(x)\n    return y\n"})
    (tmp_path / "r.yaml").write_text(
        'recipe: r\nframework: mine\nside: train\nversions: ">=0"\nwhy: w\nedits:\n'
        "  - {id: a, file: m.py, in: run, around: $Y = f($X), enter: start(), finally: stop()}\n"
        "  - {id: b, file: m.py, in: run, before: $Y = f($X), insert: note()}\n"
    )
    assert explain(tmp_path, "m.py", "y = f")["owner"] == "unknown"
    answer("apply", "apply", tmp_path, "--recipe-file", tmp_path / "r.yaml")
    found = explain(tmp_path, "m.py", "y = f(x)")
    assert (found["owner"], shares(found)) == ("before", [("r/a", "indent")])
    shown = run("recipe", "explain", tmp_path, "m.py:5").stdout
    assert (
        "the line is older than our edits\nedits of ours have a share in it:\n\n  r/a\n    did    moved the line"
        in shown
    )
    assert shares(explain(tmp_path, "m.py", "stop()")) == [("r/a", "line")]
    assert ("r/b", "line") in shares(explain(tmp_path, "m.py", "note()"))
    (tmp_path / "m.py").write_text((tmp_path / "m.py").read_text() + "z = 1\n")
    assert explain(tmp_path, "m.py", "z = 1")["owner"] == "yours"
    (tmp_path / "m.py").unlink()
    assert answer("error", "recipe", "explain", tmp_path, "m.py:1", code=1)["error"]["what"] == "m.py is missing"


NOWHERE = [
    *("x", "x:y", ":3", f"{WORKER}:0", f"{WORKER}:9999", "nope.py:1", "/etc/passwd:1", "../x:1", "tinyrl:1"),
    *("a\x1b[2J:1", "x:٣", f"{'x' * 5000}:1", "x:" + "9" * 400, ".git/HEAD:1"),
]


def test_places_that_are_none(applied, capsys):
    for place in NOWHERE:
        assert cli.main(["recipe", "explain", str(applied), place]) in (1, 2, 3), place
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith("error: ")
        assert "\x1b" not in said.err


def test_a_file_is_found_from_here_from_the_root_and_by_its_own_path(applied):
    for given, folder in ((WORKER, None), (str(applied / WORKER), None), ("worker.py", applied / "tinyrl/trainer")):
        done = run("recipe", "explain", applied, f"{given}:3", cwd=folder)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"{WORKER}:3\n")


# --- the pure part -------------------------------------------------------------------------------------------------------

BASE = b"def f():\n    a()\n    b()\n    c()\n"


def at(base: bytes, edits: list[PlannedEdit], disk: bytes, words: bytes) -> LineOrigin:
    span = line_span(disk, disk[: disk.index(words)].count(b"\n") + 1)
    assert span is not None
    return origin(base, edits, disk, span)


def whose(found: LineOrigin) -> list[tuple[int, str]]:
    return [(share.edit, share.did) for share in found.shares]


def edit(name: str, *splices: Splice, indents: tuple[Indent, ...] = (), order: int = 0) -> PlannedEdit:
    return PlannedEdit("r", name, "d", (0, order), "f", 1, "", splices, indents)


def test_code_that_was_taken_out():
    start = BASE.index(b"    b()")
    gone = [edit("delete", Splice(start, b"    b()\n", b""))]
    disk = render(BASE, gone)
    assert whose(at(BASE, gone, disk, b"c()")) == [(0, "removed")]
    assert whose(at(BASE, gone, disk, b"a()")) == []
    last = BASE.index(b"    c()")
    gone = [edit("delete", Splice(last, b"    c()\n", b""))]
    assert whose(at(BASE, gone, render(BASE, gone), b"b()")) == [(0, "removed")]


def test_an_inserted_line_inside_another_edit_s_around():
    start, end = BASE.index(b"    b()"), BASE.index(b"    c()")
    around = edit(
        "around",
        Splice(start, b"", b"    try:\n", rank=leading(1), lines=(0,)),
        Splice(end, b"", b"    finally:\n        x()\n", rank=trailing(1, 0), lines=(0, 13)),
        indents=(Indent(b"    ", (start,), 0, 1),),
    )
    inner = edit("inner", Splice(end, b"", b"    note()\n", rank=trailing(2), lines=(0,)), order=1)
    disk = render(BASE, [around, inner])
    assert disk == b"def f():\n    a()\n    try:\n        b()\n        note()\n    finally:\n        x()\n    c()\n"
    assert whose(at(BASE, [around, inner], disk, b"b()")) == [(0, "indent")]
    assert whose(at(BASE, [around, inner], disk, b"note()")) == [(1, "line"), (0, "indent")]
    assert whose(at(BASE, [around, inner], disk, b"x()")) == [(0, "line")]


def test_lines_are_counted_as_editors_do():
    assert line_span(b"", 1) is None
    assert line_span(b"a", 1) == (0, 1)
    assert line_span(b"a\r\n\nb\x0cc\n", 3) == (4, 7)
    assert line_span(b"a\n", 2) is None
    assert line_span(b"\n\n", 2) == (1, 2)


@pytest.mark.parametrize("seed", range(30))
def test_every_line_has_an_owner_whatever_was_done_to_the_file(seed):
    """Lines of ours are told as ours, others as not; and a change anywhere never makes it fail."""
    chance = random.Random(seed)
    lines = [b"line_%d = %d\n" % (n, n) for n in range(12)]
    base = b"".join(lines)
    starts = [sum(map(len, lines[:n])) for n in range(12)]
    edits = [
        edit(str(n), Splice(chance.choice(starts), b"", b"ours_%d()\n" % n, rank=(1, 0, n)), order=n)
        for n in range(chance.randint(1, 4))
    ]
    disk = render(base, edits)
    for number, line in enumerate(disk.split(b"\n")[:-1], 1):
        found = origin(base, edits, disk, line_span(disk, number) or (0, 0))
        assert bool(found.own) is not line.startswith(b"ours")
        assert [str(share.edit).encode() for share in found.shares] == ([line[5:6]] if line.startswith(b"ours") else [])
    changed = disk.split(b"\n")
    for _time in range(chance.randint(1, 4)):
        place = chance.randrange(len(changed))
        changed[place : place + chance.randint(0, 1)] = [b"theirs_%d" % place] if chance.random() < 0.7 else []
    data = b"\n".join(changed)
    for number, line in enumerate(data.split(b"\n"), 1):
        span = line_span(data, number)
        found = origin(base, edits, data, span) if span else None
        if found and line.startswith(b"ours"):
            assert (int(line[5:6]), "line") in whose(found)
        if found and line.startswith(b"theirs"):
            assert found.own
