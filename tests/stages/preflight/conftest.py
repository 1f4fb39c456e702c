"""A card, its two sides as small real environments, and real processes with the words of engines."""

from __future__ import annotations

import json
import os
import shlex
import signal
import struct
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from stages.card.card import Card
from stages.card.store import changing, make_card

Spawn = Callable[..., subprocess.Popen[bytes]]

CONFIG = {
    "num_hidden_layers": 2,
    "hidden_size": 8,
    "num_attention_heads": 2,
    "vocab_size": 32,
    "intermediate_size": 16,
    "max_position_embeddings": 64,
    "torch_dtype": "bfloat16",
}


def safetensors(path: Path, names: list[str]) -> None:
    head, blob = {}, b""
    for name in names:
        head[name] = {"dtype": "F32", "shape": [2], "data_offsets": [len(blob), len(blob) + 8]}
        blob += struct.pack("<2f", 1.0, 2.0)
    text = json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + blob)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    safetensors(folder / "model.safetensors", ["a.weight", "b.weight"])
    return folder


def package(site: Path, name: str, version: str, files: dict[str, str], distribution: str | None = None) -> None:
    for path, text in {"__init__.py": f"__version__ = {version!r}\n", **files}.items():
        place = site / name / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    about = site / f"{(distribution or name).replace('-', '_')}-{version}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution or name}\nVersion: {version}\n")
    (about / "top_level.txt").write_text(f"{name}\n")


def msprobe(site: Path, imports: str = "", load: bool = True) -> None:
    files = {
        "pytorch/__init__.py": f"import torch\n{imports}\nclass PrecisionDebugger:\n    pass\n",
        "pytorch/dump/__init__.py": "",
    }
    if load:
        files |= {"pytorch/dump/module_load/__init__.py": "", "pytorch/dump/module_load/tensor_loader.py": ""}
    package(site, "msprobe", "26.2.0", files, "mindstudio-probe")


def environment(folder: Path) -> Path:
    """An interpreter of its own; its site-packages."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    return site


@pytest.fixture
def sites(tmp_path: Path) -> dict[str, Path]:
    """The site-packages of the two sides, with everything that a capture needs."""
    found = {side: environment(tmp_path / side) for side in ("train", "infer")}
    for side, framework in (("train", "verl"), ("infer", "vllm")):
        package(found[side], "torch", "2.7.1", {})
        package(found[side], framework, "0.9.1", {})
        msprobe(found[side])
    return found


@pytest.fixture
def card(tmp_path: Path, model: Path, sites: dict[str, Path]) -> Path:
    """A card with which nothing is wrong."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work/run.sh").write_text("true\n")
    path = make_card(tmp_path / "task")
    setting(
        path,
        **{
            "usage": "analysis",
            "model.path": str(model),
            "hardware": "cpu",
            "baseline_command": "bash run.sh",
            "artifacts": str(tmp_path / "out"),
            "train.framework": "verl",
            "infer.framework": "vllm",
            "train.python": str(tmp_path / "train/bin/python"),
            "infer.python": str(tmp_path / "infer/bin/python"),
            "train.workdir": str(tmp_path / "work"),
            "train.log": str(tmp_path / "log/train.txt"),
            "infer.log": str(tmp_path / "log/infer.txt"),
        },
    )
    return path


def setting(path: Path, **facts: str | None) -> Card:
    with changing(path) as card:
        for name, text in facts.items():
            card.set(name, text if text is not None else "unknown")
    return card


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Spawn]:
    """Start a sleeper that calls itself something else; ends with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *, body: str = "sleep 300", before: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        words = [*before, "bash", "-c", f"exec -a {shlex.quote(name)} {body}"]
        one = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
        started.append(one)
        return one

    yield start
    for one in started:
        with suppress(ProcessLookupError):
            os.killpg(one.pid, signal.SIGKILL)  # each leads a group of its own
        one.wait()


def tool(folder: Path, name: str, script: str) -> None:
    """A command in ``folder``, written in shell."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)


def prefix(tmp_path: Path, tools: Path) -> str:
    """A command prefix behind which ``tools`` come first on PATH."""
    tool(tmp_path, "reach", f'export PATH={shlex.quote(str(tools))}:"$PATH"; exec "$@"')
    return str(tmp_path / "reach")


def alone() -> bool:
    """Whether a PID namespace can be made here."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return False
    done = subprocess.run(["unshare", "-p", "-f", "--mount-proc", "true"], capture_output=True, check=False)
    return done.returncode == 0
