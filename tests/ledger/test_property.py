"""Random bases, edits and users: nothing but our splices ever differs, and all of them come out."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from codemods.errors import FindingError
from codemods.splice import PlannedEdit, Splice, check_order, render
from patch_ledger.merge import read_base
from patch_ledger.revert import revert
from patch_ledger.status import status
from patch_ledger.store import open_ledger
from patch_ledger.threeway import locate
from tests.ledger.trees import PlainTree, after_line, apply, around

NEWLINES = st.sampled_from([b"\n", b"\r\n"])
LINES = st.sampled_from(
    [
        b"x = 1",
        b"y = x + 1",
        b"call(x, y)",
        b"",
        b"# note",
        "s = 'naïve'".encode(),
        b"if x: y = 2",
        b"t = '''",
        b"deep",
        b"'''",
    ]
)
SETTINGS = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


@st.composite
def bases(draw: st.DrawFn) -> bytes:
    """Text of a few functions; not always Python, since the ledger keeps any bytes."""
    newline = draw(NEWLINES)
    lines: list[bytes] = []
    for n in range(draw(st.integers(1, 4))):
        lines.append(b"def f%d(x):" % n)
        lines += [b"    " + line if line else line for line in draw(st.lists(LINES, min_size=1, max_size=6))]
    text = newline.join(lines) + newline
    return text.removesuffix(newline) if draw(st.booleans()) else text


@st.composite
def edits_on(draw: st.DrawFn, base: bytes) -> list[PlannedEdit]:
    """Edits of one to three recipes: whole lines, replacements, deletions, shared lines, wraps."""
    count = len(base.splitlines())
    found: list[PlannedEdit] = []
    for n in range(draw(st.integers(1, 5))):
        recipe = draw(st.integers(0, 2))
        name, order = f"r{recipe}/e{n}", (recipe, n)
        kind = draw(st.sampled_from(["line", "line", "replace", "shared", "wrap", "inline", "delete"]))
        line = draw(st.integers(1, max(count - 1, 1)))
        lines = base.splitlines(keepends=True)
        at = sum(map(len, lines[: line - 1]))
        if kind == "wrap":
            last = draw(st.integers(line, min(line + 3, max(count - 1, line))))
            edit = around(base, line, last, name, order)
        elif kind == "shared":
            edit = PlannedEdit(
                f"r{recipe}", f"e{n}", "d", order, splices=(Splice(0, b"", b"import payload_of_ours\n", True),)
            )
        elif kind == "replace":
            text = b"    replaced_%d(x)\n" % n
            edit = PlannedEdit(
                f"r{recipe}", f"e{n}", "d", order, splices=(Splice(at, lines[line - 1], text, lines=(0,)),)
            )
        elif kind == "delete":
            edit = PlannedEdit(f"r{recipe}", f"e{n}", "d", order, splices=(Splice(at, lines[line - 1], b""),))
        elif kind == "inline":
            text = b"hook_%d(" % n
            inner = at + len(lines[line - 1]) - len(lines[line - 1].lstrip(b" "))
            end = at + len(lines[line - 1].rstrip())
            assume(inner < end)
            edit = PlannedEdit(
                f"r{recipe}",
                f"e{n}",
                "d",
                order,
                splices=(Splice(inner, b"", text, rank=(3, 0, 0)), Splice(end, b"", b")")),
            )
        else:
            edit = replace(
                after_line(base, line, b"    tap_%d(x)  # probepatch: %d\n" % (n, n), name=name, order=order)
            )
            edit = replace(edit, splices=(replace(edit.splices[0], lines=(0,)),))
        more = sorted([*found, edit], key=lambda edit: edit.order)
        try:
            check_order("f", more)
            for size in range(len(more) + 1):
                for some in combinations(more, size):
                    render(base, some)
        except FindingError:
            continue
        found = more
    assume(found)
    return found


@contextmanager
def tree_with(base: bytes, name: str = "m.txt") -> Iterator[tuple[PlainTree, Path]]:
    """A tree of one file; by default no Python, so that the compile check stands aside."""
    with tempfile.TemporaryDirectory() as folder:
        tree = PlainTree(Path(folder).resolve())
        (tree.root / name).write_bytes(base)
        yield tree, tree.root / name


def put(tree: PlainTree, edits: Sequence[PlannedEdit]) -> None:
    apply(tree, {"m.txt": edits})


@SETTINGS
@given(st.data())
def test_apply_then_revert_is_the_identity(data: st.DataObject) -> None:
    base = data.draw(bases())
    edits = data.draw(edits_on(base))
    with tree_with(base) as (tree, path):
        put(tree, edits)
        assert path.read_bytes() == render(base, edits), "nothing but our splices differs"
        assert {edit.state for edit in status(tree).edits} <= {"applied", "gone"}
        revert(tree)
        assert path.read_bytes() == base
        assert [entry.name for entry in tree.root.iterdir()] == ["m.txt"]


@SETTINGS
@given(st.data())
def test_any_subset_comes_out_in_any_order(data: st.DataObject) -> None:
    base = data.draw(bases())
    edits = data.draw(edits_on(base))
    order = data.draw(st.permutations(edits))
    with tree_with(base) as (tree, path):
        put(tree, edits)
        left = list(edits)
        for edit in order:
            revert(tree, edit=edit.name)
            left.remove(edit)
            assert path.read_bytes() == render(base, left)


def users(rng: random.Random, text: bytes, spans: Sequence[tuple[int, int]]) -> bytes:
    """Whole lines of a user, at line ends outside ``spans``."""
    heads = [0, *(n + 1 for n, byte in enumerate(text) if byte == 0x0A)]
    free = [head for head in heads if not any(low < head < high for low, high in spans)]
    for n, at in enumerate(sorted(rng.sample(free, min(len(free), rng.randint(1, 3))), reverse=True)):
        text = text[:at] + b"    user_wrote_%d()\n" % n + text[at:]
    return text


@SETTINGS
@given(st.data())
def test_a_users_lines_survive_and_ours_go(data: st.DataObject) -> None:
    """The user's lines in our file, and nothing else: taking them out of the reverted file gives the base."""
    base = data.draw(bases())
    edits = data.draw(edits_on(base))
    rng = random.Random(data.draw(st.integers(0, 1 << 30)))
    ours = render(base, edits)
    assume(ours != base)
    theirs = users(rng, ours, ())
    with tree_with(base) as (tree, path):
        put(tree, edits)
        path.write_bytes(theirs)
        receipt = revert(tree)
        found = path.read_bytes()
        names = [b"user_wrote_%d()" % n for n in range(3)]
        assert [found.count(name) for name in names] == [theirs.count(name) for name in names]
        if not receipt.refused and all(edit.splices[0].inserted for edit in edits):
            assert without_users(found) == base


def without_users(text: bytes) -> bytes:
    return b"".join(line for line in text.splitlines(keepends=True) if b"user_wrote_" not in line)


@SETTINGS
@given(st.data())
def test_whatever_is_located_renders_back(data: st.DataObject) -> None:
    """Any change at all by a user: the new base with our edits is exactly what is on disk."""
    base = data.draw(bases())
    edits = data.draw(edits_on(base))
    ours = render(base, edits)
    start = data.draw(st.integers(0, len(ours)))
    end = data.draw(st.integers(start, min(len(ours), start + 40)))
    theirs = ours[:start] + data.draw(st.sampled_from([b"", b"\n", b"z", b"    user()\n", b"tap_1(x)"])) + ours[end:]
    found = locate(base, edits, theirs)
    assert render(found.base, found.intact) == theirs or not found.intact
    with tree_with(base) as (tree, path):
        put(tree, edits)
        path.write_bytes(theirs)
        receipt = revert(tree)
        if receipt.refused and not receipt.txn:
            assert path.read_bytes() == theirs


@SETTINGS
@given(st.data())
def test_planning_on_a_changed_file_keeps_the_user(data: st.DataObject) -> None:
    base = data.draw(bases())
    edits = data.draw(edits_on(base))
    assume(all(edit.splices[0].inserted for edit in edits))
    rng = random.Random(data.draw(st.integers(0, 1 << 30)))
    theirs = users(rng, render(base, edits), ())
    with tree_with(base) as (tree, path):
        put(tree, edits)
        path.write_bytes(theirs)
        view = read_base(open_ledger(tree), "m.txt")
        if view.problems:
            return
        assert view.base is not None and without_users(view.base) == base
        assert render(view.base, view.edits) == theirs
