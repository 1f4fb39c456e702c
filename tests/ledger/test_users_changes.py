"""A user edits the patched file: what status says, what revert keeps, what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from patch_ledger.revert import revert
from patch_ledger.status import status
from patch_ledger.threeway import locate
from tests.ledger.conftest import MODULE
from tests.ledger.trees import PlainTree, after_line, apply, around, insertion

PATH = "pkg/a.py"
TAP = b"    tap_value(x)  # probepatch: r/e\n"


def patched(tree: PlainTree, *edits: object) -> Path:
    apply(tree, {PATH: list(edits) or [after_line(MODULE, 1, TAP)]})  # type: ignore[list-item]
    return tree.root / PATH


def state(tree: PlainTree) -> str:
    return status(tree).edits[0].state


def test_a_change_nearby_stays(plain: PlainTree) -> None:
    path = patched(plain)
    path.write_bytes(path.read_bytes().replace(b"x + 1", b"x + 2") + b"# mine\n")
    assert state(plain) == "nearby"
    receipt = revert(plain)
    assert path.read_bytes() == MODULE.replace(b"x + 1", b"x + 2") + b"# mine\n"
    assert receipt.proof is not None and (receipt.proof.files[0].added, receipt.proof.files[0].removed) == (2, 1)
    assert not receipt.proof.exact and receipt.proof.residue == ()


def test_a_change_inside_is_refused_with_a_diff_and_force_keeps_a_copy(plain: PlainTree) -> None:
    path = patched(plain)
    mine = path.read_bytes().replace(b"tap_value(x)", b"tap_value(x, 1)") + b"# mine\n"
    path.write_bytes(mine)
    assert state(plain) == "inside"
    receipt = revert(plain)
    assert receipt.txn == "" and receipt.refused[0].edit == "r/e"
    assert any("tap_value(x, 1)" in line for line in receipt.refused[0].details)
    assert path.read_bytes() == mine
    receipt = revert(plain, force=True)
    assert path.read_bytes() == MODULE
    assert Path(receipt.saved[0]).read_bytes() == mine, "the copy outlives the ledger"
    assert revert(plain).txn == "" and Path(receipt.saved[0]).exists()


def test_the_other_edits_of_a_file_still_come_out(plain: PlainTree) -> None:
    path = patched(plain, after_line(MODULE, 1, TAP), after_line(MODULE, 6, b"    tap_other(x)\n", name="r/other"))
    path.write_bytes(path.read_bytes().replace(b"tap_value(x)", b"tap_value(x, 1)"))
    receipt = revert(plain)
    assert [refusal.edit for refusal in receipt.refused] == ["r/e"] and receipt.txn
    assert path.read_bytes() == MODULE.replace(b"(x):\n", b"(x):\n" + TAP.replace(b"(x)", b"(x, 1)"), 1)
    assert [(edit.edit, edit.state) for edit in status(plain).edits] == [("e", "inside")]
    path.write_bytes(path.read_bytes().replace(b"(x, 1)", b"(x)"))
    assert state(plain) == "applied"
    revert(plain)
    assert path.read_bytes() == MODULE


def test_half_of_an_edit_is_named(plain: PlainTree) -> None:
    path = patched(plain, around(MODULE, 2, 2))
    path.write_bytes(path.read_bytes().replace(b"    finally:\n        tap_stop()\n", b""))
    assert state(plain) == "half"
    assert revert(plain).refused


def test_users_lines_in_a_wrapped_region_are_dedented(plain: PlainTree) -> None:
    path = patched(plain, around(MODULE, 2, 3))
    mine = path.read_bytes().replace(
        b"        return y\n",
        b"        text = '''\n        kept as it is\n'''\n        if y:\n            y = 3\n        return y\n",
    )
    path.write_bytes(mine)
    assert state(plain) == "nearby"
    receipt = revert(plain)
    assert not receipt.refused
    wanted = MODULE.replace(
        b"    return y\n", b"    text = '''\n        kept as it is\n'''\n    if y:\n        y = 3\n    return y\n"
    )
    assert path.read_bytes() == wanted


def test_a_moved_function_is_found_by_its_symbol(plain: PlainTree) -> None:
    from dataclasses import replace

    path = patched(plain, replace(after_line(MODULE, 1, TAP), symbol="f"))
    f, g = path.read_bytes().split(b"\n\n\n")
    path.write_bytes(g + b"\n\n" + f + b"\n" + b"\n\ndef h(x):\n    other = x\n" * 3)
    assert state(plain) == "nearby"
    assert not revert(plain).refused
    assert b"tap_value" not in path.read_bytes() and b"def h" in path.read_bytes()


def test_a_revert_that_would_not_compile_is_refused(plain: PlainTree) -> None:
    path = patched(plain, after_line(MODULE, 3, b"    if x:\n        z = 1\n"))
    mine = path.read_bytes().replace(b"        z = 1\n", b"        z = 1\n    else:\n        z = 2\n")
    path.write_bytes(mine)
    receipt = revert(plain)
    assert receipt.refused[0].state == "not-compiling" and path.read_bytes() == mine
    assert not revert(plain, force=True).refused and path.read_bytes() == MODULE


def test_a_missing_file_is_named_and_force_puts_it_back(plain: PlainTree) -> None:
    path = patched(plain)
    path.chmod(0o755)
    path.unlink()
    assert state(plain) == "file-missing"
    assert revert(plain).refused[0].state == "file-missing"
    revert(plain, force=True)
    assert path.read_bytes() == MODULE


def test_another_version_of_the_file_is_gone_not_inside(plain: PlainTree) -> None:
    path = patched(plain)
    other = b"class Other:\n    def f(self):\n        return 1\n" * 4
    path.write_bytes(other)
    assert state(plain) == "gone"
    revert(plain)
    assert path.read_bytes() == other


def test_an_added_file_with_users_lines_keeps_them(plain: PlainTree) -> None:
    apply(plain, {"pkg/payload.py": [insertion(0, b"X = 1\n", name="r/f")]})
    path = plain.root / "pkg/payload.py"
    path.write_bytes(path.read_bytes() + b"mine = 2\n")
    revert(plain)
    assert path.read_bytes() == b"mine = 2\n"


@pytest.mark.parametrize("size", [20_000])
def test_a_large_file_of_equal_lines_is_aligned_quickly(size: int) -> None:
    base = b"x = 1\n\n" * size
    edit = after_line(base, size, b"tap_me()\n")
    from codemods.splice import render

    theirs = b"# top\n" + render(base, [edit]) + b"# end\n"
    found = locate(base, [edit], theirs)
    assert found.states == ("nearby",) and found.base == b"# top\n" + base + b"# end\n"


def test_applying_another_recipe_over_a_users_change(plain: PlainTree) -> None:
    path = patched(plain)
    path.write_bytes(path.read_bytes() + b"# mine\n")
    base = MODULE + b"# mine\n"
    apply(plain, {PATH: [after_line(base, 6, b"    tap_two(x)\n", name="two/e", order=(1, 0))]})
    revert(plain, recipe="r")
    revert(plain, recipe="two")
    assert path.read_bytes() == base
