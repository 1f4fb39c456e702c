"""``capture prepare`` as a real process: both sides or none, what it writes, what it refuses, what it leaves on the card."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stages.card.evidence import evidence
from stages.card.permissions import permit
from stages.card.store import changing, read_card
from tests.cli.test_commands import answer, contents
from tests.cli.test_shell import ROOT, run
from tests.stages.instrument.made import TRAINER, TREES, Task, python

VLLM = ["vllm-prompt-logprobs", "vllm-v1-runner", "vllm-v2-runner"]


@pytest.fixture
def task(make) -> Task:
    """Prepared, with vLLM on the inference side."""
    made = make()
    made.prepare()
    return made


def trees(task: Task) -> dict[str, dict[str, bytes]]:
    """The sides' sources, without the ledgers."""
    found = {side: contents(task.folder / side) for side in ("train", "infer") if (task.folder / side).is_dir()}
    return {
        side: {name: data for name, data in held.items() if ".probepatch/" not in name} for side, held in found.items()
    }


def test_both_sides_are_instrumented_and_restored(make):
    task = make()
    before = trees(task)
    found = task.prepare()
    assert (found["changed"], found["dry_run"]) == (True, False)
    assert {name: one["recipes"] for name, one in found["sides"].items()} == {"train": ["mini-trainer"], "infer": VLLM}
    assert {name: one["msprobe"] for name, one in found["sides"].items()} == {"train": "26.2.0", "infer": "26.2.0"}
    assert [one["command"] for one in found["receipts"]] == ["capture prepare"] * 2
    assert trees(task) != before
    config = json.loads((task.root / "msprobe/train.json").read_text())
    assert (config["task"], config["level"], config["rank"], config["step"]) == ("tensor", "L0", [], [0])
    assert config["dump_path"] != json.loads((task.root / "msprobe/infer.json").read_text())["dump_path"]
    told = evidence(read_card(task.card), 6)
    assert told.result["sides"]["train"]["environment"]["MSPROBE_ACTOR_CONFIG"] == str(task.root / "msprobe/train.json")
    assert (told.result["switches"]["DUMP_ON"], told.result["switches"]["PREFILL_LOGPROB_DIFF"]) == ("1", "1")
    assert not (task.root / "dump").exists()
    assert [(one["stage"], one["command"].split(" --")[0]) for one in found["next"]] == [
        (7, "probepatch capture run"),
        (9, "probepatch restore"),
    ]
    assert not list(task.folder.glob("**/beside"))  # what msprobe leaves where it is built
    assert answer("restore", "restore", "--task", task.card, "--reason", "enough")["finished"]
    assert trees(task) == before


def test_once_more_does_nothing(task):
    before, card = contents(task.folder), task.card.read_bytes()
    found = task.prepare()
    assert (found["changed"], found["receipts"], found["files"]) == (False, [], [])
    assert (contents(task.folder), task.card.read_bytes()) == (before, card)
    done = run("capture", "prepare", "--recipe-file", TRAINER, "--task", task.card)
    assert "nothing to do: both sides are instrumented as asked" in done.stdout


def test_a_dry_run_writes_nothing(make):
    task = make()
    before = contents(task.folder)
    found = task.prepare("--dry-run")
    assert (found["changed"], found["receipts"]) == (True, [])
    assert str(task.root / "change_list.md") in found["files"]
    assert {edit["recipe"] for one in found["checkouts"] for file in one["files"] for edit in file["edits"]} == {
        "mini-trainer",
        *VLLM,
    }
    after = contents(task.folder)
    assert {name: data for name, data in after.items() if not name.endswith(".lock")} == {
        name: data for name, data in before.items() if not name.endswith(".lock")
    }
    done = run("capture", "prepare", "--recipe-file", TRAINER, "--dry-run", "--task", task.card)
    assert "+    batch = list(batch)" in done.stdout
    assert "A note that is longer than a line" in done.stderr


def test_what_is_printed_fits_on_a_screen_and_the_rest_is_in_the_list(make):
    task = make()
    done = run("capture", "prepare", "--recipe-file", TRAINER, "--task", task.card)
    assert done.returncode == 0, done.stderr
    assert len((done.stdout + done.stderr).splitlines()) < 24
    assert "A note that is longer than a line" not in done.stdout + done.stderr
    assert "mini-trainer 1" in done.stderr
    page = (task.root / "change_list.md").read_text()
    assert "- A note that is longer than a line" in page
    assert f"- `probepatch revert {task.train}` (train)" in page
    assert "why: the forward that is compared" in page
    told = json.loads((task.root / "change_list.json").read_text())
    assert {one["checkout"] for one in told["ledgers"]} == {str(task.train), str(task.infer)}


def test_every_change_says_how_it_is_undone_and_that_does_it(task):
    told = json.loads((task.root / "change_list.json").read_text())
    (one,) = (one for one in told["changes"] if one["edit"] == "keep-request-ids")
    assert (one["line"], one["symbol"], one["why"]) == (7, "generate", "they tie the two sides together")
    words = one["undo"].split()[1:]
    answer("receipt", *words)
    assert (task.train / "mini/rollout.py").read_bytes() == (
        TRAINER.parents[1] / "checkout/mini/rollout.py"
    ).read_bytes()


def test_one_side_that_cannot_be_patched_leaves_the_other_as_it_was(make):
    """The inference side is planned after the training side, and written after it."""
    task = make()
    before = trees(task)
    runner = task.infer / "vllm/v1/worker/gpu_model_runner.py"
    text = runner.read_text()
    runner.write_text("class GPUModelRunner:\n    pass\n")
    assert task.prepare(code=3)["error"]["kind"] == "out-of-order"  # what stage 3 saw is not there any more
    runner.write_text(text)
    assert trees(task) == before
    ledger = task.infer / ".probepatch"
    ledger.write_text("in the way")
    assert task.prepare(code=4)["error"]["what"]
    ledger.unlink()
    assert trees(task) == before
    assert read_card(task.card).data["edits"] == []
    assert evidence(read_card(task.card), 6) is None


def test_the_second_checkout_refuses_when_the_first_is_written(make, monkeypatch):
    from codemods.errors import RefusedError
    from commands.capture_sides import Options, plan
    from stages.instrument import together

    task, really = make(), together.commit
    before, seen = trees(task), []

    def commit(tree, planned, **more):
        seen.append(Path(tree.given).name)
        if len(seen) == 2:
            raise RefusedError("no room")
        return really(tree, planned, **more)

    work = plan(read_card(task.card), Options(files=(TRAINER,)))
    monkeypatch.setattr(together, "commit", commit)
    with pytest.raises(RefusedError):
        together.patch(task.card, work.parts, "a test")
    assert seen == ["train", "vllm", "train"]
    assert trees(task) == before
    assert read_card(task.card).data["edits"] == []


@pytest.mark.parametrize("permission", ["AUTH_EDIT_TARGET_CODE", "AUTH_RESTORE_CODE"])
def test_it_needs_permission(make, permission):
    task = make()
    before = trees(task)
    with changing(task.card) as card:
        permit(card, {permission: False}, "")
    assert task.prepare(code=3)["error"]["kind"] == "not-permitted"
    assert trees(task) == before
    assert task.prepare("--dry-run")["changed"]


def test_it_needs_the_stages_before(tmp_path):
    task = Task(tmp_path)
    error = task.prepare(code=3)["error"]
    assert (error["kind"], "probepatch scene" in error["todo"]) == ("out-of-order", True)


def test_a_dump_path_that_is_not_empty_is_refused(make):
    task = make()
    (task.root / "dump/infer/step0").mkdir(parents=True)
    error = task.prepare(code=3)["error"]
    assert (error["kind"], error["where"]) == ("dump-path", str(task.root / "dump/infer"))
    assert trees(task)["train"] == contents(TRAINER.parents[1] / "checkout")
    shutil.move(task.root / "dump/infer", task.root / "dump/infer.before")
    task.prepare()
    (task.root / "dump/train/step0").mkdir(parents=True)
    assert not task.prepare()["changed"]  # after its own run nothing is to be done, and nothing is refused


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--rank", "2"], "2"),
        (["--level", "L1", "--rank", "7"], "7"),
        (["--train-world", "1", "--infer-world", "0"], "--infer-world"),
        (["--recipe", "vllm-v1-runer"], "vllm-v1-runer"),
        (["--recipe", "verl-engine-fsdp"], "verl-engine-fsdp"),
    ],
)
def test_what_cannot_be_is_refused_before_a_byte_is_written(make, words, says):
    task = make()
    before = contents(task.folder)
    done = run("capture", "prepare", "--recipe-file", TRAINER, *words, "--task", task.card)
    assert done.returncode in (2, 4)
    assert says in done.stderr
    assert contents(task.folder).keys() - before.keys() <= {"task/.task_card.json.lock"}


def test_worlds_ranks_and_steps(make):
    task = make("vllm", world=(8, None))
    error = task.prepare(code=2)["error"]
    assert (error["todo"], "empty dump" in error["why"]) == ("say --infer-world N", True)
    found = task.prepare("--infer-world", "1", "--rank", "0", "--step", "0", "--step", "3", "--dump-task", "statistics")
    train, infer = (json.loads(Path(found["sides"][side]["config"]).read_text()) for side in ("train", "infer"))
    assert (train["rank"], infer["rank"]) == ([0], [])  # one process has no rank
    assert (train["step"], train["task"], found["sides"]["train"]["world_size"]) == ([0, 3], "statistics", 8)


def test_without_log_probs(make):
    found = make().prepare("--no-logprobs")
    assert found["sides"]["infer"]["recipes"] == VLLM[1:]
    assert found["switches"]["PREFILL_LOGPROB_DIFF"] == "0"
    assert "vllm-prompt-logprobs is left out: --no-logprobs" in found["notes"]


BROKEN = {
    "missing": (None, "ModuleNotFoundError", "install mindstudio-probe"),
    "a dependency": ("import tensorboard_that_is_not_there\n", "ModuleNotFoundError", "tensorboard_that_is_not_there"),
    "refused": (
        "class PrecisionDebugger:\n    def __init__(self, config_path): raise ValueError('level')\n",
        "level",
        "",
    ),
    "it exits": ("import sys\nsys.exit('no device')\n", "no device", ""),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_msprobe_that_does_not_take_the_config(make, tmp_path, case):
    text, why, todo = BROKEN[case]
    task = make()
    before = trees(task)
    with changing(task.card) as card:
        card.put("infer.python", str(python(tmp_path / "other", task.infer, msprobe=text)))
        card.data["stages"]["3"]["facts"]["infer.python"] = card.fact("infer.python")
    error = task.prepare(code=1)["error"]
    assert error["kind"] == "config-refused"
    assert why in error["why"]
    assert todo in (error["todo"] or "")
    assert trees(task) == before


def test_a_config_changed_by_hand_is_kept(task):
    path = task.root / "msprobe/train.json"
    path.write_text("{}")
    found = task.prepare()
    assert json.loads(path.read_text())["task"] == "tensor"
    assert Path(f"{path}.1").read_text() == "{}"
    assert any("train.json.1" in note for note in found["notes"])


def test_a_root_that_cannot_be_written(make, tmp_path):
    (tmp_path / "file").write_text("")
    for place in ("/proc/artifacts", str(tmp_path / "file/artifacts")):
        shutil.rmtree(tmp_path / "task", ignore_errors=True)
        for name in ("train", "infer", "train-env", "infer-env"):
            shutil.rmtree(tmp_path / name, ignore_errors=True)
        task = make(artifacts=place)
        before = trees(task)
        assert task.prepare(code=3)["error"]["what"]
        assert trees(task) == before
        assert read_card(task.card).data["edits"] == []


def test_plain_transformers_gets_the_helpers(make):
    task = make(None)
    found = task.prepare()
    infer = found["sides"]["infer"]
    assert (infer["checkout"], infer["recipes"], infer["native"]) == (None, [], False)
    assert infer["environment"] == {
        "DUMP_ON": "1",
        "PREFILL_LOGPROB_DIFF": "1",
        "TORCHDYNAMO_DISABLE": "1",
        "MSPROBE_INFER_CONFIG": str(task.root / "msprobe/infer.json"),
    }
    payload = task.root / "launch/probepatch_transformers.py"
    assert "def prefill(" in payload.read_text()
    (one,) = (one for one in found["changes"] if one["file"] == str(payload))
    assert one["undo"] == f"rm {payload}"


NATIVE = {
    "sglang-native": ("0.5.11", ["sglang-dispatch-log"], ["--msprobe-dump-config", "{config}"]),
    "ascend-native": (
        None,
        ["vllm-ascend-native", "vllm-prompt-logprobs"],
        ["--additional-config", '{{"dump_config_path":"{config}"}}', "--enforce-eager"],
    ),
}


@pytest.mark.parametrize("engine", NATIVE)
def test_an_engine_that_dumps_by_itself_gets_its_flags(make, tmp_path, engine):
    version, recipes, flags = NATIVE[engine]
    if engine == "ascend-native":  # vLLM is below it, in the same site-packages
        task = Task(tmp_path, engine, baseline_command="bash start.sh")
        shutil.copytree(TREES["vllm"] / "vllm", task.infer / "vllm")
        task.ready()
    else:
        task = make(engine, version, baseline_command="bash start.sh")
    before = trees(task)
    found = task.prepare()
    assert (found["sides"]["infer"]["native"], found["sides"]["infer"]["recipes"]) == (True, recipes)
    assert found["launch"]["infer"]["flags"] == [one.format(config=task.root / "msprobe/infer.json") for one in flags]
    assert "dump" not in {edit["id"] for one in found["checkouts"] for file in one["files"] for edit in file["edits"]}
    page = (task.root / "launch/launch.md").read_text()
    assert flags[0] in page
    answer("restore", "restore", "--task", task.card, "--reason", "enough")
    assert trees(task) == before


def test_two_packages_in_one_site_packages_are_one_ledger(tmp_path):
    task = Task(tmp_path, "ascend-capture")
    shutil.copytree(TREES["vllm"] / "vllm", task.infer / "vllm")
    task.ready()
    before = trees(task)
    found = task.prepare()
    assert found["sides"]["infer"]["recipes"] == ["vllm-ascend-capture", "vllm-prompt-logprobs"]
    assert len(found["receipts"]) == 2
    noted = {one["checkout"]: one["recipes"] for one in read_card(task.card).data["edits"]}
    (place,) = (one for one in noted if one.startswith(str(task.infer)))
    assert noted[place] == ["vllm-ascend-capture", "vllm-prompt-logprobs"]
    assert not task.prepare()["changed"]
    assert answer("receipt", "revert", place, "--task", task.card)["proof"]["exact"]
    assert trees(task)["infer"] == before["infer"]
    assert [one["checkout"] for one in read_card(task.card).data["edits"]] == [str(task.train)]
    task.prepare()  # once more after a revert by hand
    assert trees(task)["infer"] != before["infer"]


def test_two_rivals_are_asked_about(make, tmp_path):
    """A second recipe of one's own for the same side is taken beside the first only when both are named."""
    task = make()
    text = TRAINER.read_text().replace("recipe: mini-trainer", "recipe: mini-second")
    folder = tmp_path / "more"
    shutil.copytree(TRAINER.parent, folder)
    (folder / "mini-second.yaml").write_text(text)
    error = task.prepare("--recipe-file", folder / "mini-second.yaml", code=1)["error"]
    assert "mini-second" in json.dumps(error)


def test_killed_between_the_two_checkouts(make):
    """An interrupted transaction is brought to its end before anything is planned."""
    task = make()
    before = trees(task)
    script = (
        "import os, patch_ledger.apply as a, stages.instrument.together as t\n"
        "real, seen = t.commit, []\n"
        "def commit(*w, **k):\n"
        "    seen.append(1)\n"
        "    if len(seen) == 2: os._exit(9)\n"
        "    return real(*w, **k)\n"
        "t.commit = commit\n"
        "import cli, sys; sys.exit(cli.main(sys.argv[1:]))\n"
    )
    words = ["capture", "prepare", "--recipe-file", str(TRAINER), "--task", str(task.card)]
    done = subprocess.run([sys.executable, "-c", script, *words], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 9
    assert trees(task)["train"] != before["train"]
    assert read_card(task.card).data["edits"]  # so that restore is reachable
    task.prepare()
    assert answer("restore", "restore", "--task", task.card, "--reason", "enough")["finished"]
    assert trees(task) == before
