"""verl's own training workers on this CPU, patched and not: the same numbers, and a dump of the bare prompt."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import statistics
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
        self.printed = ""  # by the last process
        self.older = version < "0.8"  # lexically: all of them have one digit in each place
        shutil.copytree(self.plain, self.patched)
        self.probepatch("apply", "--recipe", self.recipe)

    @property
    def precision(self) -> str:
        """What its forward computes in: bfloat16 where the code says so."""
        return "float32" if self.version >= {"engine": "0.8", "legacy": "0.6.1"}[self.kind] else "bfloat16"

    @property
    def exactly(self) -> list[str]:
        """Overrides for a forward in float32, where there is a choice."""
        choice = self.kind == "legacy" and self.precision == "float32"
        return ["++actor_rollout_ref.actor.fsdp_config.dtype=float32"] if choice else []

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
        self.printed = done.stdout
        seen: dict[str, Any] = json.loads(out.read_text())
        assert Path(seen.pop("verl")).is_relative_to(tree or self.patched)
        return seen

    def dumping(
        self, name: str, *options: str, prompts_only: bool = True, config: dict[str, Any] | None = None, **more: str
    ) -> tuple[dict[str, Any], Dump]:
        switches = {"DUMP_ON": "1", "PROMPTS_ONLY": str(int(prompts_only)), **more}
        return self.writing(name, *options, config=config, **switches)

    def writing(
        self, name: str, *options: str, config: dict[str, Any] | None = None, **switches: str
    ) -> tuple[dict[str, Any], Dump]:
        """One process whose msprobe config names a folder of its own."""
        dump = Dump(self.folder / f"{name}-dump")
        file = self.folder / f"{name}-config.json"
        file.write_text(json.dumps({"dump_path": str(dump.folder)} | (config or {})))
        return self.run(name, *options, switches=switches | {"MSPROBE_ACTOR_CONFIG": str(file)}), dump

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
        return self._lines("update_actor_log.jsonl")

    @property
    def prefill(self) -> list[dict[str, Any]]:
        return self._lines("prefill_logprobs.jsonl")

    def _lines(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "rank0" / name).read_text().splitlines()]


def under_transformers(*line: str | Path) -> None:
    """A script that needs no verl."""
    settings = os.environ | {"PYTHONPATH": joined([DRIVE, environment.legacy_libraries()])}
    done = subprocess.run([environment.interpreter(), *line], env=settings, capture_output=True)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    under_transformers("-c", "import sys, pathlib, tiny; tiny.make_model(pathlib.Path(sys.argv[1]))", folder)
    return folder


@pytest.fixture(scope="module")
def every_log_probs(model: Path) -> dict[str, list[list[float]]]:
    under_transformers(DRIVE / "prompt_log_probs.py", model, model / "log_probs.json")
    found: dict[str, list[list[float]]] = json.loads((model / "log_probs.json").read_text())
    return found


@pytest.fixture
def log_probs(release: Release, every_log_probs: dict[str, list[list[float]]]) -> list[list[float]]:
    """The model's own, of each prompt's tokens from the second on: temperature 1, no padding, no verl."""
    return every_log_probs[release.precision]


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
    config = release.folder / "helpers.json"
    config.write_text(json.dumps({"dump_path": str(release.folder)}))
    release.check("helpers.py", release.kind, str(config))


CARRYING = [*CLOSELY, ("0.9.0", "engine"), ("0.8.0", "engine")]
CARRYING += [(version, "legacy") for version in ("0.7.0", "0.6.1", "0.5.0", "0.4.1")]


@cases(CARRYING)
def test_the_engines_request_id_goes_into_the_batch(release: Release) -> None:
    release.check("request_ids.py", release.version)


# --- log-probs of the prompts -----------------------------------------------------------------------------------------

PREFILL: Switches = {"PREFILL_LOGPROB_DIFF": "1"}
TOLERANCE = {"float32": 1e-5, "bfloat16": 0.04}  # absolute; the latter rounds -4.8 to 1/32
NUMBERS = re.compile(r"prefill_logprob_diff_mean=(\S+) prefill_logprob_diff_max=(\S+) prefill_logprob_diff_std=(\S+)")


def entries(release: Release, *given: list[float] | str) -> str:
    """A file with what the rollout brought along, for each sample: log-probs of its prompt, or why there are none."""
    found = []
    for prompt, one in zip(PROMPTS, given, strict=True):
        entry = {"engine": "vllm", "engine_logprobs_mode": "processed_logprobs", "prompt_sha256": hash_of(prompt)}
        found.append(entry | ({"missing": one} if isinstance(one, str) else {"logprobs": one}))
    file = release.folder / "entries.json"
    file.write_text(json.dumps(found))
    return str(file)


def check_training_lines(dump: Dump, log_probs: list[list[float]], precision: str) -> None:
    lines = [line for line in dump.prefill if line["side"] == "train"]
    for number, (line, prompt) in enumerate(zip(lines, PROMPTS, strict=True)):
        assert without(line, "time", "pid") == {
            "rank": 0,
            "side": "train",
            "request_id": f"request-{'ab'[number]}",
            "n_tokens": len(prompt),
            "prompt_sha256": hash_of(prompt),
            "logprobs": pytest.approx(log_probs[number], abs=TOLERANCE[precision]),
            "logprobs_mode": "raw",
            "temperature": 1.0,
        }


@cases(EVERY)
def test_both_sides_log_probs_are_written_and_compared(release: Release, log_probs: list[list[float]]) -> None:
    warm = (*release.exactly, "--temperature", "0.7")
    plain = release.run("warm", *warm, tree=release.plain)
    shifted = [[value - 0.25 * position for position, value in enumerate(row)] for row in log_probs]
    given = entries(release, *shifted)
    seen, dump = release.writing("compared", *warm, "--prefill-entries", given, **PREFILL)

    assert seen == plain
    assert seen["msprobe"] is False
    check_training_lines(dump, log_probs, release.precision)
    infer = [line for line in dump.prefill if line["side"] == "infer"]
    assert [line["logprobs"] for line in infer] == shifted
    assert [(line["request_id"], line["n_tokens"], line["logprobs_mode"]) for line in infer] == [
        ("request-a", 5, "raw"),
        ("request-b", 3, "raw"),
    ]
    assert {(line["engine"], line["engine_logprobs_mode"]) for line in infer} == {("vllm", "processed_logprobs")}
    trained = [line["logprobs"] for line in dump.prefill if line["side"] == "train"]
    pairs = [pair for train, row in zip(trained, shifted, strict=True) for pair in zip(train, row, strict=True)]
    diffs = [abs(math.exp(train) - math.exp(row)) for train, row in pairs]
    (numbers,) = NUMBERS.findall(release.printed)
    expected = (statistics.fmean(diffs), max(diffs), statistics.pstdev(diffs))
    assert [float(number) for number in numbers] == pytest.approx(expected, rel=1e-5)
    assert "not computed" not in release.printed


@cases([*CLOSELY, ("0.8.0", "engine"), ("0.6.1", "legacy"), ("0.4.1", "legacy")])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("packed-alone", ["--micro-batch", "2"]),
        ("padded-alone", ["actor_rollout_ref.model.use_remove_padding=False", "--micro-batch", "2"]),
        (
            "dynamic-alone",
            [
                "actor_rollout_ref.actor.use_dynamic_bsz=True",
                "actor_rollout_ref.rollout.log_prob_use_dynamic_bsz=True",
                "actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu=14",
            ],
        ),
    ],
)
def test_without_the_rollouts_side_nothing_is_compared(
    release: Release, log_probs: list[list[float]], name: str, options: list[str]
) -> None:
    _seen, dump = release.writing(name, *release.exactly, *options, "--temperature", "0.7", **PREFILL)

    check_training_lines(dump, log_probs, release.precision)
    assert len(dump.prefill) == len(PROMPTS)
    assert "prefill_logprob_diff: not computed (2 of 2 requests: no log-probs of the prompt" in release.printed
    assert not NUMBERS.findall(release.printed)


@cases(CLOSELY)
def test_a_request_without_the_rollouts_side_is_left_out(release: Release, log_probs: list[list[float]]) -> None:
    given = entries(release, log_probs[0], "the vllm server returned no prompt_logprobs")
    _seen, dump = release.writing("half", *release.exactly, "--prefill-entries", given, **PREFILL)

    check_training_lines(dump, log_probs, release.precision)
    assert [line["request_id"] for line in dump.prefill if line["side"] == "infer"] == ["request-a"]
    (numbers,) = NUMBERS.findall(release.printed)
    assert max(map(float, numbers)) < 1e-5
    assert "not computed (1 of 2 requests: the vllm server returned no prompt_logprobs)" in release.printed


@cases(CLOSELY)
@pytest.mark.parametrize("prompts_only", [True, False])
def test_a_dump_and_log_probs_in_one_run(
    release: Release, every_log_probs: dict[str, list[list[float]]], prompts_only: bool
) -> None:
    every = {"step": [0, 1]}
    seen, dump = release.dumping(f"both-{prompts_only}", prompts_only=prompts_only, config=every, **PREFILL)

    assert seen == release.unpatched_and_seeded
    precision = "float32" if release.kind == "engine" else "bfloat16"
    check_training_lines(dump, every_log_probs[precision], precision)
    tokens = [len(prompt) for prompt in PROMPTS] if prompts_only else [9, 9]
    assert [dump.tokens_in(step) for step in (0, 1)] == [[1, count] for count in tokens]
    assert [line["token_count"] for line in dump.log] == tokens


@cases(CLOSELY)
def test_log_probs_need_a_folder_and_leave_the_reference_alone(release: Release) -> None:
    assert "PREFILL_LOGPROB_DIFF=1" in (error := release.run("nowhere", switches=PREFILL)["error"])
    assert "MSPROBE_ACTOR_CONFIG" in error

    seen, dump = release.writing("reference-only", "--reference", **PREFILL)
    assert without(seen, "msprobe") == {"built": False}
    assert not dump.folder.exists()


@cases(CLOSELY)
def test_revert_brings_the_release_back(release: Release) -> None:
    release.probepatch("revert")

    files = sorted(path.relative_to(release.plain) for path in release.plain.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(release.patched) for path in release.patched.rglob("*") if path.is_file())
    assert all((release.plain / path).read_bytes() == (release.patched / path).read_bytes() for path in files)
