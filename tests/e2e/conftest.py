"""What the missions share: one tiny model, and what each pair of frameworks builds of it. Made once for all tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e import environments
from tests.e2e.mission import DRIVE, REQUESTS, Answer, Built, Mission

Make = Callable[..., Mission]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    line = [environments.interpreter("verl"), DRIVE / "sample.py", folder]
    done = subprocess.run(line, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.fixture(scope="session")
def mission(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Make:
    """``mission(verl, engine)``: two copies and their scripts in a folder of their own; no command was given yet."""

    def make(verl: str, engine: str, requests: list[Answer] = REQUESTS[:1]) -> Mission:
        return Mission(tmp_path_factory.mktemp(f"{verl}-{engine}-"), model, verl, engine, requests)

    return make


@pytest.fixture(scope="session")
def built(model: Path) -> Callable[[Mission], Built]:
    """What the mission's scripts really build, described by the two payloads inside the frameworks; once for each pair."""
    known: dict[tuple[str, str], Built] = {}

    def of(mission: Mission) -> Built:
        pair = (mission.verl_version, mission.engine)
        if pair not in known:
            known[pair] = describe(mission)
        return known[pair]

    def describe(mission: Mission) -> Built:
        folder = mission.folder / "built"
        folder.mkdir(exist_ok=True)
        modules = folder / "modules.json"
        more = {"MODULES": str(modules), "PROBEPATCH_INVENTORY_DATA": "1"}
        mission.start("train.sh", "describe", PROBEPATCH_INVENTORY=str(folder / "train"), **more)
        if mission.engine == "sglang":  # its model is built in a process of the engine's own
            return Built(folder / "train", mission.model, None)
        mission.start("infer.sh", "describe", PROBEPATCH_INVENTORY=str(folder / "infer"), **more)
        return Built(folder / "train", folder / "infer", modules)

    return of
