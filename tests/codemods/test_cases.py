"""Each folder of tests/cases: a recipe, the file before, and the file after or the finding that has to come."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from codemods.compiling import check
from codemods.errors import ProbePatchError
from codemods.misses import PlanError
from codemods.planner import plan_edits
from codemods.recipe_reader import load_recipe
from codemods.splice import PlannedEdit, check_order, render
from codemods.target import Bases

CASES = sorted(Path(__file__).parents[1].joinpath("cases").iterdir())
GOOD = [case for case in CASES if (case / "after.py").exists()]
BAD = [case for case in CASES if (case / "finding.txt").exists()]


def planned(case: Path, before: bytes) -> tuple[PlannedEdit, ...]:
    plan = plan_edits([load_recipe(case / "recipe.yaml")], Bases({"m.py": before}.get))
    check_order("m.py", plan["m.py"])
    return plan["m.py"]


def names(cases: list[Path]) -> list[str]:
    return [case.name for case in cases]


def test_every_case_has_one_outcome() -> None:
    assert len(GOOD) + len(BAD) == len(CASES) > 40


@pytest.mark.parametrize("case", GOOD, ids=names(GOOD))
def test_before_becomes_after(case: Path) -> None:
    before, after = (case / "before.py").read_bytes(), (case / "after.py").read_bytes()
    edits = planned(case, before)
    assert render(before, edits) == after
    assert "compiles" in check([("m.py", before, after)])["m.py"]
    assert render(before, ()) == before


@pytest.mark.parametrize("case", GOOD, ids=names(GOOD))
def test_every_subset_of_the_edits_compiles(case: Path) -> None:
    before = (case / "before.py").read_bytes()
    edits = planned(case, before)
    for size in range(len(edits)):
        for some in itertools.combinations(edits, size):
            check([("m.py", before, render(before, some))])


VARIANTS = [(case, variant) for case in GOOD for variant in ("crlf", "bom", "no-final-newline")]
VARIANTS.remove((CASES[0].with_name("latin-1"), "bom"))  # a byte-order mark contradicts another encoding


@pytest.mark.parametrize(("case", "variant"), VARIANTS, ids=[f"{case.name}-{variant}" for case, variant in VARIANTS])
def test_line_endings_and_marks_survive(case: Path, variant: str) -> None:
    before, after = (case / "before.py").read_bytes(), (case / "after.py").read_bytes()
    if variant == "crlf":
        before, after = before.replace(b"\n", b"\r\n"), after.replace(b"\n", b"\r\n")
    elif variant == "bom":
        before, after = b"\xef\xbb\xbf" + before, b"\xef\xbb\xbf" + after
    else:
        before, after = before.removesuffix(b"\n"), after.removesuffix(b"\n")
    assert render(before, planned(case, before)) == after


@pytest.mark.parametrize("case", BAD, ids=names(BAD))
def test_the_finding_comes_and_says_where(case: Path) -> None:
    """finding.txt: the kind on the first line, then texts that the finding has to hold."""
    kind, *texts = (case / "finding.txt").read_text().strip().splitlines()
    before = (case / "before.py").read_bytes()
    with pytest.raises(ProbePatchError) as caught:
        edits = planned(case, before)
        check([("m.py", before, render(before, edits))])
    error = caught.value.findings[0] if isinstance(caught.value, PlanError) else caught.value
    said = " ".join(str(value) for value in error.as_json().values())
    assert error.kind == kind, said
    for text in texts:
        assert text in said
