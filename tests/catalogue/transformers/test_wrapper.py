"""The wrapper for Transformers on a tiny random model, under real msprobe."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.real.environment import interpreter

pytestmark = pytest.mark.real
HERE = Path(__file__).parent
ROOT = HERE.parents[2]
WRAPPER = ROOT / "recipes" / "payloads" / "probepatch_transformers.py"
Run = Callable[..., dict[str, Any]]


def start(script: Path, folder: Path, *arguments: str, **switches: str) -> subprocess.CompletedProcess[str]:
    """The script beside the wrapper, as a user runs it."""
    shutil.copy(WRAPPER, folder)
    shutil.copy(script, folder)
    (folder / "infer.json").write_text(json.dumps({"dump_path": str(folder / "dump"), "step": [0, 1, 2], "rank": []}))
    command = [str(interpreter()), script.name, *arguments]
    given = {"MSPROBE_INFER_CONFIG": "infer.json", "OMP_NUM_THREADS": "1", **switches}
    return subprocess.run(command, env={**os.environ, **given}, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def call(scenario: str, **switches: str) -> dict[str, Any]:
        done = start(HERE / "drive_model.py", tmp_path, scenario, **switches)
        assert done.returncode == 0, done.stderr
        last = next(line for line in reversed(done.stdout.splitlines()) if line.startswith("{"))
        return {**json.loads(last), "said": done.stdout}

    return call


def lines(folder: Path, name: str = "dispatch_log.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "dump" / "rank0" / name).read_text().splitlines()]


def dumps(folder: Path) -> list[list[int]]:
    """For each step that msprobe kept: the shape of the embedding's input."""
    found = []
    for file in sorted(folder.glob("dump/step*/*/dump.json")):
        data = json.loads(file.read_text())["data"]
        found.append(data["Module.model.embed_tokens.Embedding.forward.0"]["input_args"][0]["shape"])
    return found


def test_steps_lines_and_logprobs(run: Run, tmp_path: Path) -> None:
    seen = run("both", DUMP_ON="1", PREFILL_LOGPROB_DIFF="1")
    assert dumps(tmp_path) == [[1, 5], [2, 4], [2, 1]]
    found = lines(tmp_path)
    assert [line["step"] for line in found] == [0, 1, 2, 3]
    assert [line["phase"] for line in found] == ["prefill", "prefill", "decode", "decode"]
    assert [line["request_ids"] for line in found] == [["r1"]] + [["a", "b"]] * 3
    assert [line["prompt_tokens"] for line in found] == [[5]] + [[2, 4]] * 3
    assert [line["scheduled_tokens"] for line in found] == [[5], [2, 4], [1, 1], [1, 1]]
    assert [line["computed_tokens"] for line in found] == [[0], [0, 0], [2, 4], [3, 5]]
    written = lines(tmp_path, "prefill_logprobs.jsonl")
    assert [line["request_id"] for line in written] == ["r1", "a", "b"]
    assert {(line["logprobs_mode"], line["temperature"], line["side"]) for line in written} == {("raw", 1.0, "infer")}
    for line, reference in zip(written, seen["reference"], strict=True):
        assert line["n_tokens"] == len(reference) + 1
        assert line["logprobs"] == pytest.approx(reference, abs=1e-5)
    assert seen["left"] is False
    assert not any("token_ids" in key for line in found + written for key in line)

    shutil.rmtree(tmp_path / "dump")
    off = run("both", DUMP_ON="0", PREFILL_LOGPROB_DIFF="0")
    assert (off["logits"], off["tokens"]) == (seen["logits"], seen["tokens"])
    assert off["msprobe"] is False
    assert not (tmp_path / "dump").exists()

    alone = run("both", PREFILL_LOGPROB_DIFF="1")
    assert (alone["logits"], alone["tokens"]) == (seen["logits"], seen["tokens"])
    assert (alone["msprobe"], alone["left"]) == (False, False)
    assert lines(tmp_path, "prefill_logprobs.jsonl") == written
    assert [path.name for path in (tmp_path / "dump").rglob("*.*")] == ["prefill_logprobs.jsonl"]


def test_an_error_ends_its_step(run: Run, tmp_path: Path) -> None:
    seen = run("error", DUMP_ON="1")
    assert seen["left"] is False
    assert [line["step"] for line in lines(tmp_path)] == [0, 1]
    assert dumps(tmp_path)[-1] == [1, 5]


def test_what_it_does_not_know_is_said(run: Run, tmp_path: Path) -> None:
    seen = run("unknown", DUMP_ON="1", PREFILL_LOGPROB_DIFF="1", DUMP_TOKEN_IDS="1")
    assert "[DUMP_DIAG] forward without 2-D input_ids" in seen["said"]
    found = lines(tmp_path)
    assert [line["phase"] for line in found] == ["other", "prefill", "other"]
    assert found[1]["prompt_token_ids"] == [[5, 6, 7, 8, 9]]
    assert (found[2]["scheduled_tokens"], found[2]["computed_tokens"]) == ([2], [5])
    assert len(lines(tmp_path, "prefill_logprobs.jsonl")) == 1


def test_wrong_settings_are_named(run: Run) -> None:
    training, miscounted, without = run("refusals", DUMP_ON="1")["refused"]
    assert "call model.eval()" in training
    assert "2 request ids for a batch of 1" in miscounted
    assert "set MSPROBE_INFER_CONFIG to its path" in without


def test_the_example_of_the_manual_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "transformers.md").read_text()
    script = tmp_path / "page" / "run.py"
    script.parent.mkdir()
    script.write_text(page.partition("```python\n")[2].partition("```")[0])
    (tmp_path / "run").mkdir()
    done = start(script, tmp_path / "run", DUMP_ON="1", PREFILL_LOGPROB_DIFF="1")
    assert done.returncode == 0, done.stderr
    assert "torch.Size([2, 6])" in done.stdout
    assert [line["request_ids"] for line in lines(tmp_path / "run")][:2] == [["r1"], ["r2", "r3"]]
    assert len(lines(tmp_path / "run", "prefill_logprobs.jsonl")) == 3
