"""A real Ray cluster on this machine: eight nodes, each with a tree of its own that its workers would import."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
CHECKOUT = ROOT / "fixtures/checkout"
RECIPES = ROOT / "fixtures/recipes/tinyrl"
FILES = [word for name in ("trainer", "engine") for word in ("--recipe-file", str(RECIPES / f"tinyrl-{name}.yaml"))]
QUICK_TO_MISS = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_failure_threshold": 3,
}


def contents(root: Path) -> dict[str, bytes]:
    paths = (path for path in root.rglob("*") if path.is_file() and path.name != "sitecustomize.py")
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


BEFORE = {name: data for name, data in contents(CHECKOUT).items() if "__pycache__" not in name}


class Machines:
    """``names[i]`` is what node i is called now, ``trees[i]`` its tree."""

    def __init__(self, base: Path) -> None:
        from ray.cluster_utils import Cluster

        self.base = base
        self.trees = [base / f"tree{number}" for number in range(8)]
        self.names = [f"node{number}" for number in range(8)]
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.cluster = Cluster(initialize_head=False)
        self.nodes = [self._start(number, wait=False) for number in range(8)]
        self.cluster.wait_for_nodes()

    def _start(self, number: int, wait: bool = True) -> Any:
        head = {"include_dashboard": True, "dashboard_port": self.port, "_system_config": QUICK_TO_MISS}
        return self.cluster.add_node(
            wait=wait,
            num_cpus=1,
            object_store_memory=80 << 20,
            node_name=self.names[number],
            env_vars={"PYTHONPATH": str(self.trees[number])},
            **({} if number else head),
        )

    def reset(self) -> None:
        for tree in self.trees:
            assert tree.is_absolute() and tree.parent == self.base
            shutil.rmtree(tree, ignore_errors=True)
            shutil.copytree(CHECKOUT, tree, ignore=shutil.ignore_patterns("__pycache__"))

    def kill(self, number: int) -> None:
        """The machine is gone: its Ray processes at once."""
        self.cluster.remove_node(self.nodes[number], allow_graceful=False)

    def come_back(self, number: int, name: str) -> None:
        """A new node, with the tree as the old one left it."""
        self.names[number] = name
        self.nodes[number] = self._start(number)

    def inject(self, number: int, code: str) -> None:
        """Code that every Python of this node runs at its start."""
        (self.trees[number] / "sitecustomize.py").write_text(code)

    def heal(self, number: int) -> None:
        (self.trees[number] / "sitecustomize.py").unlink()

    def only(self, *numbers: int) -> list[str]:
        return [word for number in numbers for word in ("--node", self.names[number])]

    def command(self, name: str, *words: str, address: str | None = None) -> list[str]:
        place = [] if "--path" in words else ["--package", "tinyrl"]
        entry = [sys.executable, str(ROOT / "probepatch.py"), "fleet", name]
        return [*entry, "--address", address or self.cluster.address, *place, *words]

    def run(self, name: str, *words: str, address: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(name, *words, address=address), capture_output=True, text=True, stdin=subprocess.DEVNULL
        )

    def start(self, name: str, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(name, *words, "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def answer(self, name: str, *words: str, code: int = 0, address: str | None = None) -> dict[str, Any]:
        done = self.run(name, *words, "--json", address=address)
        assert done.returncode == code, done.stdout + done.stderr
        return checked(name, done.stdout)

    def states(self, answer: dict[str, Any]) -> dict[str, str]:
        """By node: one node a tree."""
        return {tree["nodes"][0]: tree["state"] for tree in answer["trees"]}


def checked(name: str, out: str) -> dict[str, Any]:
    """The answer, by the schema of the command or of errors: Ray must not print into it."""
    found: dict[str, Any] = json.loads(out)
    schema = "error" if "error" in found else f"fleet-{name}"
    jsonschema.validate(found, json.loads((ROOT / f"docs/schemas/{schema}.json").read_text()))
    return found


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture(scope="session")
def _cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    if "PYTEST_XDIST_WORKER" in os.environ:
        pytest.skip("a cluster of eight nodes wants the machine for itself: no -n")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", path)  # a job is started as `python`
        patch.setenv("RAY_DISABLE_IMPORT_WARNING", "1")
        patch.setenv("OMP_NUM_THREADS", "1")
        machines = Machines(tmp_path_factory.mktemp("fleet"))
        yield machines
        machines.cluster.shutdown()


@pytest.fixture
def machines(_cluster: Machines) -> Iterator[Machines]:
    _cluster.reset()
    yield _cluster
    for pid in _cluster.base.glob("*.pid"):  # what a test left waiting
        with suppress(ProcessLookupError):
            os.kill(int(pid.read_text()), signal.SIGKILL)
        pid.unlink()
