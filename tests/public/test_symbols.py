"""Names that are there twice, names that are gone, and every way out of a function."""

from __future__ import annotations

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.public.driver import case, everything, probepatch, recipes, refusal

Checkout = Callable[[Path], Path]

# --- 10: one name, several definitions --------------------------------------------------------------------------------

SELECTED = """\
recipe: selected
framework: example
side: train
versions: ">=0"
why: one of several definitions
edits:
  - {{id: e, file: input.py, in: {name}, select: {{{select}}}, body_start: tap(), marker: false}}
"""


def test_10_every_candidate_is_listed_and_nothing_written(checkout: Checkout) -> None:
    root = checkout(case(10))
    before = everything(root)
    error = probepatch("apply", root, *recipes(case(10) / "recipe.yaml"), code=1)["error"]
    assert [finding["kind"] for finding in error["findings"]] == ["ambiguous-symbol"] * 3
    lines = [
        [int(detail.split(":")[1]) for detail in finding["details"] if "select: {nth" in detail]
        for finding in error["findings"]
    ]
    assert lines == [[5, 8], [14, 20], [24, 26, 27]]
    assert everything(root) == before


def test_10_one_ambiguous_edit_stops_the_others(checkout: Checkout, tmp_path: Path) -> None:
    root = checkout(case(10))
    before = everything(root)
    good = tmp_path / "good.yaml"
    good.write_text(SELECTED.format(name="load", select="nth: 1"))
    refusal("apply", root, *recipes(good, case(10) / "recipe.yaml"), code=1, kind="ambiguous-symbol")
    assert everything(root) == before


@pytest.mark.parametrize(
    ("name", "select", "line"),
    [
        ("load", "nth: 1", 6),
        ("load", "nth: 2", 9),
        ("load", "branch: if", 6),
        ("load", "branch: else", 9),
        ("Pool.size", "decorator: property", 15),
        ("Pool.size", "decorator: size.setter", 21),
        ("Pool.size", "nth: 2", 21),
        ("Pool.get", "decorator: none", 28),
        ("Pool.get", "nth: 3", 28),
    ],
)
def test_10_a_selector_hits_exactly_one(checkout: Checkout, tmp_path: Path, name: str, select: str, line: int) -> None:
    root, recipe = checkout(case(10)), tmp_path / "r.yaml"
    lines = (root / "input.py").read_text().splitlines()
    recipe.write_text(SELECTED.format(name=name, select=select))
    probepatch("apply", root, *recipes(recipe))
    indent = " " * (len(lines[line - 1]) - len(lines[line - 1].lstrip()))
    assert (root / "input.py").read_text().splitlines() == [*lines[: line - 1], indent + "tap()", *lines[line - 1 :]]


def test_10_the_nested_definition_is_another_name(checkout: Checkout, tmp_path: Path) -> None:
    root, recipe = checkout(case(10)), tmp_path / "r.yaml"
    recipe.write_text(SELECTED.format(name="Pool.size.load", select="").replace("select: {}, ", ""))
    probepatch("apply", root, *recipes(recipe))
    assert (root / "input.py").read_text().splitlines()[14:16] == ["        def load(p):", "            tap()"]


# --- 15: the code moved -----------------------------------------------------------------------------------------------


def test_15_a_look_alike_is_a_hint_only(checkout: Checkout) -> None:
    root = checkout(case(15))
    before = everything(root)
    said = refusal("apply", root, *recipes(case(15) / "recipe.yaml"), code=1, kind="symbol-missing")
    assert "`encode` is not in the file" in said
    assert "in: legacy" in said
    assert "input.py:3" in said
    assert "in: encode_v2" in said
    assert "input.py:9" in said
    assert everything(root) == before
    assert probepatch("ledger", "show", root)["transactions"] == []


# --- 17: every way out ------------------------------------------------------------------------------------------------

WRAPPED = b"""\
import os


def execute(self, batch):
    dumping = os.environ.get("DUMP_ON", "") not in ("", "0")
    if dumping:
        dbg.start(self.model)
    try:
        if not batch:
            return None
        def pick(b):
            return b[0]
        out = self.model(batch)
        if self.last_stage is False:
            return out
        if out is None:
            raise RuntimeError("empty")
        return pick(out)
    finally:
        if dumping:
            dbg.stop()
            dbg.step()
"""

IDENTITY, NONE = (lambda batch: batch), (lambda batch: None)
WAYS_OUT = {
    "nothing to do": ([], None, IDENTITY, True),
    "the end": (["first", "second"], "first", IDENTITY, True),
    "not the last stage": (["first", "second"], ["first", "second"], IDENTITY, False),
    "it raises": (["first"], RuntimeError("empty"), NONE, True),
    "the model raises": (["first"], ZeroDivisionError("division by zero"), lambda batch: 1 / 0, True),
}


class Debugger:
    """Writes down what is called."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def start(self, model: object) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")

    def step(self) -> None:
        self.calls.append("step")


def outcome(source: str, way: tuple[Any, ...]) -> tuple[object, list[str]]:
    """What the function gives or raises, and the calls it made."""
    batch, _wanted, model, last_stage = way
    names: dict[str, Any] = {"dbg": Debugger()}
    exec(source, names)
    try:
        result = names["execute"](types.SimpleNamespace(model=model, last_stage=last_stage), batch)
    except (ArithmeticError, RuntimeError) as error:
        result = repr(error)
    return result, names["dbg"].calls


@pytest.fixture(scope="module")
def wrapped(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The function before and after ``apply``."""
    root = tmp_path_factory.mktemp("wrapped")
    before = (case(17) / "input.py").read_bytes()
    (root / "input.py").write_bytes(before)
    probepatch("apply", root, *recipes(case(17) / "recipe.yaml"))
    after = (root / "input.py").read_bytes()
    assert after == WRAPPED
    probepatch("revert", root)
    assert (root / "input.py").read_bytes() == before
    return before.decode(), after.decode()


@pytest.mark.parametrize("way", WAYS_OUT.values(), ids=list(WAYS_OUT))
@pytest.mark.parametrize(("switch", "on"), [("1", True), ("0", False), ("", False), (None, False)])
def test_17_once_on_every_way_out(
    wrapped: tuple[str, str], way: tuple[Any, ...], switch: str | None, on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DUMP_ON", raising=False)
    if switch is not None:
        monkeypatch.setenv("DUMP_ON", switch)
    before, after = wrapped
    wanted = repr(way[1]) if isinstance(way[1], Exception) else way[1]
    assert outcome(before, way) == (wanted, [])
    assert outcome(after, way) == (wanted, ["start", "stop", "step"] if on else [])


def test_17_a_string_over_several_lines_keeps_its_bytes(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    root = checkout(case(17))
    path = root / "input.py"
    text = 'r"""one\n two\n\n    \tthree\\\n"""'
    source = path.read_text().replace("return pick(out)", f"return {text}")
    path.write_text(source)
    probepatch("apply", root, *recipes(case(17) / "recipe.yaml"))
    assert text in path.read_text()
    monkeypatch.setenv("DUMP_ON", "1")
    way = WAYS_OUT["the end"]
    assert outcome(path.read_text(), way)[0] == outcome(source, way)[0]
    probepatch("revert", root)
    assert path.read_text() == source
