"""The rule `package` against what really is imported: the same scripts read, and run with a side's own interpreter."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from stages.card.card import PERMISSIONS
from stages.card.evidence import record
from stages.card.permissions import permit
from stages.card.store import changing, make_card, read_card
from stages.inputs.copies import Copy, Imported, Search, copies_of
from tests.cli.test_commands import answer
from tests.cli.test_shell import run
from tests.stages.inputs.reading import slime, verdict, verl
from tests.stages.preflight.conftest import environment

MAIN = "import verl; print('from', verl.__file__)\n"
FINDER = """
import importlib.machinery, importlib.util, sys
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "verl":
            return importlib.util.spec_from_file_location(name, {file!r}, submodule_search_locations=[{folder!r}])
sys.meta_path.append(Finder)
"""


def copy_of_verl(root: Path) -> Path:
    for path, text in {"__init__.py": "", "trainer/__init__.py": "", "trainer/main_ppo.py": MAIN}.items():
        (root / "verl" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "verl" / path).write_text(text)
    return root


@dataclass(frozen=True)
class Host:
    """A side with the patched copy, another one, and a work folder; the task card that names them."""

    root: Path
    site: Path
    card: Path

    def installed(self, how: str) -> None:
        """``patched`` and ``other`` in place, ``finder`` in place as setuptools does it, ``copied``, or nowhere."""
        folder = self.root / ("other" if how == "other" else "patched")
        if how == "copied":
            copy_of_verl(self.site)
        elif how == "finder":
            told = FINDER.format(file=str(folder / "verl/__init__.py"), folder=str(folder / "verl"))
            (self.site / "_finder.py").write_text(told)
            (self.site / "verl.pth").write_text("import _finder\n")
        elif how != "nowhere":
            (self.site / "verl.pth").write_text(f"{folder}\n")

    def text(self, script: str) -> str:
        return script.replace("PATCHED", str(self.root / "patched")).replace("OTHER", str(self.root / "other"))

    def state(self, script: str, **facts: str) -> str:
        with changing(self.card) as card:
            for name, value in facts.items():
                card.put(name.replace("train_", "train."), self.text(value))
        found = verdict(self.text(script), "package", copies=copies_of(read_card(self.card)))
        assert found.reason
        state: str = found.state
        return state

    def imported(self, script: str) -> str:
        """Where the script, run for real in the work folder, takes it from; empty where it does not run."""
        env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        env["PATH"] = f"{self.root / 'env/bin'}:{self.root / 'bin'}:{env['PATH']}"
        done = subprocess.run(
            ["bash", "-c", self.text(script)], cwd=self.root / "work", env=env, capture_output=True, text=True
        )
        places = [line.removeprefix("from ") for line in done.stdout.splitlines() if line.startswith("from ")]
        return str(Path(places[0]).parent.parent) if places else ""


@pytest.fixture
def host(tmp_path: Path) -> Host:
    root = tmp_path.resolve()
    site = environment(root / "env")
    for name in ("patched", "other"):
        copy_of_verl(root / name)
    (root / "work").mkdir()
    card = make_card(root / "task")
    with changing(card) as made:
        facts = {
            "usage": "dump",
            "model.path": "/m",
            "train.framework": "verl",
            "infer.framework": "vllm",
            "baseline_command": "bash run.sh",
            "artifacts": "/a",
            "train.version": "0.9.1",
            "train.checkout": str(root / "patched"),
            "train.workdir": str(root / "work"),
            "train.python": str(root / "env/bin/python"),
        }
        for name, value in facts.items():
            made.put(name, value)
        permit(made, dict.fromkeys(PERMISSIONS, True), "a test")
        for stage in (1, 3):
            record(made, stage, True, "done")
    return Host(root, site, card)


SCRIPTS = {
    "nothing said": verl(),
    "cd there": "cd PATCHED\n" + verl(),
    "cd to another": "cd OTHER\n" + verl(),
    "pushd": "pushd PATCHED >/dev/null\n" + verl(),
    "exported first": "export PYTHONPATH=PATCHED:$PYTHONPATH\n" + verl(),
    "exported, safely": 'export PYTHONPATH="PATCHED${PYTHONPATH:+:$PYTHONPATH}"\n' + verl(),
    "behind another": "export PYTHONPATH=OTHER:PATCHED\n" + verl(),
    "another, exported": "export PYTHONPATH=OTHER\n" + verl(),
    "for this command": "PYTHONPATH=PATCHED " + verl().lstrip(),
    "through env": "env PYTHONPATH=PATCHED " + verl().lstrip(),
    "the folder wins": "export PYTHONPATH=PATCHED\ncd OTHER\n" + verl(),
    "a program": "python3 PATCHED/verl/trainer/main_ppo.py a=b\n",
    "a program, and a path": "PYTHONPATH=PATCHED python3 OTHER/verl/trainer/main_ppo.py a=b\n",
    "PATH with no python in it": "export PATH=/nowhere/bin:$PATH\n" + verl(),
    "above the checkout": "cd OTHER/..\nln -sfn OTHER verl\n" + verl(),
}


@pytest.mark.parametrize("how", ["nowhere", "patched", "other", "copied", "finder"])
def test_the_verdict_is_what_really_is_imported(host: Host, how: str) -> None:
    host.installed(how)
    for name, script in SCRIPTS.items():
        imported = host.imported(script)
        expected = "PASS" if imported == str(host.root / "patched") else "FAIL"
        assert host.state(script) == expected, (name, imported)


def test_what_is_not_resolved_is_not_known(host: Host) -> None:
    host.installed("patched")
    unknown = (
        "cd $SOMEWHERE\n" + verl(),
        'if [ -n "$Q" ]; then cd /x; fi\n' + verl(),
        "export PYTHONPATH=$FOO:PATCHED\n" + verl(),
        'if [ -n "$Q" ]; then export PYTHONPATH=/x; fi\n' + verl(),
        "source /gone/settings.sh\n" + verl(),
        "source /gone/env/bin/activate\n" + verl(),
        "conda activate other\n" + verl(),
        "uv run " + verl().lstrip(),
        "docker exec c " + verl().lstrip(),
        "export PATH=$TOOLS:$PATH\n" + verl(),
        "./env/bin/" + verl().lstrip(),
        "python3 -E -m verl.trainer.main_ppo a=b\n",
        "ray job submit -- " + verl().lstrip(),
        "ray job submit --runtime-env env.yaml -- " + verl().lstrip(),
        "ray job submit --working-dir s3://x/y.zip -- " + verl().lstrip(),
    )
    for script in unknown:
        assert host.state(script) == "UNKNOWN", script
    assert host.state(verl(), train_workdir="/nowhere") == "PASS"
    known = (
        "source /usr/local/Ascend/ascend-toolkit/set_env.sh\n" + verl(),
        f"source {host.root}/env/bin/activate\n" + verl(),
        f"{host.root}/env/bin/" + verl().lstrip(),
        "nohup numactl --cpunodebind=0 " + verl().lstrip(),
        "ray start --head\nray job submit -- " + verl().lstrip(),
        "ray job submit --working-dir PATCHED -- " + verl().lstrip(),
        "cd PATCHED\nray job submit --working-dir . -- " + verl().lstrip(),
        "source /gone/settings.sh\nexport PYTHONPATH=PATCHED:$PYTHONPATH\n" + verl(),
    )
    for script in known:
        assert host.state(script) == "PASS", script


def test_another_interpreter_that_the_script_names_is_asked(host: Host) -> None:
    host.installed("patched")
    (environment(host.root / "second") / "verl.pth").write_text(f"{host.root / 'other'}\n")
    for script in (
        f"{host.root}/second/bin/python -m verl.trainer.main_ppo a=b\n",
        f"export PATH={host.root}/second/bin:$PATH\n" + verl(),
    ):
        assert host.state(script) == "FAIL"
        assert host.imported(script) == str(host.root / "other")


def test_what_the_baseline_command_sets_counts(host: Host) -> None:
    host.installed("other")
    assert host.state(verl(), baseline_command="PYTHONPATH=PATCHED:$PYTHONPATH bash run.sh") == "PASS"
    assert host.state(verl(), baseline_command="PYTHONPATH=$X:PATCHED bash run.sh") == "UNKNOWN"
    assert host.state(verl(), baseline_command="cd PATCHED && bash run.sh") == "PASS"
    assert host.state(verl(), baseline_command="PYTHONPATH=PATCHED bash run.sh") == "PASS"
    job = "ray start --head\nray job submit -- " + verl().lstrip()
    assert host.state(job) == "FAIL"  # the shell's environment does not travel with a job


def test_a_checkout_that_is_a_link_and_one_with_its_package_below(host: Host) -> None:
    host.installed("patched")
    (host.root / "link").symlink_to(host.root / "patched")
    assert host.state(verl(), train_checkout=str(host.root / "link")) == "PASS"
    copy_of_verl(host.root / "deep/python")
    assert host.state("cd " + str(host.root / "deep") + "\n" + verl(), train_checkout=str(host.root / "deep")) == "FAIL"
    assert host.state(f"PYTHONPATH={host.root}/deep/python " + verl().lstrip()) == "PASS"


def test_a_side_that_does_not_answer_leaves_the_preflight_s_word(host: Host) -> None:
    with changing(host.card) as card:
        found = {"verl": {"folder": str(host.root / "patched/verl"), "version": "0.9.1", "namespace": False}}
        record(card, 1, True, "done", result={"packages": {"train": {"installed": found}}})
    gone = {"train_python": "/nowhere/python"}
    assert host.state(verl(), **gone) == "PASS"
    assert host.state("cd /elsewhere\n" + verl()) == "UNKNOWN"  # the preflight did not look from there
    with changing(host.card) as card:
        found["verl"]["folder"] = "/site/verl"
        record(card, 1, True, "done", result={"packages": {"train": {"installed": found}}})
    assert host.state(verl()) == "FAIL"
    with changing(host.card) as card:
        record(card, 1, True, "done")
    assert host.state(verl()) == "UNKNOWN"


def test_an_engine_by_itself_is_of_the_inference_side() -> None:
    def state(script: str, root: str, package: str = "vllm") -> str:
        copy = Copy(
            package, "/opt/vllm", "/env/bin/python", "/work", (None,), lambda s: Imported(root, root == "/opt/vllm")
        )
        found: str = verdict(script, "package", copies={"infer": copy}).state
        return found

    assert state("vllm serve m\n", "/opt/vllm") == "PASS"
    assert state("vllm serve m\n", "/site") == "FAIL"
    assert state("vllm serve m\n", "/opt/vllm", "vllm_ascend") == "PASS"
    with pytest.raises(StopIteration):  # the card names no checkout of it: nothing to judge
        verdict("vllm serve m\n", "package")


def test_without_a_card_and_with_another_framework() -> None:
    assert verdict(slime(), "package").state == "UNKNOWN"
    copy = Copy("verl", "/opt/verl", None, "/work", (None,), lambda search: Imported("/opt/verl", True))
    assert verdict(slime(), "package", copies={"train": copy}).state == "UNKNOWN"


def test_a_job_s_own_path_is_read() -> None:
    asked: list[Search] = []

    def find(search: Search) -> Imported:
        asked.append(search)
        return Imported("/opt/verl", True)

    copy = Copy("verl", "/opt/verl", "/env/bin/python", "/work", (None,), find)
    env = '{"env_vars":{"PYTHONPATH":"/root/Megatron-LM/:/opt/verl:${PYTHONPATH}"}}'
    job = f"ray job submit --runtime-env-json='{env}' -- python3 /x/main_ppo.py a=b\n"
    assert verdict(job, "package", copies={"train": copy}).state == "PASS"
    assert asked[0].places == ("/x", "/root/Megatron-LM/", "/opt/verl", None)


@pytest.mark.parametrize("how", ["nowhere", "other", "copied"])
def test_fix_puts_it_first_and_revert_takes_it_back(host: Host, how: str) -> None:
    host.installed(how)
    script = host.root / "work/run.sh"
    before = "#!/bin/bash\nset -eu\nif true; then\n    python3 -m verl.trainer.main_ppo \\\n        a=b\nfi\n"
    script.write_text(before)
    found = answer("inputs-check", "inputs", "check", script, "--task", host.card, code=1)["runs"][0]["rules"]
    (rule,) = (one for one in found if one["rule"] == "package")
    assert rule["state"] == "FAIL" and str(host.root / "patched") in rule["reason"]
    answer("inputs-fix", "inputs", "fix", script, "--rule", "package", "--task", host.card, code=1)
    after = script.read_text()
    assert f'\n    export PYTHONPATH="{host.root}/patched${{PYTHONPATH:+:$PYTHONPATH}}"\n    python3 -m' in after
    assert host.imported(after) == str(host.root / "patched")
    found = answer("inputs-check", "inputs", "check", script, "--task", host.card, code=1)["runs"][0]["rules"]
    assert [one["state"] for one in found if one["rule"] == "package"] == ["PASS"]
    again = answer("inputs-fix", "inputs", "fix", script, "--rule", "package", "--task", host.card, code=1)
    assert again["receipt"] is None
    assert run("revert", host.root / "work").returncode == 0
    assert script.read_text() == before


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("ray start --head\n" + verl(), 'export PYTHONPATH="PATCHED${PYTHONPATH:+:$PYTHONPATH}"\nray start --head\n'),
        (
            "ray start --head\nray job submit -- " + verl().lstrip(),
            "--runtime-env-json='{\"env_vars\":{\"PYTHONPATH\":\"PATCHED:${PYTHONPATH}\"}}' --",
        ),
        (
            'ray start --head\nE="{\\"env_vars\\": {\\"A\\": \\"1\\"}}"\nray job submit --runtime-env-json="$E" -- '
            + verl().lstrip(),
            '\\"A\\": \\"1\\",\\"PYTHONPATH\\": \\"PATCHED:\\${PYTHONPATH}\\"}}',
        ),
        ("cd OTHER\n" + verl(), None),  # the folder comes first: PYTHONPATH would decide nothing
        ("export PYTHONPATH=OTHER\n" + verl(), None),  # the script's own
        ("cd /tmp && " + verl().lstrip(), None),  # in the middle of a line
        ("true && \\\n" + verl().lstrip(), None),
    ],
)  # fmt: skip
def test_where_the_edit_goes(host: Host, script: str, expected: str | None) -> None:
    from stages.inputs.fix import fix
    from stages.inputs.run import Known, parse

    host.installed("other")
    known = Known(version="0.9.1", copies=copies_of(read_card(host.card)))
    done = fix(parse(Path("/nowhere/script.sh"), host.text(script), known), known, only=("package",))
    if expected is None:
        assert done.edits == () and [one.rule for one in done.left] == ["package"]
        return
    assert host.text(expected) in done.after.decode()
    assert [item.verdict.state for item in done.after_items if item.rule.id == "package"] == ["PASS"]


def test_a_folder_with_signs_of_the_shell_in_its_name(host: Host) -> None:
    from stages.inputs.fix import fix
    from stages.inputs.run import Known, parse

    odd = copy_of_verl(host.root / 'it\'s "$HOME" `x`')
    with changing(host.card) as card:
        card.put("train.checkout", str(odd))
    host.installed("other")
    known = Known(version="0.9.1", copies=copies_of(read_card(host.card)))
    done = fix(parse(Path("/nowhere/script.sh"), verl(), known), known, only=("package",))
    assert host.imported(done.after.decode()) == str(odd)
