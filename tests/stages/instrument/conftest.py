"""What the tests of this folder share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.stages.instrument.made import Task

Make = Callable[..., Task]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """``make(engine, …)``: a task up to stage 5."""
    return lambda *words, world=(2, 1), **facts: Task(tmp_path, *words, **facts).ready(*world)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Task, bytes]:
    """A prepared task with vLLM on the inference side, and its card."""
    made = Task(tmp_path_factory.mktemp("prepared")).ready()
    made.prepare()
    return made, made.card.read_bytes()


@pytest.fixture
def task(prepared: tuple[Task, bytes]) -> Task:
    """The prepared task: what a test changes in its trees, it has to put back."""
    return prepared[0].fresh(prepared[1])
