"""The commands as real processes, with a stand-in for torch: a whole round, what goes wrong in it, two at once, killed ones."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stages.card.card import PERMISSIONS
from stages.card.evidence import evidence, record
from stages.card.permissions import permit
from stages.card.store import changing, read_card
from tests.cli.test_commands import answer, contents
from tests.cli.test_shell import ROOT, run
from tests.stages.stub.made import (
    INFER,
    NUMBERS,
    TRAIN,
    dump,
    entry,
    instruction,
    module,
    python,
    save,
    save_text,
    sides,
    tensor,
)

CONFIG = {"task": "tensor", "rank": [], "step": [0], "level": "L0", "async_dump": False}
WRITTEN = f"step0/rank0/dump_tensor_data/{TRAIN}.input.0.pt"


class Job:
    """Folders without a task card."""

    def __init__(self, root: Path) -> None:
        self.root, self.out = root, root / "stub_source_round1"
        self.train, self.infer = sides(root)
        self.python = python(root)
        (root / "train.json").write_text(json.dumps({**CONFIG, "dump_path": str(self.train)}))

    def prepare_words(self, path: Path) -> list[str | Path]:
        named = ["--source", self.infer, "--target", self.train, "--out", self.out, "--python", self.python]
        return ["stub", "prepare", path, *named]

    def prepare(self, *modules, code=0, **more):
        words = self.prepare_words(instruction(self.root / "i.json", *modules, **more))
        return answer("error" if code else "stub-prepare", *words, code=code)

    def config(self, code=0):
        named = [
            "--sources",
            self.out,
            "--first",
            self.root / "train.json",
            "--dump-path",
            self.root / "dump/round1/train",
        ]
        named += ["--out", self.root / "round1.json", "--python", self.python]
        return answer("error" if code else "stub-config", "stub", "config", *named, code=code)

    def verify(self, *words, code=0):
        named = ["--sources", self.out, "--config", self.root / "round1.json", "--python", self.python]
        return answer("stub-verify", "stub", "verify", *named, *words, code=code)

    def run(self, numbers=NUMBERS, shape=(1, 2, 3), entries=None, place="step0/rank0"):
        """As if the target had run."""
        data = dump(self.root / "dump/round1/train", entries or {TRAIN: entry(tensor(shape))}, place)
        save(data / f"{TRAIN}.input.0.pt", numbers, shape)


@pytest.fixture
def job(tmp_path):
    return Job(tmp_path)


def names(found, level="error"):
    return [one["name"] for one in found["problems"] if one["level"] == level]


def test_a_whole_round_without_a_card(job):
    made = job.prepare()
    assert made["entries"] == [TRAIN]
    assert [one["path"] for one in made["files"]] == [WRITTEN]
    assert made["files"][0]["shape"] == [1, 2, 3]
    assert sorted(contents(job.out)) == sorted([WRITTEN, "stub_source.json"])
    config = job.config()
    assert json.loads((job.root / "round1.json").read_text())["load"]["path"] == str(job.out)
    assert config["msprobe"] == "26.2.0"
    job.run()
    log = job.root / "log"
    kept = f"{job.out}/{WRITTEN.replace('input.0', 'kwargs.position_ids')}"
    log.write_text(f"[load] module validation: 1/1 modules valid in model\n[load] source data missing: {kept}\n")
    found = job.verify("--log", log)
    assert (found["verified"], found["overridden"], found["dump_path"]) == (True, 1, config["dump_path"])
    (slot,) = found["slots"]
    assert (slot["state"], slot["max_abs"], slot["was_equal"]) == ("equal", 0.0, False)
    assert slot["cosine"] == pytest.approx(1)
    assert names(found, "note") == ["source-missing"]


def test_for_people(job):
    done = run(*job.prepare_words(instruction(job.root / "i.json")))
    assert (done.returncode, TRAIN in done.stdout) == (0, True)
    assert f"keep the target's own values: {TRAIN}.kwargs.position_ids" in done.stderr
    job.config()
    job.run([0.0] * 6)
    named = ["--sources", job.out, "--config", job.root / "round1.json", "--python", job.python]
    done = run("stub", "verify", *named)
    assert done.returncode == 1
    assert "not-overridden: " in done.stdout
    assert "an override did not take effect" in done.stdout


RUNS = {
    "another value": ({"numbers": [0.0] * 6}, "different", ["not-overridden"]),
    "another shape": ({"shape": (1, 1, 6)}, "missing", ["not-compared"]),
    "no such entry": ({"entries": {INFER: entry(tensor())}}, "missing", ["entry-missing"]),
    "no group": ({"place": "step0/proc5"}, "missing", ["other-ranks"]),
    "another step": ({"place": "step1/rank0"}, "missing", ["other-ranks", "no-dump"]),
}


@pytest.mark.parametrize("what", RUNS)
def test_an_override_that_did_not_take_effect(job, what):
    changes, state, problems = RUNS[what]
    job.prepare()
    job.config()
    job.run(**changes)
    found = job.verify(code=1)
    assert (found["verified"], found["overridden"], found["slots"][0]["state"]) == (False, 0, state)
    assert sorted(names(found)) == sorted(problems)


def test_nothing_was_run(job):
    job.prepare()
    job.config()
    assert set(names(job.verify(code=1))) == {"no-dump", "other-ranks"}


def test_equal_before_is_told(job):
    save(job.train / WRITTEN)
    job.prepare()
    job.config()
    job.run()
    found = job.verify()
    assert found["slots"][0]["was_equal"] is True
    assert "was-equal" in names(found, "note")


def test_a_log_that_contradicts_the_dump_fails(job):
    job.prepare()
    job.config()
    job.run()
    (job.root / "log").write_text(f"[load] invalid module: {TRAIN}\n")
    assert names(job.verify("--log", job.root / "log", code=1)) == ["invalid-module"]
    (job.root / "log").write_text("all is well\n")
    assert names(job.verify("--log", job.root / "log"), "warning") == ["silent-log"]


CONFIGS = {
    "no load": (lambda config: config.pop("load"), "no-load"),
    "another folder": (lambda config: config["load"].update(path="/elsewhere"), "other-source"),
    "other modules": (lambda config: config["load"].update(modules=[INFER]), "other-modules"),
    "a step left out": (lambda config: config["load"].update(step=[1]), "inactive-step"),
    "a dump step left out": (lambda config: config.update(step=[1]), "inactive-step"),
    "a rank left out": (lambda config: config["load"].update(rank=[1]), "inactive-rank"),
}


@pytest.mark.parametrize("what", CONFIGS)
def test_a_config_that_was_changed_is_told(job, what):
    change, name = CONFIGS[what]
    job.prepare()
    job.config()
    config = json.loads((job.root / "round1.json").read_text())
    change(config)
    (job.root / "round1.json").write_text(json.dumps(config))
    job.run()
    assert name in names(job.verify(code=1))


def test_sources_that_were_changed_are_told(job):
    job.prepare()
    job.config()
    save(job.out / WRITTEN, [1.0] * 6)
    job.run([1.0] * 6)
    assert names(job.verify(code=1)) == ["source-changed"]


def test_without_a_dump_only_debug_lines_prove_it(job):
    job.prepare(dump_after_load=False)
    job.config()
    found = job.verify(code=1)
    assert (found["verified"], found["slots"][0]["state"]) == (None, "not computed")
    (job.root / "log").write_text(f"[DEBUG] [load] override {TRAIN}.input.0 <- {job.out}/{WRITTEN}\n")
    found = job.verify("--log", job.root / "log")
    assert (found["verified"], found["overridden"]) == (True, 1)


# --- what cannot be prepared ------------------------------------------------------------------------------------------

SOURCES = {
    "a pickle": (lambda path: save_text(path, "pickle"), "weights_only=True refuses it"),
    "no tensor": (lambda path: save_text(path, "{}"), "no tensor"),
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:-30]), "truncated"),
    "empty": (lambda path: path.write_bytes(b""), "truncated"),
    "text": (lambda path: path.write_text("x" * 1000), "truncated"),
    "NaN": (lambda path: save(path, [float("nan")] * 6, [2, 3]), "NaN"),
    "another shape": (lambda path: save(path, NUMBERS, [3, 2]), "the shape is [1, 3, 2]"),
    "more elements than bytes": (
        lambda path: save_text(path, '[[0.0], [99999, 99999], "torch.float32"]'),
        "more elements",
    ),
    "another dtype": (lambda path: save_text(path, '[[0, 0, 0, 0, 0, 0], [2, 3], "torch.bfloat16"]'), "the dtype is"),
}


@pytest.mark.parametrize("what", SOURCES)
def test_a_source_that_is_no_good_leaves_nothing(job, what):
    change, word = SOURCES[what]
    change(job.infer / f"step0/proc77/dump_tensor_data/{INFER}.input.0.pt")
    before = contents(job.root)
    error = job.prepare(code=1)["error"]
    assert error["kind"] == "stub-transform"
    assert word in error["what"]
    assert {name for name in contents(job.root) if name != "i.json"} == set(before)
    assert not any("stub_source" in path.name for path in job.root.iterdir())


def test_a_compressed_bomb_is_not_unpacked(job):
    import zipfile

    path = job.infer / f"step0/proc77/dump_tensor_data/{INFER}.input.0.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.json", "[" + "0.0," * 1_000_000 + "0.0]")
    assert "compressed" in job.prepare(code=1)["error"]["what"]


def test_wrong_wishes(job):
    path = instruction(job.root / "i.json")
    assert run("stub", "prepare", path, "--source", job.infer).returncode == 2
    assert run("stub", "prepare", path, cwd=job.root, PYTHONPATH=str(ROOT)).returncode == 2
    assert run("stub", "verify", "--sources", job.root, "--config", "x", "--python", "y").returncode == 2
    job.python.write_text("#!/bin/sh\nexit 3\n")
    assert answer("error", *job.prepare_words(path), code=3)["error"]["kind"] == "side"
    assert not job.out.exists()
    job.root.joinpath("sp ace").mkdir()
    job.out = job.root / "sp ace/out"
    assert "msprobe opens no file" in answer("error", *job.prepare_words(path), code=3)["error"]["what"]


def test_a_torch_that_is_missing_is_told(job):
    job.python.write_text(f'#!/bin/sh\nPYTHONPATH= exec {sys.executable} -S -E "$@"\n')
    error = answer("error", *job.prepare_words(instruction(job.root / "i.json")), code=3)["error"]
    assert "torch cannot be imported" in error["why"]
    assert not job.out.exists()


# --- whole or not at all ----------------------------------------------------------------------------------------------


def started(job, marker):
    words = [
        sys.executable,
        "-m",
        "probepatch",
        *map(str, job.prepare_words(instruction(job.root / "i.json"))),
        "--json",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "STANDIN_WAIT": str(marker)}
    done = subprocess.Popen(
        words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    while not Path(f"{marker}.begun").exists():
        assert done.poll() is None, done.communicate()
        time.sleep(0.01)
    return done


def test_of_two_that_prepare_the_same_round_one_is_refused(job):
    first = started(job, job.root / "go")
    error = job.prepare(code=3)["error"]
    assert "another process is preparing this round" in error["what"]
    (job.root / "go").touch()
    assert first.wait() == 0
    assert sorted(contents(job.out)) == sorted([WRITTEN, "stub_source.json"])
    before = contents(job.out)
    assert "there already" in job.prepare(code=3)["error"]["what"]
    assert contents(job.out) == before
    assert not (job.root / ".stub_source_round1.part").exists()


def test_many_at_once_leave_one_whole_folder(job):
    path = instruction(job.root / "i.json")
    words = [sys.executable, "-m", "probepatch", *map(str, job.prepare_words(path))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [subprocess.Popen(words, cwd=ROOT, env=environment, stdout=-1, stderr=-1) for _number in range(4)]
    codes = [(one.communicate(), one.returncode)[1] for one in running]
    assert sorted(codes) == [0, 3, 3, 3]
    assert sorted(contents(job.out)) == sorted([WRITTEN, "stub_source.json"])
    assert not (job.root / ".stub_source_round1.part").exists()


def test_one_that_was_killed_is_in_nobodys_way(job):
    killed = started(job, job.root / "go")
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert not job.out.exists()
    assert job.prepare()["round"] == 1
    assert sorted(contents(job.out)) == sorted([WRITTEN, "stub_source.json"])
    assert not (job.root / ".stub_source_round1.part").exists()


def test_what_lies_in_the_way_is_left_alone(job):
    for make in (lambda: job.out.symlink_to("/nowhere"), lambda: job.out.mkdir(), lambda: job.out.write_text("mine")):
        make()
        assert "there already" in job.prepare(code=3)["error"]["what"]
        assert os.path.lexists(job.out)
        job.out.rmdir() if job.out.is_dir() else job.out.unlink()


# --- with a task card -------------------------------------------------------------------------------------------------


@pytest.fixture
def card(job):
    answer("task-init", "task", "init", job.root / "task")
    path = job.root / "task/task_card.json"
    environment = {"DUMP_ON": "1", "MSPROBE_ACTOR_CONFIG": str(job.root / "train.json")}
    with changing(path) as card:
        for name in ("model.path", "baseline_command"):
            card.put(name, "/x")
        for name, value in (("usage", "analysis"), ("train.framework", "verl"), ("infer.framework", "vllm")):
            card.put(name, value)
        card.put("artifacts", str(job.root))
        card.put("train.python", str(job.python))
        card.put("infer.python", str(job.python))
        permit(card, dict.fromkeys(PERMISSIONS, True), "this test")
        for stage in (1, 3, 4, 5, 7):
            record(card, stage, True, "done")
        first = {"config": str(job.root / "train.json"), "dump_path": str(job.train), "world_size": 1}
        record(card, 6, True, "done", result={"sides": {"train": {**first, "environment": environment}}})
    return path


def stub(command, card, *words, code=0):
    return answer("error" if code else f"stub-{command}", "stub", command, *words, "--task", card, code=code)


def test_rounds_on_a_card_in_either_direction(job, card):
    one = instruction(job.root / "i1.json")
    assert stub("prepare", card, one)["source"] == str(job.root / "stub_source_round1")
    told = evidence(read_card(card), 8)
    assert (told.state, told.result["round"], told.result["verified"]) == ("failed", 1, None)
    config = stub("config", card)
    assert config["environment"] == {"MSPROBE_ACTOR_CONFIG": str(job.root / "msprobe/train.round1.json")}
    assert config["dump_path"] == str(job.root / "dump/round1/train")
    assert config["run"].startswith(f"probepatch capture run --side train --config train={config['config']} --task ")
    assert stub("config", card)["config"] == config["config"]
    job.run()
    assert stub("verify", card)["verified"] is True
    told = evidence(read_card(card), 8)
    expected = {"round": 1, "target_side": "train", "entries": [TRAIN], "config": config["config"], "verified": True}
    expected |= {"dump_path": config["dump_path"], "source": str(job.root / "stub_source_round1"), "earlier": []}
    assert (told.state, told.result) == ("done", expected)
    status = answer("task-status", "task", "status", "--task", card)
    assert [one["state"] for one in status["stages"]][8] == "done"

    # the same again is not the next round, and neither is the one after it
    for number in (1, 3):
        assert (
            stub("prepare", card, instruction(job.root / "i.json", round=number), code=3)["error"]["kind"]
            == "stub-round"
        )
    back = module(target=INFER, argument=None, source=WRITTEN, transform=[{"rule": "drop_batch"}])
    two = instruction(job.root / "i2.json", back, round=2, target_side="infer", source_side="train", source_round=1)
    assert [one["path"] for one in stub("prepare", card, two)["files"]] == [
        f"step0/proc0/dump_tensor_data/{INFER}.input.0.pt"
    ]
    told = evidence(read_card(card), 8)
    assert (told.result["round"], told.result["target_side"], told.result["verified"]) == (2, "infer", None)
    assert [one["round"] for one in told.result["earlier"]] == [1]


def test_the_order_of_the_stages_holds(job, card):
    with changing(card) as open_card:
        record(open_card, 7, False, "not comparable")
    error = stub("prepare", card, instruction(job.root / "i.json"), code=3)["error"]
    assert error["kind"] == "out-of-order"
    assert not job.out.exists()


def test_a_round_that_was_not_prepared(job, card):
    for command in ("config", "verify"):
        assert "no stub round was prepared" in stub(command, card, code=2)["error"]["what"]
    stub("prepare", card, instruction(job.root / "i.json"))
    assert "cannot be read" in stub("verify", card, code=2)["error"]["what"]
    shutil.rmtree(job.out)
    assert "no prepared sources" in stub("config", card, code=2)["error"]["what"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": "probepatch/stub-source/1"}', "[" * 100_000, '{"format": 1, "files": [[]]}']
)
def test_a_list_of_sources_that_is_not_ours(job, text):
    job.prepare()
    (job.out / "stub_source.json").write_text(text)
    assert job.config(code=4)["error"]["kind"] == "stub-source"


@pytest.mark.parametrize("path", ["/etc/passwd", "../../x.pt", 7])
def test_a_list_of_sources_that_leads_out(job, path):
    job.prepare()
    data = json.loads((job.out / "stub_source.json").read_text())
    data["files"][0]["path"] = path
    (job.out / "stub_source.json").write_text(json.dumps(data))
    assert job.config(code=4)["error"]["kind"] == "stub-source"
