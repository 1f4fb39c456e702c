"""What the doctor says of an edit whose place has changed: with the older tree and without it. Never a wrong place taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from authoring.drift.diagnosis import AMBIGUOUS, GONE, MOVED, OK, UNSURE, UPSTREAM
from tests.authoring.small import EDIT, IMPORT, WORKER, diagnosed, recipe, tree

OLD = tree(worker=WORKER)


def test_an_edit_that_fits_is_fine(tmp_path: Path) -> None:
    found = diagnosed(recipe(tmp_path), OLD)
    assert {one.state for one in found.values()} == {OK}


def test_a_renamed_method_is_found_by_its_body(tmp_path: Path) -> None:
    new = tree(worker=WORKER.replace("compute_log_prob", "infer_log_probs"))
    one = diagnosed(recipe(tmp_path), new, OLD)["dump"]
    assert one.state == MOVED
    assert one.stands is not None and one.stands.symbol == "Worker.infer_log_probs"


def test_without_the_older_tree_a_renamed_method_is_only_a_candidate(tmp_path: Path) -> None:
    new = tree(worker=WORKER.replace("compute_log_prob", "infer_log_probs"))
    one = diagnosed(recipe(tmp_path), new)["dump"]
    assert one.state == UNSURE
    assert one.candidates[0].place.symbol == "Worker.infer_log_probs"


def test_a_moved_file_takes_its_import_with_it(tmp_path: Path) -> None:
    found = diagnosed(recipe(tmp_path), tree(workers__engine=WORKER), OLD)
    assert [found[name].stands.file for name in ("import", "dump") if found[name].stands] == [
        "lab/workers/engine.py"
    ] * 2


def test_an_import_stays_behind_with_those_that_stay(tmp_path: Path) -> None:
    other = (
        EDIT.replace("id: dump", "id: count")
        .replace("compute_log_prob", "update")
        .replace("$OUT = self.model.infer(data)", "$LOSS = self.model.train(data)")
    )
    moved = WORKER.split("    def update")[0]
    rest = "class Worker:\n    def update(self, data):\n        loss = self.model.train(data)\n        return loss\n"
    found = diagnosed(recipe(tmp_path, IMPORT + EDIT + other), tree(engine=moved, worker=rest), OLD)
    assert found["count"].state == OK
    assert found["import"].state == UNSURE, "both files need it, and an edit is for one"


def test_a_renamed_class_is_found(tmp_path: Path) -> None:
    one = diagnosed(recipe(tmp_path), tree(worker=WORKER.replace("class Worker", "class Engine")), OLD)["dump"]
    assert one.state == MOVED
    assert one.candidates[0].kinds == ("other class",)


def test_a_method_that_became_a_function_is_shown(tmp_path: Path) -> None:
    new = """
        import torch

        def compute_log_prob(self, data):
            data = data.to("cpu")
            with torch.no_grad():
                output = self.model.infer(data)
            output = output.to("cpu")
            return output
    """
    one = diagnosed(recipe(tmp_path), tree(worker=new), OLD)["dump"]
    assert one.candidates[0].place.symbol == "compute_log_prob"
    assert "method became function" in one.candidates[0].kinds


def test_a_twin_keeps_it_from_being_taken(tmp_path: Path) -> None:
    renamed = WORKER.replace("class Worker", "class Engine")
    one = diagnosed(recipe(tmp_path), tree(engine=renamed, other=renamed), OLD)["dump"]
    assert one.state == UNSURE
    assert len(one.candidates) == 2


def test_another_function_with_the_same_statement_is_not_taken(tmp_path: Path) -> None:
    """The place is gone; a stranger holds the same statement."""
    new = """
        class Critic:
            def values(self, batch, mask, *rest):
                for row in batch:
                    data = self.pick(row)
                    value = self.model.infer(data)
                    self.keep(value, mask)
    """
    one = diagnosed(recipe(tmp_path), tree(critic=new), OLD)["dump"]
    assert one.stands is None


def test_a_changed_statement_is_shown_and_not_taken(tmp_path: Path) -> None:
    new = WORKER.replace("self.model.infer(data)", "self.model.infer(data, packed=True)")
    one = diagnosed(recipe(tmp_path), tree(worker=new), OLD)["dump"]
    assert one.state == UNSURE
    first = one.candidates[0]
    assert first.kinds == ("anchor changed",)
    assert first.place.fields["before"] == "$OUT = self.model.infer(data, ...)"


def test_a_statement_that_is_gone_has_no_candidate(tmp_path: Path) -> None:
    new = WORKER.replace("            output = self.model.infer(data)\n", "            output = data\n")
    one = diagnosed(recipe(tmp_path), tree(worker=new), OLD)["dump"]
    assert (one.state, one.candidates) == (GONE, ())


def test_wrapping_the_statement_changes_nothing(tmp_path: Path) -> None:
    new = WORKER.replace("            output = self", "            with lock:\n                output = self")
    assert diagnosed(recipe(tmp_path), tree(worker=new), OLD)["dump"].state == OK


@pytest.mark.parametrize(
    "change",
    [
        ("            output = self", "            if self.is_ref:\n                output = self"),
        ("            output = self", "            return self.engine.run(data)\n            output = self"),
    ],
    ids=["under a condition", "behind a return"],
)
def test_a_place_that_is_reached_otherwise_is_left_to_the_author(tmp_path: Path, change: tuple[str, str]) -> None:
    one = diagnosed(recipe(tmp_path), tree(worker=WORKER.replace(*change)), OLD)["dump"]
    assert one.state == UNSURE
    assert one.stands is None


def test_a_hole_that_holds_something_else_is_left_to_the_author(tmp_path: Path) -> None:
    old, new = (
        f"def run(model, ids, mask):\n    out = model({args})\n    return out\n" for args in ("ids, mask", "mask, ids")
    )
    edit = EDIT.replace("Worker.compute_log_prob", "run").replace(
        "$OUT = self.model.infer(data)", "$OUT = model($IN, $MASK)"
    )
    one = diagnosed(
        recipe(tmp_path, IMPORT + edit.replace("start(data)", "start($IN)")), tree(worker=new), tree(worker=old)
    )
    assert one["dump"].state == UNSURE


TWIN = WORKER.replace("compute_log_prob", "compute_ref_log_prob")


def test_what_was_there_before_is_not_where_it_went(tmp_path: Path) -> None:
    """The method delegates now; the reference's, which has the same statement, has been there all along."""
    old = WORKER + "\n\nclass Other:\n" + TWIN.split("class Worker:\n")[1]
    new = old.replace("            output = self.model.infer(data)\n", "            return self.engine.run(data)\n", 1)
    assert diagnosed(recipe(tmp_path), tree(worker=new), tree(worker=old))["dump"].stands is None


@pytest.mark.parametrize("with_base", [True, False])
def test_a_twin_in_another_file_is_not_taken_when_the_file_is_gone(tmp_path: Path, with_base: bool) -> None:
    old, new = tree(worker=WORKER, megatron=WORKER), tree(megatron=WORKER)
    assert diagnosed(recipe(tmp_path), new, old if with_base else None)["dump"].stands is None


def test_a_name_bound_only_below_or_in_a_comprehension_is_a_doubt(tmp_path: Path) -> None:
    edit = EDIT.replace("start(data)", "start(batch)")
    old = WORKER.replace('(self, data):\n        "', '(self, data, batch):\n        "')
    for late in ("        batch = None\n", "        rows = [batch for batch in output]\n"):
        new = WORKER.replace("        return output\n", f"{late}        return output\n", 1)
        assert diagnosed(recipe(tmp_path, IMPORT + edit), tree(worker=new), tree(worker=old))["dump"].state == UNSURE


def test_a_line_of_the_module_is_not_looked_for_in_other_files(tmp_path: Path) -> None:
    edit = EDIT.replace("    in: Worker.compute_log_prob\n", "").replace(
        "$OUT = self.model.infer(data)", "SERVER = make()"
    )
    old, new = tree(worker="SERVER = make()\n"), tree(critic="SERVER = make()\n")
    assert diagnosed(recipe(tmp_path, IMPORT + edit.replace("start(data)", "start()")), new, old)["dump"].stands is None


def test_more_matches_than_expected_are_listed(tmp_path: Path) -> None:
    twice = "            output = self.model.infer(data)\n"
    one = diagnosed(recipe(tmp_path), tree(worker=WORKER.replace(twice, twice * 2)), OLD)["dump"]
    assert one.state == AMBIGUOUS
    assert [candidate.place.nth for candidate in one.candidates] == [None, 1, 2]
    assert {candidate.place.expect for candidate in one.candidates} == {2}


def test_what_is_upstream_already_is_said(tmp_path: Path) -> None:
    new = WORKER.replace("self.model.infer(data)", "self.model.forward(data)").replace(
        "        with torch", "        probe.start(data)\n        with torch"
    )
    assert diagnosed(recipe(tmp_path), tree(worker=new), OLD)["dump"].state == UPSTREAM


def test_a_name_that_is_not_there_any_more_is_a_doubt(tmp_path: Path) -> None:
    new = WORKER.replace("(self, data)", "(self, batch)").replace("data = data.to", "batch = batch.to")
    new = new.replace("self.model.infer(data)", "self.model.infer(data=batch)")
    edit = EDIT.replace("$OUT = self.model.infer(data)", "$OUT = self.model.infer(...)")
    one = diagnosed(recipe(tmp_path, IMPORT + edit), tree(worker=new), OLD)["dump"]
    assert one.state == UNSURE
    assert "`data`" in one.doubts[0]


def test_a_nested_function_that_was_taken_in_is_found(tmp_path: Path) -> None:
    old = """
        class Worker:
            def run(self, data):
                def inner(data):
                    keys = ["a", "b"]
                    return data.select(keys)
                return inner(data)
    """
    new = """
        class Worker:
            def run(self, data):
                keys = ["a", "b"]
                return data.select(keys)
    """
    edit = EDIT.replace("Worker.compute_log_prob", "Worker.run.inner").replace(
        "before: $OUT = self.model.infer(data)", 'after: keys = ["a", "b"]'
    )
    one = diagnosed(recipe(tmp_path, IMPORT + edit), tree(worker=new), tree(worker=old))["dump"]
    assert one.state == MOVED
    assert one.stands is not None and one.stands.symbol == "Worker.run"


@pytest.mark.parametrize("broken", ["def f(:\n", "\x00", "x = " + "(" * 5000 + ")" * 5000])
def test_files_that_cannot_be_read_are_passed_over(tmp_path: Path, broken: str) -> None:
    new = tree(worker=broken, engine=WORKER)
    one = diagnosed(recipe(tmp_path), new, OLD)["dump"]
    assert one.stands is None or one.stands.file == "lab/engine.py"


def test_what_stands_at_home_comes_before_what_matches_elsewhere(tmp_path: Path) -> None:
    """The method is where it was, with a changed statement; another class holds the statement unchanged."""
    new = WORKER.replace("self.model.infer(data)", "self.model.infer(data, packed=True)")
    other = WORKER.replace("class Worker", "class Other")
    one = diagnosed(recipe(tmp_path), tree(worker=new, other=other), OLD)["dump"]
    assert one.state == UNSURE
    assert one.candidates[0].place.symbol == "Worker.compute_log_prob"


def test_nothing_is_taken_from_another_class_while_the_method_is_still_there(tmp_path: Path) -> None:
    new = WORKER.replace("            output = self.model.infer(data)\n", "            output = data\n")
    other = WORKER.replace("class Worker", "class Other")
    assert diagnosed(recipe(tmp_path), tree(worker=new, other=other), OLD)["dump"].stands is None
