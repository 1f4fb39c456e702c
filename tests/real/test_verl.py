"""verl's own training workers on this CPU, patched and not: the same numbers, and a dump of the bare prompt."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from tests.real import environment

pytestmark = pytest.mark.real

REPOSITORY = Path(__file__).parents[2]
DRIVE = Path(__file__).parent / "drive"
PROMPTS = [[11, 12, 13, 14, 15], [21, 22, 23]]
EMBEDDING = "Module.model.embed_tokens"

EVERY = [("0.9.1", "engine"), ("0.9.0", "engine"), ("0.8.0", "engine"), ("0.7.1", "engine"), ("0.7.0", "engine")]
EVERY += [(version, "legacy") for version in ("0.7.1", "0.7.0", "0.6.1", "0.6.0", "0.5.0", "0.4.1")]
CLOSELY = [("0.9.1", "engine"), ("0.7.1", "legacy")]  # every case; the others run the main one

Switches = Mapping[str, str]
NONE: Switches = {}


def joined(path: list[Path]) -> str:
    return os.pathsep.join(map(str, path))


class Release:
    """A release with one of its workers, as it was published and patched."""

    def __init__(self, version: str, kind: str, folder: Path, model: Path) -> None:
        self.version = version
        self.kind = kind
        self.recipe = f"verl-{kind}-fsdp"
        self.folder = folder
        self.model = model
        self.plain = environment.release(version)
        self.patched = folder / "patched"
        self.older = version < "0.8"  # lexically: all of them have one digit in each place
        shutil.copytree(self.plain, self.patched)
        self.probepatch("apply", "--recipe", self.recipe)

    def probepatch(self, command: str, *options: str) -> None:
        line = [sys.executable, "-m", "probepatch", command, str(self.patched), *options]
        subprocess.run(line, cwd=REPOSITORY, check=True, capture_output=True)

    def check(self, script: str, *options: str) -> None:
        """A script of assertions under the patched tree."""
        done = self._python(self.patched, NONE, DRIVE / script, *options)
        assert done.returncode == 0, done.stderr[-3000:]

    def _python(self, tree: Path, switches: Switches, *line: str | Path) -> subprocess.CompletedProcess[str]:
        path = [tree, DRIVE, *([environment.legacy_libraries()] if self.older else [])]
        settings = {"PYTHONPATH": joined(path), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", **switches}
        settings["MKL_CBWR"] = "COMPATIBLE"  # else a sum depends on where its operands lie in memory
        command = [str(part) for part in (environment.interpreter(), *line)]
        return subprocess.run(command, env=os.environ | settings, capture_output=True, text=True)

    def run(self, name: str, *options: str, tree: Path | None = None, switches: Switches = NONE) -> dict[str, Any]:
        """One process; ``switches`` are set on top of an environment without any."""
        out = self.folder / f"{name}.json"
        done = self._python(tree or self.patched, switches, DRIVE / "worker.py", self.kind, self.model, out, *options)
        assert done.returncode == 0, done.stderr[-3000:]
        seen: dict[str, Any] = json.loads(out.read_text())
        assert Path(seen.pop("verl")).is_relative_to(tree or self.patched)
        return seen

    def dumping(
        self, name: str, *options: str, prompts_only: bool = True, config: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], Dump]:
        dump = Dump(self.folder / f"{name}-dump")
        file = self.folder / f"{name}-config.json"
        file.write_text(json.dumps({"dump_path": str(dump.folder)} | (config or {})))
        switches = {"DUMP_ON": "1", "PROMPTS_ONLY": str(int(prompts_only)), "MSPROBE_ACTOR_CONFIG": str(file)}
        return self.run(name, *options, switches=switches), dump

    @cached_property
    def unpatched(self) -> dict[str, Any]:
        return self.run("unpatched", tree=self.plain)

    @cached_property
    def unpatched_and_seeded(self) -> dict[str, Any]:
        return self.run("seeded", "--seed-all", tree=self.plain)


class Dump:
    """What msprobe and the patch wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def steps(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob("step*"))

    def tokens_in(self, step: int) -> list[int]:
        """Shape of the token ids that the model was given: the embedding's input."""
        entries = json.loads((self.folder / f"step{step}" / "rank0" / "dump.json").read_text())["data"]
        name = next(name for name in entries if name.startswith(EMBEDDING) and ".forward." in name)
        shape: list[int] = entries[name]["input_args"][0]["shape"]
        return shape

    @property
    def log(self) -> list[dict[str, Any]]:
        lines = (self.folder / "rank0" / "update_actor_log.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    make = "import sys, pathlib, tiny; tiny.make_model(pathlib.Path(sys.argv[1]))"
    settings = os.environ | {"PYTHONPATH": joined([DRIVE, environment.legacy_libraries()])}
    done = subprocess.run([environment.interpreter(), "-c", make, folder], env=settings, capture_output=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture(scope="module")
def release(request: pytest.FixtureRequest, model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    version, kind = request.param
    folder = tmp_path_factory.mktemp(f"verl-{version}-{kind}-")
    yield Release(version, kind, folder, model)
    shutil.rmtree(folder)


def cases(releases: list[tuple[str, str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("release", releases, indirect=True, ids=lambda value: "-".join(value))


def hash_of(prompt: list[int]) -> str:
    return hashlib.sha256(",".join(map(str, prompt)).encode()).hexdigest()


def without(seen: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in seen.items() if name not in names}


@cases(EVERY)
def test_the_bare_prompt_is_dumped_and_training_goes_on_the_same(release: Release) -> None:
    seen, dump = release.dumping("prompts")

    assert seen == release.unpatched_and_seeded
    assert dump.steps == ["step0"]  # the default: one step, and each micro-batch is one
    assert dump.tokens_in(0) == [1, len(PROMPTS[0])]
    for number, (line, prompt) in enumerate(zip(dump.log, PROMPTS, strict=True)):
        assert without(line, "time", "pid") == {
            "phase": "log_prob",
            "prompts_only": True,
            "step": number,
            "rank": 0,
            "request_ids": [f"request-{'ab'[number]}"],
            "prompt_sha256": [hash_of(prompt)],
            "prompt_tokens": [len(prompt)],
            "token_count": len(prompt),
        }


@cases(CLOSELY)
def test_switched_off_nothing_changes(release: Release) -> None:
    seen = release.run("off", switches={"DUMP_ON": "0", "PROMPTS_ONLY": "1"})

    assert seen == release.unpatched
    assert seen["msprobe"] is False


@cases(CLOSELY)
def test_the_whole_sequence_is_dumped_in_the_ordinary_forward(release: Release) -> None:
    seen, dump = release.dumping("whole", prompts_only=False, config={"step": [0, 1]})

    assert seen == release.unpatched_and_seeded
    assert [dump.tokens_in(step) for step in (0, 1)] == [[1, 9], [1, 9]]
    assert [line["token_count"] for line in dump.log] == [9, 9]
    assert [line["prompt_tokens"] for line in dump.log] == [[5], [3]]
    assert [line["prompts_only"] for line in dump.log] == [False, False]


@cases(CLOSELY)
def test_prompts_of_one_micro_batch_are_packed_without_padding(release: Release) -> None:
    _seen, dump = release.dumping("packed", "--micro-batch", "2")

    assert dump.tokens_in(0) == [1, 8]
    (line,) = dump.log
    assert (line["request_ids"], line["prompt_tokens"]) == (["request-a", "request-b"], [5, 3])
    assert line["prompt_sha256"] == [hash_of(prompt) for prompt in PROMPTS]


@cases(CLOSELY)
def test_no_padding_is_left_where_the_model_does_not_remove_it(release: Release) -> None:
    padded = ("actor_rollout_ref.model.use_remove_padding=False", "--micro-batch", "2")
    _seen, dump = release.dumping("padded", *padded, config={"step": [0, 1]})

    assert [dump.tokens_in(step) for step in (0, 1)] == [[1, 5], [1, 3]]
    assert [line["request_ids"] for line in dump.log] == [["request-a"], ["request-b"]]


@cases(CLOSELY)
def test_a_failing_forward_ends_its_step(release: Release) -> None:
    seen, dump = release.dumping("failing", "--fail-in-forward")

    assert without(seen, "msprobe") == {"raised": True, "built": True, "running": False, "steps": 1}
    assert [line["step"] for line in dump.log] == [0]


@cases(CLOSELY)
def test_the_reference_is_not_dumped(release: Release) -> None:
    seen, dump = release.dumping("reference", "--reference")

    assert without(seen, "msprobe") == {"built": False}
    assert not dump.folder.exists()


@cases(CLOSELY)
def test_the_helpers_on_batches_of_other_shapes(release: Release) -> None:
    release.check("helpers.py", release.kind)


@cases([*CLOSELY, *((version, "legacy") for version in ("0.7.0", "0.6.1", "0.5.0", "0.4.1"))])
def test_the_engines_request_id_goes_into_the_batch(release: Release) -> None:
    release.check("request_ids.py", release.version)


@cases(CLOSELY)
def test_revert_brings_the_release_back(release: Release) -> None:
    release.probepatch("revert")

    files = sorted(path.relative_to(release.plain) for path in release.plain.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(release.patched) for path in release.patched.rglob("*") if path.is_file())
    assert all((release.plain / path).read_bytes() == (release.patched / path).read_bytes() for path in files)
