"""Lines that a user rearranged around ours: taking ours out joins none of them, and nothing of ours is taken for gone."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codemods.errors import FindingError
from codemods.splice import PlannedEdit, Splice, render
from patch_ledger.revert import revert
from patch_ledger.status import status
from patch_ledger.threeway import locate
from tests.ledger.test_property import SETTINGS, bases, edits_on, put, tree_with
from tests.ledger.trees import PlainTree, after_line, apply, insertion

PATH = "pkg/a.py"
FUNCTION = b"\n\ndef ours():\n    pass\n"
METHOD = b"\n    def ours(self):\n        pass\n"
MODULE_END = b"import os\n\n\ndef f(x):\n    return x\n# the end of f\n"
CLASS = b"class C:\n    def f(x):\n        return x\n    # tail\n\nX = 1\n"
SEMICOLON = b"def f():\n    a = 1; b = 2\n    return a\n"
SUITE = b"def f():\n    if x: b = 2\n    return x\n"
BROKEN = b"\n    ours()\n    "
# base, our splice, what the user replaces in the patched file
TORN = {
    "a blank line above a function": (
        MODULE_END, Splice(len(MODULE_END), b"", FUNCTION),
        (b"\n\n\ndef ours():\n    pass\n", b"\n\ndef ours():\n    pass\nMINE = 42\n"),
    ),
    "a blank line above a method": (
        CLASS, Splice(CLASS.index(b"    # tail"), b"", METHOD), (b"x\n\n    def ours", b"x\n    def ours"),
    ),
    "a comment behind the statement before": (
        SEMICOLON, Splice(SEMICOLON.index(b"; b"), b"; ", BROKEN), (b"a = 1\n", b"a = 1  # mine\n"),
    ),
    "a comment behind the colon": (
        SUITE, Splice(SUITE.index(b" b ="), b" ", b"\n        ours()\n        "), (b"x:\n", b"x:  # mine\n"),
    ),
    "a line between a statement and ours": (
        SEMICOLON, Splice(SEMICOLON.index(b"; b"), b"; ", BROKEN), (b"a = 1\n", b"a = 1\n    mine = 3\n"),
    ),
    "a line behind the last one that had no end": (
        b"x = 1\n# last", Splice(12, b"", b"\nours()\n"), (b"ours()\n", b"ours()\nMINE = 42\n"),
    ),
    "a line behind a replaced last one that had no end": (
        b"x = 1\nlast = 2", Splice(6, b"last = 2", b"ours()\n"), (b"ours()\n", b"ours()\nMINE = 42\n"),
    ),
}  # fmt: skip


def edit_of(splice: Splice) -> PlannedEdit:
    return PlannedEdit("r", "e", "d", (0, 0), splices=(splice,))


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("case", TORN)
def test_what_would_join_lines_is_refused(plain: PlainTree, case: str, newline: bytes) -> None:
    base, splice, (old, new) = TORN[case]
    base, removed, inserted, old, new = (
        text.replace(b"\n", newline) for text in (base, splice.removed, splice.inserted, old, new)
    )
    start = len(TORN[case][0][: splice.start].replace(b"\n", newline))
    path = plain.root / PATH
    path.write_bytes(base)
    apply(plain, {PATH: [edit_of(Splice(start, removed, inserted))]})
    assert old in path.read_bytes()
    mine = path.read_bytes().replace(old, new)
    path.write_bytes(mine)
    assert [edit.state for edit in status(plain).edits] == ["inside"]
    assert revert(plain).refused and path.read_bytes() == mine
    path.write_bytes(mine.replace(new, old))
    assert not revert(plain).refused and path.read_bytes() == base


@pytest.mark.parametrize(
    ("old", "new"), [(b"# last\n", b"# last, mine\n"), (b"ours()", b"ours()\n"), (b"ours()", b"ours()\nMINE = 1\n")]
)
def test_text_that_leaves_lines_whole_comes_out(plain: PlainTree, old: bytes, new: bytes) -> None:
    base = b"x = 1\n# last"
    path = plain.root / PATH
    path.write_bytes(base)
    apply(plain, {PATH: [insertion(len(base), b"\nours()")]})
    path.write_bytes(path.read_bytes().replace(old, new))
    assert not revert(plain).refused
    assert set(path.read_bytes().split(b"\n")) == {b"x = 1", b"# last, mine" if b"mine" in new else b"# last"} | (
        {b"MINE = 1", b""} if b"MINE" in new else {b""} if new.endswith(b"()\n") else set()
    )


def rearranged(rng: random.Random, text: bytes) -> bytes:
    """Whole lines of a user, and a few line breaks less or more."""
    if rng.random() < 0.3 and not text.endswith(b"\n"):
        text += b"\n"
    lines = re.findall(rb"[^\n]*\n|[^\n]+", text)
    for _round in range(rng.randint(1, 3)):
        blank = [n for n, line in enumerate(lines) if not line.strip()]
        if blank and rng.random() < 0.6:
            del lines[rng.choice(blank)]
        elif rng.random() < 0.3:
            lines.insert(rng.randint(0, max(len(lines) - 1, 0)), b"\n")
    heads = range(len(lines) + (lines[-1].endswith(b"\n") if lines else 1))
    for n, at in enumerate(sorted(rng.sample(heads, min(len(heads), rng.randint(1, 3))), reverse=True)):
        lines.insert(at, b"user_wrote_%d()\n" % n)
    return b"".join(lines)


@st.composite
def breaking(draw: st.DrawFn, base: bytes) -> PlannedEdit:
    """An edit whose text begins with a line break, ends without one, or takes one away."""
    free = [n for n in range(len(base) + 1) if base[n - 1 : n + 1] != b"\r\n"]
    at = draw(st.sampled_from([n for n in free if n in (0, len(base)) or base[n : n + 1] in b"\r\n ="]))
    removed = draw(st.sampled_from([b"", base[at : at + 1], base[at : at + 5]]))
    text = draw(st.sampled_from([b"\nours_1()\n", b"\n\nours_2()\n", b"\nours_3()", b"ours_4()\n", b"\n"]))
    return edit_of(Splice(at, removed, text))


@SETTINGS
@given(st.data())
def test_every_line_of_a_user_stays_a_line(data: st.DataObject) -> None:
    base = data.draw(bases())
    edits = data.draw(edits_on(base)) if data.draw(st.booleans()) else [data.draw(breaking(base))]
    rng = random.Random(data.draw(st.integers(0, 1 << 30)))
    theirs = rearranged(rng, render(base, edits))
    mine = [b"user_wrote_%d()" % n for n in range(3) if b"user_wrote_%d()" % n in theirs]
    with tree_with(base) as (tree, path):
        put(tree, edits)
        path.write_bytes(theirs)
        revert(tree)
        lines = [line.strip() for line in path.read_bytes().split(b"\n")]
        assert [name for name in mine if name in lines] == mine


BLOCK = b"    if os.getenv('Q'):{mark}\n        capture(x)\n        stepit(x)\n"
F = b"import os\n\n\ndef f(x):\n    a = 1\n    y = x + 1\n    return y\n"


def moved(text: bytes, how: str) -> bytes:
    """Our block, which a user put elsewhere at another indentation, or a file written anew with it."""
    start, end = text.index(b"    if os.getenv"), text.index(b"    y = x")
    block = text[start:end]
    deeper = b"".join(b"    " + line for line in block.splitlines(keepends=True))
    rest = text[:start] + text[end:]
    return {
        "into a condition": rest.replace(b"    return y\n", b"    if a > 0:\n" + deeper + b"    return y\n"),
        "into a class": b"class C:\n    def g(self):\n        return 3\n\n"
        + b"".join(b"    " + line if line.strip() else line for line in text[text.index(b"def f") :].splitlines(True)),
        "with tabs": text.replace(b"    ", b"\t"),
        "with other line ends": text.replace(b"\n", b"\r\n"),
        "in half": rest.replace(b"    return y\n", b"    if a:\n        stepit(x)\n    return y\n"),
    }[how]


@pytest.mark.parametrize("mark", [b"", b"  # probepatch: r/e"], ids=["unmarked", "marked"])
@pytest.mark.parametrize("how", ["into a condition", "into a class", "with tabs", "with other line ends", "in half"])
def test_what_stands_elsewhere_is_not_gone(plain: PlainTree, how: str, mark: bytes) -> None:
    path = plain.root / PATH
    path.write_bytes(F)
    block = BLOCK.replace(b"{mark}", mark)
    apply(plain, {PATH: [after_line(F, 5, block)]})
    mine = moved(path.read_bytes(), how)
    path.write_bytes(mine)
    assert [edit.state for edit in status(plain).edits] == ["inside"]
    with pytest.raises(FindingError, match="r/e is changed inside"):
        apply(plain, {PATH: [after_line(F, 5, block)]})
    assert revert(plain).refused and path.read_bytes() == mine
    assert [edit.state for edit in status(plain).edits] == ["inside"], "the record is kept"


def test_a_mark_alone_is_residue_and_another_edits_line_is_not() -> None:
    one = insertion(0, b"tap_here(1)  # probepatch: r/e\n", name="r/e")
    base = b"x = 1\n" * 3
    kept = b"def other():\n    pass  # probepatch: r/e\n"
    assert locate(base, [one], base + kept).states == ("inside",)
    assert locate(base, [one], base + kept.replace(b"r/e", b"r/e2")).states == ("gone",)
    two = insertion(12, b"tap_here(1)\n", name="r/two", order=(0, 1))
    three = insertion(0, b"tap_here(1)\n", name="r/three")
    both = render(base, [three, two])
    found = locate(base, [three, two], both.removeprefix(b"tap_here(1)\n") + b"# mine\n")
    assert sorted(found.states) == ["gone", "nearby"]


def test_half_needs_something_gone(tmp_path: Path) -> None:
    base = b"a\nb\n"
    edit = edit_of(Splice(4, b"", b"\nours()\n"))
    assert locate(base, [edit], b"a\nb\nours()\nmine\n").states == ("inside",)
