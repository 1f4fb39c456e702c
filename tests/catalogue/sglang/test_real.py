"""SGLang itself on a CPU: the log beside its own dump, the prompts' log-probs against Transformers, and silence.

PROBEPATCH_SGLANG_PYTHON names the Python of an environment with sglang and msprobe (pins-sglang.txt); the package is copied
from there, patched and run, the environment stays as it is.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PYTHON = os.environ.get("PROBEPATCH_SGLANG_PYTHON", "")  # read before tests clear it
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not PYTHON, reason="PROBEPATCH_SGLANG_PYTHON names no environment with sglang"),
]
HERE = Path(__file__).parent
ROOT = HERE.parents[2]
NAMES = ["one", "two", "three", "shares-a-prefix", "asks-itself"]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A patched copy of the environment's sglang."""
    where = "import importlib.metadata as m, pathlib; print(pathlib.Path(m.distribution('sglang').locate_file('')))"
    site = Path(subprocess.run([PYTHON, "-c", where], check=True, capture_output=True, text=True).stdout.strip())
    into = tmp_path_factory.mktemp("site")
    for folder in (site / "sglang", *site.glob("sglang-*.dist-info")):
        shutil.copytree(folder, into / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, "-m", "probepatch", "apply", str(into)], cwd=ROOT, check=True, capture_output=True)
    return into


def drive(package: Path, folder: Path, flag: bool = True, **switches: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir()
    config = {"task": "tensor", "level": "L0", "dump_path": str(folder / "dump"), "step": [0], "rank": []}
    (folder / "infer.json").write_text(json.dumps(config))
    command = [PYTHON, str(HERE / "drive_engine.py"), str(folder), *([str(folder / "infer.json")] if flag else [])]
    environment = {**os.environ, "PYTHONPATH": str(package), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **switches}
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "dump" / "rank0" / name).read_text().splitlines()]


def tokens(folder: Path) -> list[list[int]]:
    answers = json.loads((folder / "answer.json").read_text())
    return [one["output_ids"] for answer in answers for one in (answer if isinstance(answer, list) else [answer])]


@pytest.fixture(scope="module")
def captured(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captured") / "run"
    done = drive(package, folder, DUMP_ON="1", PREFILL_LOGPROB_DIFF="1")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder


def test_each_step_of_the_dump_names_its_requests(captured: Path) -> None:
    found = read(captured, "dispatch_log.jsonl")
    assert [line["step"] for line in found] == list(range(6))
    assert [line["phase"] for line in found] == ["prefill", "decode", "decode", "prefill", "prefill", "prefill"]
    assert [line["request_ids"] for line in found] == [["one"]] * 3 + [["two", "three"]] + [
        [name] for name in NAMES[3:]
    ]
    assert [line["scheduled_tokens"] for line in found] == [[11], [1], [1], [4, 6], [10], [5]]
    assert [line["computed_tokens"] for line in found] == [[0], [11], [12], [0, 0], [0], [0]]
    dumped = json.loads((captured / "dump" / "step0" / "rank0" / "dump.json").read_text())["data"]
    embedding = next(value for name, value in dumped.items() if "embed_tokens" in name)
    assert embedding["input_args"][0]["shape"] == [found[0]["token_count"]]


def test_prompt_logprobs_are_those_of_transformers(captured: Path) -> None:
    reference = json.loads((captured / "reference.json").read_text())
    found = read(captured, "prefill_logprobs.jsonl")
    assert [line["request_id"] for line in found] == NAMES
    for line, expected in zip(found, reference, strict=True):
        assert line["n_tokens"] == len(expected) + 1
        assert line["logprobs"] == pytest.approx(expected, abs=1e-4)  # although the requests asked for temperature 0.7


def test_off_is_as_it_was(captured: Path, package: Path, tmp_path: Path) -> None:
    done = drive(package, tmp_path / "off", flag=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert tokens(tmp_path / "off") == tokens(captured)
    assert not (tmp_path / "off" / "dump").exists()
    answers = json.loads((tmp_path / "off" / "answer.json").read_text())
    assert answers[2][0]["meta_info"]["cached_tokens"] > 0  # the prefix cache is at work
    assert set(answers[0][0]["meta_info"]) == set(json.loads((captured / "answer.json").read_text())[0][0]["meta_info"])


def test_a_missing_flag_stops_the_start(package: Path, tmp_path: Path) -> None:
    done = drive(package, tmp_path / "silent", flag=False, DUMP_ON="1")
    assert done.returncode != 0
    assert "start it with --msprobe-dump-config PATH" in done.stdout + done.stderr
