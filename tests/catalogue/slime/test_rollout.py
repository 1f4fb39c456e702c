"""The rollout's clients of SGLang and vLLM, patched: what is sent, what is noted, and that it reaches the right rank."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.catalogue.slime import trees
from tests.real import environment

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[3]
DRIVE = Path(__file__).parent / "drive"
SLIME = (*trees.SMALL, *trees.FIRST, *trees.LATER)
FULL = {"DUMP_ON": "1", "PREFILL_LOGPROB_DIFF": "1"}


def patched(package: str, tree: str, folder: Path) -> Path:
    root = getattr(trees, package)(tree, folder / "tree")
    command = [sys.executable, "-m", "probepatch", "apply", str(root)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return root


def run(package: str, root: Path, out: Path, switches: dict[str, str]) -> Any:
    command = [environment.interpreter(), DRIVE / "rollout.py", package, root, out]
    settings = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"} | switches
    done = subprocess.run([str(part) for part in command], env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(out.read_text())
    assert seen["msprobe"] is False
    return seen


@pytest.mark.parametrize("tree", SLIME)
def test_slimes_samples_bring_the_engines_ids_along(tree: str, tmp_path: Path) -> None:
    root = patched("slime", tree, tmp_path)

    seen = run("slime", root, tmp_path / "full.json", FULL)
    starts = [request["payload"].get("logprob_start_len") for request in seen["sent"]]
    assert starts == [0, 0, 0, None]  # the last one continues a response: its input is no bare prompt
    first, second = seen["kept"]
    assert first == [
        {"request_id": "engine-1", "prompt_logprobs": [-1.0, -2.0]},
        {"request_id": "engine-3", "prompt_logprobs": [-1.0, -2.0]},
    ]
    assert second == [{"request_id": "engine-2", "prompt_logprobs": [-1.0]}, None]
    assert [row[:2] for row in seen["tokens"][0]] == [[97, 98], [102, 103]]

    seen = run("slime", root, tmp_path / "ids.json", {"DUMP_ON": "1"})
    assert not any("logprob_start_len" in request["payload"] for request in seen["sent"])
    assert seen["kept"][1] == [{"request_id": "engine-2"}, None]

    alone = run("slime", root, tmp_path / "alone.json", {"DUMP_ON": "0", "PREFILL_LOGPROB_DIFF": "1"})
    assert alone["kept"] == [first, second]

    seen = run("slime", root, tmp_path / "off.json", {"DUMP_ON": "0", "PREFILL_LOGPROB_DIFF": "0"})
    assert not any("logprob_start_len" in request["payload"] for request in seen["sent"])
    assert seen["kept"] == [None, None]


@pytest.mark.parametrize("shape", [*trees.SMALL, *trees.VIME])
def test_vimes_requests_have_names(shape: str, tmp_path: Path) -> None:
    root = patched("vime", shape, tmp_path)

    seen = run("vime", root, tmp_path / "full.json", FULL)
    ids = [request["payload"]["request_id"] for request in seen["sent"]]
    assert len(set(ids)) == 4
    assert [request["headers"]["x-request-id"] for request in seen["sent"]] == ids
    assert seen["sent"][1]["headers"]["x-session-id"] == "a session"  # the one with a picture
    wanted = [request["payload"]["sampling_params"].get("prompt_logprobs") for request in seen["sent"]]
    assert wanted == [1, 1, 1, None]
    assert seen["kept"] == [
        [
            {"request_id": ids[0], "prompt_logprobs": [-1.0, -2.0]},
            {"request_id": ids[2], "prompt_logprobs": [-1.0, -2.0]},
        ],
        [{"request_id": ids[1], "prompt_logprobs": [-1.0, -2.0]}, None],
    ]

    seen = run("vime", root, tmp_path / "off.json", {})
    assert [request["payload"].get("request_id") for request in seen["sent"]] == [None, "of the rendering", None, None]
    assert seen["sent"][0]["headers"] is None
    assert seen["kept"] == [None, None]
