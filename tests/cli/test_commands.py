"""The commands on a real checkout, as real processes; every JSON answer is checked against its published schema."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import cli
from codemods.errors import RefusedError
from commands import planning
from tests.cli.test_shell import ROOT, run
from tests.conftest import FIXTURES, write

RECIPES = sorted((FIXTURES / "recipes/tinyrl").glob("tinyrl-*.yaml"))
FILES = [part for path in RECIPES for part in ("--recipe-file", str(path))]
WORKER, RUNNER, ADDED = "tinyrl/trainer/worker.py", "tinyrl/engine/model_runner.py", "tinyrl/probepatch_tinyrl.py"
OURS = b", probepatch_tinyrl.captured(micro_batch)"


def answer(schema: str, *arguments: str | Path, code: int = 0, **environment: str) -> dict:
    """The JSON of a command that has to end with ``code``, valid under its schema."""
    done = run(*arguments, "--json", **environment)
    assert done.returncode == code, done.stdout + done.stderr
    result = json.loads(done.stdout)
    jsonschema.validate(result, json.loads((ROOT / f"docs/schemas/{schema}.json").read_text()))
    return result


def contents(root: Path) -> dict[str, bytes]:
    paths = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.relative_to(root).parts)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture
def applied(demo_checkout: Path) -> Path:
    answer("apply", "apply", demo_checkout, *FILES)
    return demo_checkout


def test_the_whole_round(demo_checkout, git):
    before = contents(demo_checkout)
    identity = answer("identify", "identify", demo_checkout, *FILES)
    assert (identity["framework"], identity["version"]["declared"], identity["dirty"]) == ("tinyrl", "0.3.1", 0)
    assert [recipe["fits"] for recipe in identity["recipes"]] == [True, True]
    assert answer("status", "status", demo_checkout)["edits"] == []

    plan = answer("diff", "diff", demo_checkout, *FILES)
    assert plan["changes"]
    assert contents(demo_checkout) == before

    done = answer("apply", "apply", demo_checkout, *FILES)
    did = {file["path"]: file["did"] for file in done["receipt"]["files"]}
    assert did == {WORKER: "changed", RUNNER: "changed", ADDED: "added"}
    assert OURS in (demo_checkout / WORKER).read_bytes()
    assert {edit["state"] for edit in answer("status", "status", demo_checkout)["edits"]} == {"applied"}
    assert not answer("diff", "diff", demo_checkout, *FILES)["changes"]
    assert answer("apply", "apply", demo_checkout, *FILES)["receipt"]["txn"] == ""
    assert len(answer("ledger-show", "ledger", "show", demo_checkout)["transactions"]) == 1
    assert answer("ledger-verify", "ledger", "verify", demo_checkout)["problems"] == []

    receipt = answer("receipt", "revert", demo_checkout)
    assert receipt["proof"]["exact"]
    assert receipt["proof"]["git_diff_equal"] is True
    assert contents(demo_checkout) == before
    assert git(demo_checkout, "status", "--porcelain") == ""
    assert answer("receipt", "revert", demo_checkout)["txn"] == ""
    assert answer("receipt", "ledger", "forget", demo_checkout)["command"] == "forget"
    assert answer("receipt", "ledger", "recover", demo_checkout)["repaired"] is None


def test_the_printed_patch_gives_the_applied_bytes(demo_checkout, tmp_path, git):
    copy = tmp_path / "copy"
    shutil.copytree(demo_checkout, copy)
    command = [sys.executable, "-m", "probepatch", "diff", str(demo_checkout), "--patch", *FILES]
    patch = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    assert patch.stderr == b""
    subprocess.run(["git", "apply", "-"], cwd=copy, input=patch.stdout, check=True)
    answer("apply", "apply", demo_checkout, *FILES)
    assert contents(copy) == contents(demo_checkout)


def test_for_people(demo_checkout):
    shown = run("diff", demo_checkout, *FILES).stdout
    assert f"{WORKER}  +2 -1\n" in shown
    assert "tinyrl-trainer/capture-micro-batch  [1 place within a line]" in shown
    assert "nothing is re-indented" in shown  # the edit's `why`
    assert "\n+            with torch.no_grad(), probepatch_tinyrl.captured(micro_batch):\n" in shown
    assert "3 files, 6 edits, +39 -1; nothing was written" in shown
    assert "yes   its versions are" in run("identify", demo_checkout, *FILES).stdout
    done = run("apply", demo_checkout, *FILES)
    assert f"  changed   {WORKER}\n" in done.stdout
    assert "6 of 6 edits stand" in run("status", demo_checkout).stdout
    assert "apply    commit   3      tinyrl-engine, tinyrl-trainer" in run("ledger", "show", demo_checkout).stdout
    assert "nothing to do" in run("apply", demo_checkout, *FILES).stdout
    assert "3 files are byte for byte the originals" in run("revert", demo_checkout).stdout
    assert "\x1b" not in shown + done.stdout + done.stderr


def test_colours_on_a_terminal_only(demo_checkout):
    def on_terminal(**environment: str) -> bytes:
        parent, child = pty.openpty()
        command = [sys.executable, "-m", "probepatch", "diff", str(demo_checkout), *FILES]
        env = {**os.environ, "TERM": "xterm", **environment}
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=child, stderr=child)
        os.close(child)
        shown = b""
        while True:
            try:
                part = os.read(parent, 65536)
            except OSError:  # the terminal's way to say that its last writer has gone
                break
            if not part:
                break
            shown += part
        assert process.wait() == 0
        os.close(parent)
        return shown

    assert b"\x1b[32m+            with torch.no_grad(), probepatch_tinyrl.captured(micro_batch):" in on_terminal()
    assert b"\x1b" not in on_terminal(NO_COLOR="1")


def test_one_recipe_or_one_edit_comes_out(applied):
    original = contents(FIXTURES / "checkout")
    receipt = answer("receipt", "revert", applied, "--recipe", "tinyrl-engine")
    assert {file["path"]: file["did"] for file in receipt["files"]} == {RUNNER: "changed", ADDED: "recorded"}
    assert (applied / RUNNER).read_bytes() == original[RUNNER]
    answer("receipt", "revert", applied, "--edit", "tinyrl-trainer/capture-micro-batch")
    assert OURS not in (applied / WORKER).read_bytes()
    assert len(answer("status", "status", applied)["edits"]) == 2
    assert run("revert", applied, "--recipe", "a", "--edit", "b").returncode == 2


def test_an_edit_that_somebody_changed_stays_and_is_told(applied):
    file = applied / WORKER
    file.write_bytes(file.read_bytes().replace(OURS, b", probepatch_tinyrl.captured(micro_batch, 'mine')"))
    changed = file.read_bytes()
    states = {edit["edit"]: edit["state"] for edit in answer("status", "status", applied, code=1)["edits"]}
    assert states["capture-micro-batch"] == "inside"
    assert "changed inside" in run("status", applied).stdout
    receipt = answer("receipt", "revert", applied, "--edit", "capture-micro-batch", code=1)
    assert [refusal["edit"] for refusal in receipt["refused"]] == ["tinyrl-trainer/capture-micro-batch"]
    assert file.read_bytes() == changed
    receipt = answer("receipt", "revert", applied, "--force")
    assert [Path(path).read_bytes() for path in receipt["saved"]] == [changed]
    assert contents(applied) == contents(FIXTURES / "checkout")


def test_an_interrupted_apply_is_told_and_repaired(applied):
    ledger = applied / ".git/probepatch/ledger.jsonl"
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join(lines[:-1]))  # killed right before its last line
    assert answer("status", "status", applied, code=1)["interrupted"]["total"] == 3
    assert "interrupted: apply wrote 3 of 3 files" in run("status", applied).stdout
    assert answer("error", "diff", applied, *FILES, code=3)["error"]["kind"] == "refused"
    assert answer("apply", "apply", applied, *FILES)["repaired"]["outcome"] == "commit"
    assert answer("status", "status", applied)["interrupted"] is None


def test_every_miss_is_reported(demo_checkout):
    (demo_checkout / RUNNER).unlink()
    worker = demo_checkout / WORKER
    worker.write_text(worker.read_text().replace("with torch.no_grad():", "with torch.inference_mode():"))
    before = contents(demo_checkout)
    error = answer("error", "apply", demo_checkout, *FILES, code=1)["error"]
    assert len(error["findings"]) == 3
    shown = run("apply", demo_checkout, *FILES)
    assert shown.returncode == 1
    assert shown.stderr.count("error: ") == 4
    assert "capture-micro-batch" in shown.stderr
    assert contents(demo_checkout) == before


@pytest.mark.parametrize(
    ("text", "code", "kind"),
    [
        ("recipe: [", 4, "recipe"),
        ("", 4, "recipe"),
        (RECIPES[0].read_text().replace('versions: ">=0.3,<0.4"', 'versions: ">=0.4"'), 1, "not-fitting"),
        (RECIPES[0].read_text().replace("framework: tinyrl", "framework: verl"), 1, "not-fitting"),
        (RECIPES[0].read_text().replace("before: logits =", "before: nonsense("), 4, "recipe"),
    ],
)
def test_bad_recipe_files(demo_checkout, tmp_path, text, code, kind):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    shutil.copy(FIXTURES / "recipes/tinyrl/framework.yaml", tmp_path)
    shutil.copytree(FIXTURES / "recipes/tinyrl/payloads", tmp_path / "payloads")
    if code == 4:
        assert answer("recipe-check", "recipe", "check", path, code=4)["files"][0]["error"]["where"].startswith(
            str(path)
        )
    found = answer("error", "diff", demo_checkout, "--recipe-file", path, code=code)["error"]
    assert found["kind"] == kind


@pytest.mark.parametrize("kind", ["directory", "pipe", "sparse"])
@pytest.mark.parametrize("path", ["verl/version/version", WORKER])
def test_what_is_no_source_file_is_told(demo_checkout, path, kind):
    own = FILES if path == WORKER else []
    write(demo_checkout, {"verl/__init__.py": "", "verl/version/version": "0.9.1\n"} if not own else {})
    file = demo_checkout / path
    file.unlink()
    if kind == "sparse":
        with file.open("wb") as hole:
            hole.truncate(100 << 30)
    else:
        file.mkdir() if kind == "directory" else os.mkfifo(file)
    for command in ("identify", "diff", "apply"):
        error = answer("error", command, demo_checkout, *own, code=3 if kind == "sparse" else 1)["error"]
        assert path in error["what"]


def test_an_apply_whose_output_is_lost_is_done(demo_checkout):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "probepatch", "apply", str(demo_checkout), *FILES]
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
        assert (done.returncode, len(done.stderr.splitlines())) == (141, 1)
        assert len(answer("status", "status", demo_checkout)["edits"]) == 6
        command = [sys.executable, "-m", "probepatch", "revert", str(demo_checkout), "--json"]
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
        assert (done.returncode, len(done.stderr.splitlines())) == (141, 1)
    assert contents(demo_checkout) == contents(FIXTURES / "checkout")


def test_a_plan_that_fails_beside_another_run_is_a_refusal(demo_checkout, monkeypatch):
    """The other run adds its file after our ledger was read and before the plan is made."""
    wish = planning.Wish(demo_checkout, None, None, files=tuple(RECIPES))
    scene = planning.look(wish)
    answer("apply", "apply", demo_checkout, *FILES)
    monkeypatch.setattr(planning, "look", lambda wish: scene)
    with pytest.raises(RefusedError, match="another run"):
        planning.prepare(wish)


def test_wrong_wishes(demo_checkout, tmp_path):
    assert answer("error", "diff", demo_checkout, code=1)["error"]["kind"] == "no-framework"
    assert answer("error", "diff", tmp_path / "nowhere", code=2)["error"]["kind"] == "no-checkout"
    assert answer("error", "diff", demo_checkout, "--package", "x", code=2)["error"]["kind"] == "usage"
    assert answer("error", "diff", "--package", "tinyrl", code=2)["error"]["kind"] == "usage"
    unknown = answer("error", "diff", demo_checkout, *FILES, "--recipe", "nope", code=2)
    assert "nope" in unknown["error"]["what"]
    assert answer("error", "diff", demo_checkout, *FILES, "--set", "x=1", code=2)["error"]["kind"] == "setting"


def test_a_locked_tree_is_exit_3(applied):
    with (applied / ".git/probepatch/lock").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for arguments in (["revert", applied], ["ledger", "recover", applied]):
            assert "locked" in answer("error", *arguments, code=3)["error"]["what"]
        assert answer("status", "status", applied)["edits"]


def test_a_damaged_ledger_is_exit_4(applied):
    ledger = applied / ".git/probepatch/ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b"tinyrl", b"tinyRL", 1))
    for arguments in (["status", applied], ["revert", applied], ["diff", applied, *FILES]):
        assert answer("error", *arguments, code=4)["error"]["kind"] == "invalid"
    assert answer("ledger-verify", "ledger", "verify", applied, code=4)["problems"]
    answer("receipt", "ledger", "forget", applied)
    assert answer("status", "status", applied)["edits"] == []


def test_a_package_by_interpreter(tmp_path):
    site = tmp_path / "site"
    shutil.copytree(FIXTURES / "checkout/tinyrl", site / "tinyrl")
    where = ["--package", "tinyrl", "--python", sys.executable]
    path = f"{ROOT}{os.pathsep}{site}"
    assert answer("apply", "apply", *where, *FILES, PYTHONPATH=path)["checkout"]["root"] == str(site)
    assert OURS in (site / WORKER).read_bytes()
    assert len(answer("status", "status", *where, PYTHONPATH=path)["edits"]) == 6
    answer("receipt", "revert", *where, PYTHONPATH=path)
    assert contents(site) == {n: d for n, d in contents(FIXTURES / "checkout").items() if n.startswith("tinyrl/")}


def test_a_checkout_that_is_not_the_imported_copy_is_pointed_out(demo_checkout, tmp_path):
    shutil.copytree(FIXTURES / "checkout/tinyrl", tmp_path / "site/tinyrl")
    path = f"{ROOT}{os.pathsep}{tmp_path / 'site'}"
    notes = answer("diff", "diff", demo_checkout, *FILES, "--python", sys.executable, PYTHONPATH=path)["notes"]
    assert any(str(tmp_path / "site/tinyrl") in note for note in notes)
    notes = answer("diff", "diff", demo_checkout, *FILES, "--python", sys.executable)["notes"]
    assert any("finds no package tinyrl" in note for note in notes)
    path = f"{ROOT}{os.pathsep}{demo_checkout}"
    assert answer("diff", "diff", demo_checkout, *FILES, "--python", sys.executable, PYTHONPATH=path)["notes"] == []


def test_a_recipe_for_any_folder(tmp_path):
    write(tmp_path / "any", {"m.py": "def f(x):\n    return x\n"})
    recipe = 'recipe: r\nframework: mine\nside: train\nversions: ">=0"\nwhy: w\nedits:\n'
    recipe += "  - {id: e, file: m.py, in: f, body_start: print(x)}\n"
    (tmp_path / "r.yaml").write_text(recipe)
    answer("apply", "apply", tmp_path / "any", "--recipe-file", tmp_path / "r.yaml")
    assert "    print(x)" in (tmp_path / "any/m.py").read_text()
    assert answer("receipt", "revert", tmp_path / "any")["proof"]["exact"]
    assert contents(tmp_path / "any") == {"m.py": b"def f(x):\n    return x\n"}


def test_the_catalogue():
    recipes = answer("recipes", "recipes")["recipes"]
    assert {"verl-engine-fsdp", "verl-legacy-fsdp"} <= {recipe["id"] for recipe in recipes}
    shown = run("recipes").stdout
    assert all(recipe["id"] in shown for recipe in recipes)
    assert answer("recipe-check", "recipe", "check", *(recipe["path"] for recipe in recipes))
    jsonschema.Draft202012Validator.check_schema(json.loads(run("recipe", "schema").stdout))


def test_recipes_for_a_checkout(tmp_path):
    write(tmp_path, {"verl/__init__.py": "", "verl/version/version": "0.3.0\n"})
    found = answer("recipes", "recipes", tmp_path)["recipes"]
    assert found
    assert not any(recipe["fits"] for recipe in found)
    assert all("0.3.0" in recipe["reason"] for recipe in found)
    assert answer("error", "diff", tmp_path, code=1)["error"]["kind"] == "not-fitting"


def test_names_that_would_steer_a_terminal_are_shown(tmp_path):
    shown = run("status", tmp_path / "evil\x1b[2J\nname").stderr
    assert "\x1b" not in shown
    assert "Traceback" not in shown


def test_the_demo(monkeypatch, capsys):
    done = run("demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("8 of 8 proofs hold\n")
    assert "logger.debug('a line of my own')" in done.stdout
    assert "\x1b" not in done.stdout
    monkeypatch.setattr("commands.demo._compiles", lambda checkout: False)
    assert cli.main(["demo"]) == 1
    assert "FAILED" in capsys.readouterr().out


def test_the_demo_without_git(tmp_path):
    (tmp_path / "bin").mkdir()
    done = run("demo", PATH=str(tmp_path / "bin"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "in git: no" in done.stdout
