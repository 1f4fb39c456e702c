"""Names on the command line: empty ones and slips are told, and nothing is done."""

from __future__ import annotations

import shutil

import pytest

from tests.cli.test_commands import FILES, answer, contents, run
from tests.conftest import FIXTURES


@pytest.mark.parametrize(
    "arguments",
    [
        ["apply", "", *FILES],
        ["status", ""],
        ["revert", ""],
        ["diff", ".", "--recipe", ""],
        ["diff", ".", "--recipe-file", ""],
        ["diff", ".", "--set", ""],
        ["diff", ".", "--python", ""],
        ["revert", ".", "--edit", ""],
        ["revert", ".", "--recipe", ""],
        ["recipe", "check", ""],
        ["ledger", "forget", ""],
    ],
)
def test_an_empty_argument_is_refused(tmp_path, arguments):
    shutil.copytree(FIXTURES / "checkout", tmp_path, dirs_exist_ok=True)
    before = contents(tmp_path)
    done = run(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "it is empty" in done.stderr
    assert contents(tmp_path) == before


def test_a_slip_is_told_with_what_was_meant(demo_checkout):
    for command in (["aply"], ["ledger", "shwo"], ["recipe", "chek"]):
        error = answer("error", *command, code=2)["error"]
        assert command[-1] in error["what"]
        assert "did you mean" in error["todo"]
    todo = answer("error", "apply", demo_checkout, *FILES, "--recipe", "tinyrl-trainr", code=2)["error"]["todo"]
    assert todo == "did you mean `tinyrl-trainer`?"
    for option in (["--recipe", "tinyrl-trainr"], ["--edit", "capture-micro-bach"]):
        assert answer("receipt", "revert", demo_checkout, *option)["txn"] == ""  # an empty ledger knows no names
    answer("apply", "apply", demo_checkout, *FILES)
    patched = contents(demo_checkout)
    for option, meant in (
        (["--recipe", "tinyrl-trainr"], "tinyrl-trainer"),
        (["--edit", "capture-micro-bach"], "capture-micro-batch"),
        (["--edit", "tinyrl-trainer/capture-micro-bach"], "tinyrl-trainer/capture-micro-batch"),
    ):
        error = answer("error", "revert", demo_checkout, *option, code=2)["error"]
        assert (error["kind"], error["todo"]) == ("usage", f"did you mean `{meant}`?")
    assert "known here" in answer("error", "revert", demo_checkout, "--recipe", "zzz", code=2)["error"]["todo"]
    assert contents(demo_checkout) == patched


def test_what_was_taken_out_before_is_no_slip(demo_checkout):
    answer("apply", "apply", demo_checkout, *FILES)
    for expected in (True, False):
        receipt = answer("receipt", "revert", demo_checkout, "--recipe", "tinyrl-engine")
        assert bool(receipt["txn"]) is expected


def test_patch_and_json_exclude_each_other(demo_checkout):
    assert "--patch" in answer("error", "diff", demo_checkout, *FILES, "--patch", code=2)["error"]["what"]


@pytest.mark.parametrize("arguments", [[], ["ledger"], ["recipe"]])
def test_a_group_alone_shows_its_help(arguments):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: probepatch")
