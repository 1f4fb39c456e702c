"""Real vLLM 0.32.0 on this CPU, its installed package patched and put back: only real engine steps are dumped."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.catalogue.vllm import environment

pytestmark = pytest.mark.real

REPOSITORY = Path(__file__).parents[3]
DRIVER = Path(__file__).parent / "drive" / "engine.py"
LONG, SHORT, LONGEST = list(range(2, 13)), list(range(30, 40)), list(range(50, 120))  # the driver's prompts


def probepatch(*line: str) -> None:
    where = ["--package", "vllm", "--python", str(environment.interpreter())]
    command = [sys.executable, "-m", "probepatch", line[0], *where, *line[1:]]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def installed() -> dict[str, str]:
    """Digest of every file of the installed package, and of what lies beside it in the ledger's folder."""
    find = "import importlib.util as u; print(u.find_spec('vllm').submodule_search_locations[0])"
    done = subprocess.run([environment.interpreter(), "-c", find], check=True, capture_output=True, text=True)
    package = Path(done.stdout.strip())
    files = (path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files if path.suffix == ".py"}


class Patched:
    """The patched package, what it answered before, and a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.unpatched = self.run("unpatched", "one", "two", "asking")

    def run(self, name: str, *scenes: str, switches: dict[str, str] | None = None, **settings: Any) -> dict[str, Any]:
        out = self.folder / f"{name}.json"
        line = [environment.interpreter(), DRIVER, self.folder / "model", out, *scenes]
        line += ["--settings", json.dumps(settings)]
        env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"} | (switches or {})
        done = subprocess.run([str(part) for part in line], env=env, capture_output=True, text=True)
        (self.folder / f"{name}.log").write_text(done.stdout + done.stderr)
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
        seen: dict[str, Any] = json.loads(out.read_text())
        return seen

    def dumping(self, name: str, *scenes: str, more: dict[str, str] | None = None, **settings: Any) -> Dump:
        dump = Dump(self.folder / f"{name}-dump")
        config = self.folder / f"{name}-config.json"
        config.write_text(json.dumps({"dump_path": str(dump.folder), "step": list(range(20))}))
        switches = {"MSPROBE_INFER_CONFIG": str(config), **({"DUMP_ON": "1"} if more is None else more)}
        dump.seen = self.run(name, *scenes, switches=switches, **settings)
        dump.output = (self.folder / f"{name}.log").read_text()
        return dump


class Dump:
    """What msprobe and the patch wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: dict[str, Any] = {}
        self.output = ""

    def lines(self, name: str) -> list[dict[str, Any]]:
        file = self.folder / "rank0" / name
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def steps(self, *keys: str) -> list[tuple[Any, ...]]:
        return [tuple(line[key] for key in keys) for line in self.lines("dispatch_log.jsonl")]

    def rows(self) -> list[int]:
        """For each dumped step, how many tokens the embedding was given: what the model really computed."""
        folders = sorted(self.folder.glob("step*"), key=lambda path: int(path.name.removeprefix("step")))
        return [self._rows(folder) for folder in folders]

    @staticmethod
    def _rows(folder: Path) -> int:
        entries = json.loads((folder / "rank0" / "dump.json").read_text())["data"]
        (name,) = [name for name in entries if "embed_tokens" in name]  # one forward, and no other beside it
        rows: int = entries[name]["input_args"][0]["shape"][0]
        return rows


@pytest.fixture(scope="module")
def patched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Patched]:
    before = installed()
    running = Patched(tmp_path_factory.mktemp("vllm"))
    probepatch("apply")
    try:
        yield running
    finally:
        probepatch("revert")
    assert installed() == before


def hash_of(prompt: list[int]) -> str:
    return hashlib.sha256(",".join(map(str, prompt)).encode()).hexdigest()


def test_only_real_steps_are_dumped_one_by_one(patched: Patched) -> None:
    dump = patched.dumping("steps", "dummies", "one", "empty", "two", "failing")

    dummies, one, after_empty, two, failing = dump.seen["scenes"]
    assert dummies == {"built": False}  # neither the profile run nor a dummy run built a debugger
    assert [one, two] == patched.unpatched["scenes"][:2]
    assert after_empty == {"built": True, "running": False, "steps": 3}
    assert failing == {"raised": True, "built": True, "running": False, "steps": 6}
    assert dump.steps("step", "phase", "request_ids", "computed_tokens", "scheduled_tokens") == [
        (0, "prefill", ["0"], [0], [11]),
        (1, "decode", ["0"], [11], [1]),
        (2, "decode", ["0"], [12], [1]),
        (3, "prefill", ["1", "2"], [0, 0], [11, 10]),
        (4, "decode", ["1", "2"], [11, 10], [1, 1]),
        (5, "prefill", ["3"], [0], [11]),
    ]
    first, *_, two_prompts, _decode, _failed = dump.lines("dispatch_log.jsonl")
    assert (first["rank"], first["prompt_tokens"], first["token_count"]) == (0, [11], 11)
    assert two_prompts["prompt_sha256"] == [hash_of(LONG), hash_of(SHORT)]
    assert not any("prompt_token_ids" in line for line in dump.lines("dispatch_log.jsonl"))
    assert dump.rows()[:5] == [11, 1, 1, 21, 2]
    assert dump.lines("prefill_logprobs.jsonl") == []


def test_a_cut_prompt_and_a_mixed_step_are_told_from_the_schedulers_counts(patched: Patched) -> None:
    dump = patched.dumping("chunks", "short-and-long", max_num_batched_tokens=8)

    assert dump.steps("phase", "phases", "computed_tokens", "scheduled_tokens") == [
        ("chunked_prefill", ["prefill", "chunked_prefill"], [0, 0], [3, 5]),
        ("mixed", ["decode", "chunked_prefill"], [3, 5], [1, 6]),
        ("decode", ["decode", "decode"], [4, 11], [1, 1]),
        ("decode", ["decode", "decode"], [5, 12], [1, 1]),
        ("decode", ["decode"], [13], [1]),
    ]
    assert dump.rows() == [8, 7, 2, 2, 1]


def test_prompts_only_leaves_decode_steps_out(patched: Patched) -> None:
    switches = {"DUMP_ON": "1", "PROMPTS_ONLY": "1", "DUMP_TOKEN_IDS": "1"}
    dump = patched.dumping("prompts", "one", "two", more=switches)

    assert dump.seen["scenes"] == patched.unpatched["scenes"][:2]
    assert dump.steps("step", "phase", "prompt_token_ids") == [(0, "prefill", [LONG]), (1, "prefill", [LONG, SHORT])]
    assert dump.rows() == [11, 21]


def test_prompt_logprobs_are_asked_for_and_logged(patched: Patched) -> None:
    """Cut into chunks and with a prefix cache on: neither changes the line."""
    settings = {"max_num_batched_tokens": 16, "enable_prefix_caching": True, "block_size": 32}
    dump = patched.dumping("logprobs", "two", "longest-twice", more={"PREFILL_LOGPROB_DIFF": "1"}, **settings)

    long, short, longest = (answer["prompt"] for answer in patched.unpatched["scenes"][2])
    lines = dump.lines("prefill_logprobs.jsonl")
    assert [line["request_id"] for line in lines] == ["0", "1", "2", "3"]
    expected = [(LONG, long), (SHORT, short), (LONGEST, longest), (LONGEST, longest)]
    for line, (prompt, logprobs) in zip(lines, expected, strict=True):
        assert (line["side"], line["logprobs_mode"], line["temperature"]) == ("infer", "raw", 1.0)
        assert (line["n_tokens"], line["prompt_sha256"]) == (len(prompt), hash_of(prompt))
        assert line["logprobs"] == pytest.approx(logprobs, abs=1e-5)
    assert dump.output.count("[DUMP_DIAG]") == 1
    assert "float32[" in dump.output.split("[DUMP_DIAG]")[1]
    assert dump.seen["msprobe"] is False
    assert dump.steps("step") == []


def test_a_cached_prefix_shows_as_computed_tokens(patched: Patched) -> None:
    dump = patched.dumping("cached", "longest-twice", enable_prefix_caching=True, block_size=32)

    assert dump.steps("phase", "computed_tokens", "scheduled_tokens") == [
        ("prefill", [0], [70]),
        ("prefill", [64], [6]),
    ]
    assert dump.rows() == [70, 6]


def test_logits_are_not_taken_for_logprobs(patched: Patched) -> None:
    dump = patched.dumping("logits", "one", more={"PREFILL_LOGPROB_DIFF": "1"}, logprobs_mode="raw_logits")

    assert dump.lines("prefill_logprobs.jsonl") == []
    assert "logprobs_mode=raw_logits gives logits" in dump.output


def test_a_compiled_engine_is_refused_at_the_start(patched: Patched) -> None:
    dump = patched.dumping("compiled", "one", enforce_eager=False)

    assert "DUMP_ON=1 needs enforce_eager=True" in dump.seen["error"]
    assert not dump.folder.exists()


def test_switched_off_nothing_changes(patched: Patched) -> None:
    seen = patched.run("off", "one", "two", "asking", switches={"DUMP_ON": "0", "PREFILL_LOGPROB_DIFF": ""})

    assert seen == patched.unpatched
    assert seen["msprobe"] is False
