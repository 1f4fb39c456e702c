"""A user edits the patched file: what status says, what revert keeps, what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.errors import FindingError
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


def test_an_added_file_that_was_changed_stays_as_a_whole_and_force_removes_it(plain: PlainTree) -> None:
    added = {"pkg/payload.py": [insertion(0, b"X = 1\n", name="r/f")]}
    apply(plain, added)
    path = plain.root / "pkg/payload.py"
    mine = path.read_bytes() + b"mine = 2\n"
    path.write_bytes(mine)
    assert state(plain) == "inside" and "removes it" in status(plain).edits[0].todo
    receipt = revert(plain)
    assert receipt.txn == "" and path.read_bytes() == mine
    assert "which we added" in receipt.refused[0].why and "--force" in receipt.refused[0].why
    assert "+mine = 2" in receipt.refused[0].details
    with pytest.raises(FindingError, match="changed inside") as caught:
        apply(plain, added)
    assert "--force" in (caught.value.todo or "")
    receipt = revert(plain, force=True)
    assert not path.exists() and [Path(copy).read_bytes() for copy in receipt.saved] == [mine]
    assert status(plain).edits == ()
    apply(plain, added)
    assert path.read_bytes() == b"X = 1\n"


IMPORT, CALL, OTHER = b"import payload\n", b"    payload.tap(x)\n", b"    print(x)\n"


def with_helpers(tree: PlainTree) -> Path:
    """Two taps, one of which needs the import, which needs the payload; and a recipe that has nothing to do with it."""
    files = {
        PATH: [
            insertion(0, IMPORT, name="r/import", shared=True),
            after_line(MODULE, 1, CALL, name="r/tap", order=(0, 1)),
            after_line(MODULE, 2, OTHER, name="r/other", order=(0, 2)),
        ],
        "pkg/b.py": [insertion(0, IMPORT, name="r/import-b", shared=True)],
        "payload.py": [insertion(0, b"def tap(x):\n    pass\n", name="r/payload")],
        "pkg/c.py": [insertion(0, IMPORT, name="two/import", shared=True)],
    }
    apply(tree, files)
    path = tree.root / PATH
    path.write_bytes(path.read_bytes().replace(b"payload.tap(x)", b"payload.tap(x, 1)"))
    return path


def test_what_an_edit_that_stays_needs_stays_too(plain: PlainTree) -> None:
    path = with_helpers(plain)
    receipt = revert(plain)
    assert {(refusal.edit, refusal.state) for refusal in receipt.refused} == {
        ("r/tap", "inside"),
        ("r/import", "needed"),
        ("r/payload", "needed"),
    }
    assert "r/tap stays and uses `payload`" in next(r.why for r in receipt.refused if r.edit == "r/import")
    assert path.read_bytes() == IMPORT + MODULE.replace(b"(x):\n", b"(x):\n    payload.tap(x, 1)\n", 1)
    assert (plain.root / "payload.py").is_file() and (plain.root / "pkg/b.py").read_bytes() == MODULE
    path.write_bytes(path.read_bytes().replace(b"(x, 1)", b"(x)"))
    assert not revert(plain).refused
    assert path.read_bytes() == MODULE and not (plain.root / "payload.py").exists()


def test_a_helper_asked_for_by_name_goes_with_a_warning(plain: PlainTree) -> None:
    path = with_helpers(plain)
    receipt = revert(plain, edit="r/payload")
    assert not receipt.refused and not (plain.root / "payload.py").exists()
    assert any("r/import" in note and "will not run" in note for note in receipt.notes)
    assert IMPORT in path.read_bytes()


def test_with_force_nothing_stays_for_the_sake_of_another(plain: PlainTree) -> None:
    path = with_helpers(plain)
    receipt = revert(plain, force=True)
    assert not receipt.refused and path.read_bytes() == MODULE and not (plain.root / "payload.py").exists()


def test_names_of_the_file_itself_hold_nothing_back(plain: PlainTree) -> None:
    """`x` and `y` are the function's own, whoever sets them again."""
    path = patched(
        plain,
        after_line(MODULE, 1, b"    x = x * 2\n", name="r/double"),
        after_line(MODULE, 1, b"    began = 3\n", name="r/begin", order=(0, 1)),
        after_line(MODULE, 2, b"    tap(x, y, began)\n", name="r/tap", order=(0, 2)),
    )
    path.write_bytes(path.read_bytes().replace(b"tap(x,", b"tap(x, 1,"))
    assert [refusal.edit for refusal in revert(plain).refused] == ["r/tap", "r/begin"]


def test_status_tells_the_line_where_an_edit_stands_now(plain: PlainTree) -> None:
    path = patched(
        plain,
        insertion(0, b"\nimport one\nimport two\n", name="r/import"),
        after_line(MODULE, 2, TAP, order=(0, 1)),
        after_line(MODULE, 6, b"    tap_other(x)\n", name="r/other", order=(0, 2)),
    )

    def lines() -> dict[str, int]:
        return {edit.edit: edit.line for edit in status(plain).edits}

    def found(text: bytes) -> int:
        return path.read_bytes().split(b"\n").index(text) + 1

    wanted = {"import": b"import one", "e": TAP.rstrip(b"\n"), "other": b"    tap_other(x)"}
    assert lines() == {name: found(text) for name, text in wanted.items()}
    path.write_bytes(b"# mine\n" * 3 + path.read_bytes())
    assert lines() == {name: found(text) for name, text in wanted.items()}
    path.write_bytes(path.read_bytes().replace(b"tap_other(x)", b"tap_other(x, 2)"))
    assert lines()["other"] == found(b"    tap_other(x, 2)")


def test_one_appended_line_counts_as_one(plain: PlainTree) -> None:
    base = b"".join(b"x%d = 1\n\n" % n for n in range(200))
    (plain.root / PATH).write_bytes(base)
    apply(plain, {PATH: [after_line(base, 1, TAP)]})
    path = plain.root / PATH
    for mine, counts in ((b"mine = 1\n", (1, 0)), (b"mine = 1", (1, 0))):
        path.write_bytes(path.read_bytes() + mine)
        receipt = revert(plain)
        assert receipt.proof is not None
        assert (receipt.proof.files[0].added, receipt.proof.files[0].removed) == counts
        path.write_bytes(base)
        apply(plain, {PATH: [after_line(base, 1, TAP)]})


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
