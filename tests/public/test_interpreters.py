"""Syntax that the running Python, or the parser, does not know."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.public.driver import case, compiles, everything, interpreters, probepatch, recipes, refusal

Checkout = Callable[[Path], Path]
FSTRING, TYPE_PARAMETERS = case(6) / "input.py", case(7) / "input.b.py"


def python(source: Path, able: bool) -> str:
    """An interpreter of this machine that can compile a file, or cannot; without one the test is skipped."""
    for candidate in interpreters():
        if compiles(candidate, source) is able:
            return candidate
    pytest.skip(f"no other Python here that {'can' if able else 'cannot'} compile {source.parent.name}/{source.name}")


def apply_refused(root: Path, *arguments: str, code: int, kind: str) -> str:
    before = everything(root)
    said = refusal("apply", root, *arguments, code=code, kind=kind)
    assert everything(root) == before
    assert probepatch("ledger", "show", root)["transactions"] == []
    return said


# --- 06: two verdicts -------------------------------------------------------------------------------------------------


def label_is_patched(root: Path, *arguments: str) -> None:
    path = root / "input.py"
    original = path.read_bytes()
    compiled = probepatch("apply", root, *recipes(case(6) / "recipe.yaml"), *arguments)["files"][0]["compiled"]
    assert compiled.startswith("compiles under")
    assert path.read_bytes() == original.replace(b"(row):\n", b"(row):\n    tap(row)\n", 1)
    probepatch("revert", root)
    assert path.read_bytes() == original


def test_06_the_running_python(checkout: Checkout) -> None:
    root, recipe = checkout(case(6)), recipes(case(6) / "recipe.yaml")
    if compiles(sys.executable, FSTRING):
        label_is_patched(root)
    else:
        said = apply_refused(root, *recipe, code=3, kind="uncheckable")
        assert "input.py cannot be checked by CPython" in said
        assert "without our edits" in said
        assert "--python" in said


def test_06_a_python_that_is_too_old(checkout: Checkout) -> None:
    recipe, old = recipes(case(6) / "recipe.yaml"), python(FSTRING, able=False)
    said = apply_refused(checkout(case(6)), *recipe, "--python", old, code=3, kind="uncheckable")
    assert "input.py:2" in said


def test_06_a_python_that_is_new_enough(checkout: Checkout) -> None:
    label_is_patched(checkout(case(6)), "--python", python(FSTRING, able=True))


def test_06_only_an_edit_that_breaks_the_file_is_blamed(checkout: Checkout) -> None:
    root, broken = checkout(case(6)), recipes(case(6) / "broken.yaml")
    said = apply_refused(root, *broken, "--python", python(FSTRING, able=True), code=1, kind="broken-by-edit")
    assert "the edits would break input.py" in said
    assert "input.py:3" in said
    apply_refused(root, *broken, "--python", python(FSTRING, able=False), code=3, kind="uncheckable")


# --- 07: the second of three files ------------------------------------------------------------------------------------


def three_are_patched(root: Path, *arguments: str) -> None:
    files = {path: path.read_bytes() for path in root.glob("input.*.py")}
    assert len(files) == 3
    for recipe in ("recipe.yaml", "inside.yaml"):
        probepatch("apply", root, *recipes(case(7) / recipe), *arguments)
    after = {path: path.read_bytes() for path in files}
    probepatch("revert", root)
    assert {path: path.read_bytes() for path in files} == files
    for path, data in files.items():
        header, rest = data.split(b"\n", 1)
        call = b"    tap(a)\n" if path.name == "input.b.py" else b"    tap(x)\n"
        assert after[path] == header + b"\n" + call + rest + b"READY = 1\n"


def test_07_the_running_python(checkout: Checkout) -> None:
    root = checkout(case(7))
    if compiles(sys.executable, TYPE_PARAMETERS):
        three_are_patched(root)
    else:
        said = apply_refused(root, *recipes(case(7) / "recipe.yaml"), code=3, kind="uncheckable")
        assert "input.b.py:1" in said or "input.b.py:2" in said
        assert "input.a.py" not in said


def test_07_a_python_that_is_new_enough(checkout: Checkout) -> None:
    three_are_patched(checkout(case(7)), "--python", python(TYPE_PARAMETERS, able=True))


@pytest.mark.parametrize("named", [False, True], ids=["running-python", "new-python"])
def test_07_syntax_that_no_parser_knows(checkout: Checkout, named: bool) -> None:
    root = checkout(case(7))
    path = root / "input.b.py"
    path.write_bytes(path.read_bytes() + b"first = batch?.first\n")  # PEP 505, which no Python has
    more = ("--python", python(TYPE_PARAMETERS, able=True)) if named else ()
    said = apply_refused(root, *recipes(case(7) / "inside.yaml"), *more, code=1, kind="syntax-unknown")
    assert f"input.b.py:{5 if compiles(sys.executable, TYPE_PARAMETERS) else 1}" in said
    assert f"libcst {importlib.metadata.version('libcst')}" in said
    assert "input.a.py" not in said
