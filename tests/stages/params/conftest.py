"""Commands as real processes, and a task card whose earlier stages are done."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from stages.card.card import PERMISSIONS
from stages.card.evidence import record
from stages.card.permissions import permit
from stages.card.store import changing, make_card
from tests.cli.test_shell import ROOT, run

Answer = Callable[..., dict[str, Any]]


@pytest.fixture
def params() -> Answer:
    """``params(command, …, code=0)``: the JSON of ``probepatch params …``, which has to end with ``code``; valid by its schema."""

    def answer(*arguments: str | Path, code: int = 0, cwd: Path | None = None, **environment: str) -> dict[str, Any]:
        done = run("params", *arguments, "--json", cwd=cwd, **environment)
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        found: dict[str, Any] = json.loads(done.stdout, parse_constant=_no_constant)
        schema = "error" if "error" in found else f"params-{arguments[0]}"
        jsonschema.validate(found, json.loads((ROOT / f"docs/schemas/{schema}.json").read_text()))
        return found

    return answer


def _no_constant(text: str) -> Any:
    raise AssertionError(f"{text} is no JSON")


@pytest.fixture
def card(tmp_path: Path) -> Path:
    """A card in which stages 0 to 4 are done."""
    return card_in(tmp_path / "task")


def card_in(folder: Path, upto: int = 4) -> Path:
    path = make_card(folder)
    with changing(path) as made:
        facts = {"usage": "analysis", "model.path": "/m", "train.framework": "verl", "infer.framework": "vllm"}
        for name, value in {**facts, "baseline_command": "bash run.sh", "artifacts": "/a"}.items():
            made.put(name, value)
        permit(made, dict.fromkeys(PERMISSIONS, True), "all")
        for stage in (1, 3, 4):
            if stage <= upto:
                record(made, stage, True, "done")
    return path
