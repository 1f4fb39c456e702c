"""The commands as real processes: answers under their schemas, the ledger, the card, hostile files."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stages.card.card import PERMISSIONS
from stages.card.evidence import record
from stages.card.permissions import permit
from stages.card.store import changing, read_card
from tests.cli.test_commands import answer, contents
from tests.cli.test_shell import ROOT, run
from tests.stages.inputs.reading import SCRIPTS

GOOD = ("--sglang-disable-cuda-graph --sglang-disable-radix-cache --sglang-chunked-prefill-size -1 --data-pad-size-multiplier 1"
        " --rollout-batch-size 1 --n-samples-per-prompt 8 --global-batch-size 8 --colocate"
        " --get-mismatch-metrics --custom-tis-function-path a.b")  # fmt: skip
ENV = '{"env_vars":{"DUMP_ON":"1","PROMPTS_ONLY":"1","TORCHDYNAMO_DISABLE":"1"}}'
BOMB = b"b0: &b0 {a: 1}\n" + b"".join(b"b%d: &b%d {a: *b%d, b: *b%d}\n" % (n, n, n - 1, n - 1) for n in range(1, 40))


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    folder = tmp_path / "scripts"
    shutil.copytree(SCRIPTS, folder)
    return folder


@pytest.fixture
def aligned(tmp_path: Path) -> str:
    """A script with which nothing is wrong; it starts slime from the folder ``slime``."""
    (tmp_path / "slime/slime").mkdir(parents=True)
    (tmp_path / "slime/slime/__init__.py").touch()
    return f"#!/bin/bash\nray job submit --runtime-env-json='{ENV}' -- python3 {tmp_path}/slime/train.py {GOOD}\n"


@pytest.fixture
def card(tmp_path: Path) -> Path:
    """A card whose stages 0 to 3 are done."""
    answer("task-init", "task", "init", tmp_path / "task")
    path = tmp_path / "task/task_card.json"
    facts = (
        "usage=dump",
        "model.path=/m",
        "train.framework=slime",
        "infer.framework=sglang",
        "baseline_command=bash x.sh",
    )
    answer(
        "task-set",
        "task",
        "set",
        *facts,
        "artifacts=/dumps",
        "train.version=0.2.4",
        f"train.checkout={tmp_path}/slime",
        f"train.python={sys.executable}",
        "--task",
        path,
    )
    with changing(path) as found:
        permit(found, dict.fromkeys(PERMISSIONS, True), "a test")
        for stage in (1, 3):
            record(found, stage, True, "done")
    return path


@pytest.mark.parametrize(
    "name", ["verl.sh", "slime.sh", "vime.sh", "serve_vllm.sh", "serve_sglang.sh", "verl.yaml", "job.yaml"]
)
def test_check_answers_under_its_schema(name):
    found = answer("inputs-check", "inputs", "check", SCRIPTS / name, code=1)
    (judged,) = found["runs"]
    assert sum(found["counts"].values()) == len(judged["rules"])
    assert not found["recorded"]
    shown = run("inputs", "check", SCRIPTS / name)
    assert shown.returncode == 1
    assert "nothing was recorded" in shown.stdout
    assert all(rule["rule"] in shown.stdout for rule in judged["rules"])


def test_the_command_to_type_next_has_the_same_variables(scripts):
    script, given = scripts / "verl.sh", ("--env", "TP=1", "--env", "NAME=a b")
    typed = f"{script} --env TP=1 --env 'NAME=a b'`"
    assert f"`probepatch inputs fix {typed}" in run("inputs", "check", script, *given).stdout
    assert f"`probepatch inputs check {typed}" in run("inputs", "fix", script, *given, "--dry-run").stdout


def test_what_an_engine_takes_from_its_shell_is_told_to_the_check(tmp_path):
    script = tmp_path / "serve.sh"
    script.write_text("vllm serve /m --enforce-eager --no-enable-prefix-caching --no-enable-chunked-prefill\n")
    said = run("inputs", "check", script, "--env", "DUMP_ON=0").stdout
    known = "--env TORCHDYNAMO_DISABLE=1 --env DUMP_ON=1 --env PROMPTS_ONLY=1"
    assert f"`probepatch inputs check {script} {known}`" in said
    assert "inputs fix" not in said  # which could edit nothing
    assert run("inputs", "check", script, *known.split()).returncode == 0
    assert known in run("inputs", "fix", script).stdout


def test_an_aligned_script_passes(tmp_path, card, aligned):
    script = tmp_path / "run.sh"
    script.write_text(aligned)
    found = answer("inputs-check", "inputs", "check", script, "--task", card)
    assert (found["passed"], found["counts"]) == (True, {"PASS": 29, "FAIL": 0, "UNKNOWN": 0})
    assert found["recorded"]
    assert read_card(card).data["stages"]["4"]["state"] == "done"
    assert [one["stage"] for one in found["next"]] == [5]

    script.write_text(
        aligned.replace("--colocate", "--colocate --balance-data")
    )  # the evidence goes stale with the script
    states = answer("task-status", "task", "status", "--task", card, code=1)["stages"]
    assert states[4]["state"] == "stale"
    found = answer("inputs-check", "inputs", "check", script, "--task", card, code=1)
    assert read_card(card).data["stages"]["4"]["result"]["failed"] == ["balance-batch"]
    found = answer("inputs-check", "inputs", "check", script, "--task", card, "--accept", "balance-batch")
    assert found["passed"]
    assert read_card(card).data["stages"]["4"]["result"]["accepted"] == ["balance-batch"]
    assert "accepted by name" in read_card(card).data["stages"]["4"]["summary"]


def test_out_of_order_is_refused_with_the_next_command(tmp_path, scripts):
    answer("task-init", "task", "init", tmp_path / "task")
    for command in ("check", "fix"):
        error = answer("error", "inputs", command, scripts / "slime.sh", "--task", tmp_path / "task", code=3)["error"]
        assert error["kind"] == "out-of-order"
        assert "probepatch task set" in error["todo"]
    assert contents(scripts) == contents(SCRIPTS)


def test_a_part_of_the_rules_is_no_evidence(card, tmp_path, aligned):
    script = tmp_path / "run.sh"
    script.write_text(aligned)
    found = answer("inputs-check", "inputs", "check", script, "--side", "infer", "--task", card)
    assert not found["recorded"]
    assert "4" not in read_card(card).data["stages"]


def test_the_whole_round_in_git(scripts, git):
    git(scripts, "init", "-q")
    git(scripts, "add", "-A")
    git(scripts, "commit", "-q", "-m", "first")
    before = contents(scripts)
    dry = answer("inputs-fix", "inputs", "fix", scripts / "slime.sh", "--dry-run")
    assert dry["changes"] and dry["receipt"] is None
    assert contents(scripts) == before
    assert "+   --sglang-disable-cuda-graph" in run("inputs", "fix", scripts / "slime.sh", "--dry-run").stdout

    done = answer("inputs-fix", "inputs", "fix", scripts / "slime.sh")
    assert [file["did"] for file in done["receipt"]["files"]] == ["changed"]
    assert answer("inputs-fix", "inputs", "fix", scripts / "slime.sh")["receipt"] is None  # again: nothing to do
    other = answer("inputs-fix", "inputs", "fix", scripts / "vime.sh")
    assert other["receipt"]["files"][0]["path"] == "vime.sh"
    states = answer("status", "status", scripts)["edits"]
    assert {edit["state"] for edit in states} == {"applied"}
    assert {edit["path"] for edit in states} == {"slime.sh", "vime.sh"}  # the first script's edits stayed
    names = {edit["edit"] for edit in states}
    assert {"slime-sh-balance-data", "slime-sh-dump-on", "vime-sh-runtime-env-json"} <= names
    after = answer("inputs-check", "inputs", "check", scripts / "slime.sh", code=1)["counts"]
    assert after["FAIL"] == 0

    assert run("revert", scripts, "--edit", "slime-sh-dump-on").returncode == 0  # one edit for each flag
    again = answer("inputs-check", "inputs", "check", scripts / "slime.sh", code=1)
    assert [rule["rule"] for rule in again["runs"][0]["rules"] if rule["state"] == "FAIL"] == ["dump-on"]
    receipt = answer("receipt", "revert", scripts)
    assert receipt["proof"]["exact"]
    assert receipt["proof"]["git_diff_equal"] is True
    assert contents(scripts) == before
    assert git(scripts, "status", "--porcelain") == ""


def test_a_plain_folder_mode_and_links(scripts):
    script = scripts / "slime.sh"
    script.chmod(0o750)
    before = contents(scripts)
    (scripts.parent / "link.sh").symlink_to(script)
    answer("inputs-fix", "inputs", "fix", script)
    assert script.stat().st_mode & 0o777 == 0o750
    assert (scripts / ".probepatch").is_dir()
    assert run("revert", scripts).returncode == 0
    assert contents(scripts) | {"x": b""} == {**contents(scripts), "x": b""}
    assert {path: data for path, data in contents(scripts).items() if not path.startswith(".probepatch")} == before


def test_what_others_changed_meanwhile_stays(scripts):
    script = scripts / "slime.sh"
    answer("inputs-fix", "inputs", "fix", script)
    script.write_text(script.read_text().replace("--num-rollout 3000", "--num-rollout 1"))
    again = answer("inputs-fix", "inputs", "fix", script)
    assert again["scripts"][0]["after"]["FAIL"] == 0
    assert "--num-rollout 1" in script.read_text()
    run("revert", scripts)
    assert script.read_text() == (SCRIPTS / "slime.sh").read_text().replace("--num-rollout 3000", "--num-rollout 1")


def test_with_a_card_permission_is_needed_and_the_edits_are_noted(scripts, card):
    with changing(card) as found:
        found.data["permissions"]["AUTH_EDIT_TARGET_CODE"]["granted"] = False
    error = answer("error", "inputs", "fix", scripts / "slime.sh", "--task", card, code=3)["error"]
    assert error["kind"] == "not-permitted"
    assert contents(scripts) == contents(SCRIPTS)
    with changing(card) as found:
        found.data["permissions"]["AUTH_EDIT_TARGET_CODE"]["granted"] = True
    answer("inputs-fix", "inputs", "fix", scripts / "slime.sh", "--task", card)
    assert [one["recipes"] for one in read_card(card).data["edits"]] == [["inputs-fix"]]


def test_only_one_rule(scripts):
    done = answer("inputs-fix", "inputs", "fix", scripts / "slime.sh", "--rule", "shuffle", code=1)
    assert [edit["removed"].strip() for edit in done["scripts"][0]["edits"]] == ["--rollout-shuffle"]


def test_the_baseline(scripts):
    script = scripts / "mine.sh"
    script.write_text((scripts / "slime.sh").read_text().replace("   --rm-type deepscaler\n", ""))
    found = answer("inputs-check", "inputs", "check", script, "--baseline", scripts / "slime.sh", code=1)
    lost = [one for one in found["runs"][0]["baseline"] if one["kind"] == "lost"]
    assert [one["name"] for one in lost] == ["--rm-type"]
    assert "lost     --rm-type deepscaler" in run("inputs", "check", script, "--baseline", scripts / "slime.sh").stdout


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("empty.sh", b"", 1),
        ("open.sh", b"python3 train.py 'open\n", 1),
        ("binary.sh", b"\x00\x01", 3),
        ("large.sh", b"#" * (5 << 20), 3),
        ("bad.yaml", b"a: [\n", 1),
        ("list.yaml", b"- 1\n", 1),
        ("other.yaml", b"a: 1\n", 1),
        ("deep.json", b'{"a":' * 5000 + b"1" + b"}" * 5000, 1),
        ("bomb.yaml", BOMB, 1),
        ("program.py", b"print()\n", 1),
        ("latin.sh", b"# caf\xe9\npython3 train.py --x\n", 1),
        ("loop.sh", b"source loop.sh\n", 1),
    ],
)  # fmt: skip
def test_hostile_files(tmp_path, name, data, code):
    """One clear line and a code; never a traceback, never an edit."""
    file = tmp_path / name
    file.write_bytes(data)
    for command in ("check", "fix"):
        done = run("inputs", command, file)
        assert done.returncode == code, (command, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
    assert file.read_bytes() == data or name == "latin.sh"


def test_called_wrongly(tmp_path, scripts):
    for arguments, said in (
        (["check"], "SCRIPT"),
        (["check", tmp_path / "missing.sh"], "does not exist"),
        (["check", tmp_path], "is a folder"),
        (["check", scripts / "verl.sh", "--env", "x"], "NAME=VALUE"),
        (["check", scripts / "verl.sh", "--accept", "shufle"], "did you mean `shuffle`"),
        (["fix", scripts / "verl.sh", "--rule", "nonsense"], "there is no rule"),
        (["fix", scripts / "verl.sh", SCRIPTS / "verl.sh"], "is not in"),
        (["fixx"], "did you mean `fix`"),
    ):
        done = run("inputs", *arguments)
        assert (done.returncode, said in done.stderr) == (2, True), (arguments, done.stderr)


def test_on_a_narrow_terminal_the_names_of_rules_stay_whole(scripts):
    """--accept and --rule want them typed."""
    words = f"{sys.executable} -m probepatch inputs check {scripts / 'slime.sh'}"
    line = ["script", "-qec", f"stty cols 80; {words}", "/dev/null"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    plain = re.sub(r"\x1b\[[\d;]*m", "", done.stdout)
    shown = {
        line[9:].split("  ")[0].strip() for line in plain.splitlines() if line.startswith(("PASS", "FAIL", "UNKNOWN"))
    }
    assert {"samples-per-rank", "gradient-accumulation", "chunked-prefill", "remove-padding"} <= shown


def test_nothing_is_recorded_for_facts_that_changed_meanwhile(tmp_path, card, aligned):
    """While the side is asked, somebody sets a fact."""
    script, python = tmp_path / "run.sh", tmp_path / "python"
    script.write_text(aligned)
    change = f"cd {ROOT}; {sys.executable} -m probepatch task set --task {card} train.version=0.3.0 >/dev/null 2>&1 </dev/null"
    python.write_text(f'#!/bin/sh\n({change})\nexec {sys.executable} "$@"\n')
    with changing(card) as found:
        found.put("train.python", str(python))
    python.chmod(0o755)
    error = answer("error", "inputs", "check", script, "--task", card, code=3)["error"]
    assert error["kind"] == "changed-card"
    assert "4" not in read_card(card).data["stages"]


def test_the_commands_import_nothing_heavy():
    done = run("inputs", "--help")
    assert "check" in done.stdout and "fix" in done.stdout
    names = ("libcst", "ruamel", "rich", "stages.inputs.run")
    code = f"import sys; from commands import inputs, inputs_check, inputs_fix; print([m for m in {names} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
