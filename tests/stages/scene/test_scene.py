"""The scene on small trees and through the task card, as real processes."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from codemods.catalogue import catalogue
from codemods.recipe_reader import load_recipe
from stages.card.evidence import record
from stages.card.store import changing, read_card
from stages.scene.signs import BACKEND, ROLES
from tests.cli.test_commands import FILES, answer
from tests.cli.test_shell import run
from tests.conftest import FIXTURES, write
from tests.stages.scene.trees import ENGINE, OWN, VERL

HELPERS = {"verl-debug-metrics", "vllm-prompt-logprobs"}  # they stand beside a capture


def scene(*arguments: str | Path, code: int = 0) -> dict:
    (side,) = answer("scene", "scene", *arguments, code=code)["sides"]
    return side


def thing(side: dict, role: str) -> dict:
    return next(one for one in side["things"] if one["role"] == role)


def test_every_recipe_has_its_places(capsys):
    """The ids of a recipe's edits say which of the three places they are; a new recipe has to be among them."""
    from fnmatch import fnmatch

    for heading in catalogue():
        if heading.id in HELPERS or heading.id.endswith("-update"):
            continue
        ids = [edit.id for edit in load_recipe(heading.path).edits]
        for role, names in ROLES[heading.side].items():
            if names:
                assert any(fnmatch(id_, name) for id_ in ids for name in names), (heading.id, role)
        if heading.side == "train":
            assert any(fnmatch(heading.id, name) for names in BACKEND.values() for name in names), heading.id


def test_an_unknown_framework_is_searched_and_nothing_is_presumed(tmp_path):
    write(tmp_path, OWN)
    assert "say --side" in answer("error", "scene", tmp_path, code=2)["error"]["todo"]
    side = scene(tmp_path, "--side", "train", code=1)
    assert (side["framework"], side["package"], side["version"]["declared"]) == (None, "mine", "3.1")
    assert (side["backend"], side["native_msprobe"], side["official"]["inside"]) == (None, False, None)
    capture = thing(side, "capture")
    assert (capture["state"], capture["places"]) == ("candidates", [])
    best = capture["candidates"][0]
    assert (best["file"], best["line"], best["code"]) == (
        "mine/worker.py",
        9,
        "log_probs = self.forward_micro_batch(micro_batch)",
    )
    assert thing(side, "link")["candidates"][0]["file"] == "mine/rollout.py"
    assert [one["score"] for one in capture["candidates"]] == sorted(
        (one["score"] for one in capture["candidates"]), reverse=True
    )
    assert "a person says which one is meant" in run("scene", tmp_path, "--side", "train").stdout


def test_msprobe_in_an_unknown_framework_is_seen(tmp_path):
    write(tmp_path, OWN | {"mine/dump.py": "def f():\n    from msprobe.pytorch import PrecisionDebugger\n"})
    side = scene(tmp_path, "--side", "train", code=1)
    assert side["native_msprobe"]
    assert (side["native"]["line"]["file"], side["native"]["line"]["line"]) == ("mine/dump.py", 2)


def test_a_recipe_of_ones_own_names_its_places(demo_checkout):
    side = scene(demo_checkout, "--side", "train", *FILES, code=1)
    capture = thing(side, "capture")
    (place,) = capture["places"]
    assert (place["file"], place["line"], place["code"]) == ("tinyrl/trainer/worker.py", 35, "with torch.no_grad():")
    assert [loop["shape"] for loop in side["loops"]] == ["micro-batch loop"]
    assert thing(side, "trim")["state"] == "candidates"  # that recipe has no edit for it
    side = scene(demo_checkout, "--side", "infer", *FILES, code=1)
    assert thing(side, "trim")["state"] == "not needed"


def test_lines_are_those_without_our_edits(demo_checkout):
    before = scene(demo_checkout, "--side", "train", *FILES, code=1)
    answer("apply", "apply", demo_checkout, *FILES)
    after = scene(demo_checkout, "--side", "train", *FILES, code=1)
    assert thing(after, "capture") == thing(before, "capture")
    assert any("without them" in note for note in after["notes"])


def test_what_the_tree_lacks_goes_to_the_changes(tmp_path):
    write(tmp_path, VERL)
    side = scene(tmp_path, code=1)
    assert not side["settled"]
    assert any("verl-legacy-fsdp: " in one["what"] and "lacks" in one["what"] for one in side["changes"])
    missed = [one for one in side["changes"] if one["what"].startswith("verl-engine-fsdp/dump-log-prob: ")]
    assert [(one["blocks"], "probepatch recipe doctor" in one["todo"]) for one in missed] == [(False, True)]
    assert {one["state"] for one in side["things"]} == {"unknown"}
    worker = next(one for one in side["defaults"] if one["about"] == "worker")
    assert (worker["default"], worker["runs"], worker["decided_at"]["line"]) == ("auto", "legacy", 4)
    assert (worker["default_at"]["file"], worker["default_at"]["line"]) == ("verl/trainer/config/ppo_trainer.yaml", 2)


@pytest.mark.parametrize(
    ("changed", "about", "runs", "says"),
    [
        (
            {"verl/trainer/config/ppo_trainer.yaml": "trainer:\n  use_legacy_worker_impl: disable\n"},
            "worker",
            "engine",
            "`auto`",
        ),
        (
            {"verl/trainer/config/ppo_trainer.yaml": "trainer:\n  use_legacy_worker_impl: never\n"},
            "worker",
            None,
            "`never`",
        ),
        ({"verl/trainer/config/ppo_trainer.yaml": "trainer:\n"}, "worker", None, "`auto`"),
        ({"verl/trainer/config/rollout/rollout.yaml": "mode: sync\n"}, "rollout", "spmd", "`async`"),
    ],
)
def test_the_tree_is_taken_where_the_facts_differ(tmp_path, changed, about, runs, says):
    write(tmp_path, VERL | changed)
    side = scene(tmp_path, code=1)
    found = next(one for one in side["defaults"] if one["about"] == about)
    assert found["runs"] == runs
    assert any(says in one["what"] and "facts of" in one["what"] for one in side["changes"])


def test_a_version_that_the_contents_deny(tmp_path):
    write(tmp_path, VERL | {"verl/version/version": "0.5.0\n"})
    side = scene(tmp_path, code=1)
    assert side["version"]["agree"] is False
    assert any("declares version 0.5.0" in one["what"] for one in side["changes"])


def test_a_fact_that_the_tree_shows_nothing_of(tmp_path):
    write(tmp_path, VERL | {"verl/trainer/main_ppo.py": "x = 1\n"})
    side = scene(tmp_path, code=1)
    assert {one["about"] for one in side["defaults"]} == {"rollout"}
    assert any("trainer.use_legacy_worker_impl" in one["what"] for one in side["changes"])


@pytest.mark.parametrize(
    ("line", "runs"), [("bool = False", "V1"), ("bool = True", "V2"), ("bool | None = None", None)]
)
def test_the_runner_of_vllm(tmp_path, line, runs):
    write(tmp_path, ENGINE | {"vllm/envs.py": f"if TYPE_CHECKING:\n    VLLM_USE_V2_MODEL_RUNNER: {line}\n"})
    side = scene(tmp_path, code=1)
    (runner,) = side["defaults"]
    assert (runner["about"], runner["runs"]) == ("runner", runs)


@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00", b"(" * 5000, b"x = '\x00'\n", b"def f(:\n", b"", "é = 1\n".encode("latin-1")]
)
def test_files_that_cannot_be_read_stop_nothing(tmp_path, content):
    write(tmp_path, VERL | {"verl/workers/fsdp_workers.py": content, "verl/trainer/main_ppo.py": content})
    done = run("scene", tmp_path, "--json")
    assert (done.returncode, done.stderr) == (1, "")
    assert json.loads(done.stdout)["sides"][0]["framework"] == "verl"


def test_a_pipe_in_a_files_place_is_told(tmp_path):
    import os

    write(tmp_path, VERL)
    (tmp_path / "verl/trainer/main_ppo.py").unlink()
    os.mkfifo(tmp_path / "verl/trainer/main_ppo.py")
    side = scene(tmp_path, code=1)
    assert any("main_ppo.py" in note for note in side["notes"])


# --- within a task -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def both(tmp_path: Path, demo_checkout: Path) -> tuple[Path, list[str | Path]]:
    """A task whose stages 0 to 2 are done, of a framework of one's own with recipes that have all three places."""
    folder = tmp_path / "recipes"
    shutil.copytree(FIXTURES / "recipes/tinyrl", folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name, side, file, symbol in (
        ("trainer", "train", "tinyrl/trainer/worker.py", "ActorWorker.compute_log_prob"),
        ("engine", "infer", "tinyrl/engine/model_runner.py", "ModelRunner.execute_model"),
    ):
        path = folder / f"places-{name}.yaml"
        path.write_text(
            f'recipe: places-{name}\nframework: tinyrl\nside: {side}\nversions: ">=0.3"\nwhy: w\nedits:\n'
            f"  - {{id: trim, file: {file}, in: {symbol}, body_start: pass}}\n"
            f"  - {{id: capture, file: {file}, in: {symbol}, body_start: pass}}\n"
            f"  - {{id: name-request, file: {file}, in: {symbol}, body_start: pass}}\n"
        )
    files = [part for name in ("trainer", "engine") for part in ("--recipe-file", folder / f"places-{name}.yaml")]
    answer("task-init", "task", "init", tmp_path / "task")
    card = tmp_path / "task/task_card.json"
    facts = ["usage=dump", "model.path=/m", "baseline_command=run", "artifacts=/a"]
    for side in ("train", "infer"):
        facts += [f"{side}.framework=own", f"{side}.python={sys.executable}", f"{side}.checkout={demo_checkout}"]
    answer("task-set", "task", "set", *facts, "--task", card)
    with changing(card) as held:
        record(held, 1, True, "free")
    answer("task-permit", "task", "permit", "--all", "--task", card)
    return card, files


def test_both_sides_become_evidence(both, demo_checkout):
    card, files = both
    found = answer("scene", "scene", *files, "--task", card)
    assert [one["side"] for one in found["sides"]] == ["train", "infer"]
    assert found["recorded"]
    assert found["next"][0]["command"].startswith("probepatch inputs check")
    stages = answer("task-status", "task", "status", "--task", card)["stages"]
    assert stages[3]["state"] == "done"
    held = read_card(card)
    assert (held.fact("train.version"), held.fact("infer.version")) == ("0.3.1", "0.3.1")
    version = demo_checkout / "tinyrl/__init__.py"
    version.write_text(version.read_text().replace("0.3.1", "0.3.2"))
    stages = answer("task-status", "task", "status", "--task", card, code=1)["stages"]
    assert stages[3]["state"] == "stale"


def test_what_is_not_settled_does_not_pass(both):
    card, _files = both
    found = answer("scene", "scene", "--task", card, code=1)
    assert {thing(one, "capture")["state"] for one in found["sides"]} == {"candidates"}
    assert answer("task-status", "task", "status", "--task", card, code=1)["stages"][3]["state"] == "failed"
    one_side = answer("scene", "scene", "--task", card, "--side", "infer", code=1)
    assert not one_side["recorded"]


def test_out_of_order(tmp_path):
    answer("task-init", "task", "init", tmp_path)
    error = answer("error", "scene", "--task", tmp_path, code=3)["error"]
    assert (error["kind"], "probepatch task set" in error["todo"]) == ("out-of-order", True)


def test_a_tree_behind_a_prefix_is_fetched_through_it(both, tmp_path, demo_checkout):
    """Behind this prefix the checkout is at a path of its own, which here is another tree altogether."""
    card, files = both
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(demo_checkout, elsewhere)
    worker = elsewhere / "tinyrl/trainer/worker.py"
    worker.write_text("# a line more\n" + worker.read_text())
    script = tmp_path / "container"
    script.write_text(
        "#!/bin/sh\n"
        "# what docker exec is like: its own view of the path, for a command that it is given\n"
        f'"$1" -c "import sys; sys.stdout.write(sys.stdin.read().replace({str(demo_checkout)!r}, {str(elsewhere)!r}))"'
        f' | "$@" | sed "s#{elsewhere}#{demo_checkout}#g"\n'
    )
    script.chmod(0o755)
    answer("task-set", "task", "set", f"train.prefix={script}", "--untested", "--task", card)
    train, infer = answer("scene", "scene", *files, "--task", card)["sides"]
    assert any("through the side's prefix" in note for note in train["notes"])
    assert not any("through the side's prefix" in note for note in infer["notes"])
    (here,) = thing(infer, "capture")["places"]
    (there,) = thing(train, "capture")["places"]
    assert train["checkout"] == infer["checkout"] == str(demo_checkout)
    assert there["file"] == "tinyrl/trainer/worker.py"
    assert here["file"] == "tinyrl/engine/model_runner.py"
    answer("task-set", "task", "set", "train.prefix=unknown", "--untested", "--task", card)
    local = answer("scene", "scene", *files, "--task", card)["sides"][0]
    assert there["line"] == thing(local, "capture")["places"][0]["line"] + 1


def test_a_side_without_the_framework(both, tmp_path):
    card, _files = both
    facts = ["train.framework=verl", f"train.checkout={tmp_path / 'nothing'}"]
    answer("task-set", "task", "set", *facts, "--task", card)
    error = answer("error", "scene", "--task", card, code=1)["error"]
    assert (error["kind"], "verl" in error["what"]) == ("no-tree", True)


def test_another_copy_that_the_interpreter_would_import_is_told(both, tmp_path):
    card, _files = both
    write(tmp_path / "verl-here", VERL)
    facts = ["train.framework=verl", f"train.checkout={tmp_path / 'verl-here'}", "infer.framework=transformers"]
    answer("task-set", "task", "set", *facts, "--task", card)
    train, infer = answer("scene", "scene", "--task", card, code=1)["sides"]
    assert any("does not find verl" in note or "would import verl" in note for note in train["notes"])
    assert {one["state"] for one in infer["things"]} == {"not needed"}


def test_what_the_card_says_and_the_tree_does_not(both, tmp_path):
    card, _files = both
    write(tmp_path / "verl-here", VERL)
    facts = ["train.framework=verl", f"train.checkout={tmp_path / 'verl-here'}", "train.version=0.8.0"]
    answer("task-set", "task", "set", *facts, "infer.framework=transformers", "--task", card)
    train = answer("scene", "scene", "--task", card, code=1)["sides"][0]
    assert any("the card says version 0.8.0" in one["what"] for one in train["changes"])
