"""A task at stage 6: small trees of both sides, interpreters with a stand-in for msprobe, and a card whose scene is real."""

from __future__ import annotations

import shutil
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stages.card.card import PERMISSIONS
from stages.card.evidence import record
from stages.card.permissions import permit
from stages.card.store import changing
from tests.cli.test_commands import answer

CATALOGUE = Path(__file__).parents[2] / "catalogue"
TREES = {
    "vllm": CATALOGUE / "vllm/trees/vllm",
    "ascend-capture": CATALOGUE / "vllm/trees/ascend-capture",
    "ascend-native": CATALOGUE / "vllm/trees/ascend-native",
    "sglang-native": CATALOGUE / "sglang/trees/native",
    "sglang-plain": CATALOGUE / "sglang/trees/plain",
}
OWN = Path(__file__).parent / "own"
TRAINER = OWN / "recipes/mini-trainer.yaml"
_MSPROBE = """
import json
class PrecisionDebugger:
    def __init__(self, config_path):
        config = json.load(open(config_path))
        assert set(config) <= {"task", "dump_path", "rank", "step", "level", "async_dump", "tensor", "statistics"}, config
        open("beside", "w")  # as msprobe does, it leaves something in the folder that it is built in
"""


def python(folder: Path, *paths: Path, msprobe: str | None = _MSPROBE) -> Path:
    """An interpreter that imports from ``paths``, and a msprobe 26.2.0 that is this text (None: there is none)."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "side.pth").write_text("".join(f"{path}\n" for path in paths))
    if msprobe is not None:
        (site / "msprobe/pytorch").mkdir(parents=True)
        (site / "msprobe/__init__.py").touch()
        (site / "msprobe/pytorch/__init__.py").write_text(msprobe)
        (site / "mindstudio_probe-26.2.0.dist-info").mkdir()
        (site / "mindstudio_probe-26.2.0.dist-info/METADATA").write_text(
            "Metadata-Version: 2.1\nName: mindstudio-probe\nVersion: 26.2.0\n"
        )
    return folder / "bin/python"


class Task:
    """``train`` is a trainer known by a recipe of one's own; ``infer`` one of the engines' small trees, or None for plain
    Transformers."""

    def __init__(self, folder: Path, engine: str | None = "vllm", version: str | None = None, **facts: str) -> None:
        self.folder, self.root, self.card = folder, folder / "artifacts", folder / "task/task_card.json"
        self.train, self.infer = folder / "train", folder / "infer"
        shutil.copytree(OWN / "checkout", self.train, ignore=shutil.ignore_patterns("__pycache__"))
        framework = "transformers"
        if engine is not None:
            shutil.copytree(TREES[engine], self.infer, ignore=shutil.ignore_patterns("__pycache__"))
            framework = next(one.name for one in sorted(self.infer.iterdir()) if one.is_dir())
            facts = {"infer.checkout": str(self.infer), **facts}
        if version is not None:
            (self.infer / f"{framework}-{version}.dist-info").mkdir()
        answer("task-init", "task", "init", folder / "task")
        usual = {
            "usage": "analysis",
            "model.path": "/model",
            "hardware": "cpu",
            "baseline_command": "true",
            "artifacts": str(self.root),
            "train.framework": "own",
            "train.checkout": str(self.train),
            "train.workdir": str(folder),
            "train.python": str(python(folder / "train-env", self.train)),
            "infer.framework": framework,
            "infer.workdir": str(folder),
            "infer.python": str(python(folder / "infer-env", self.infer)),
        }
        self.set(**{**usual, **facts})
        with changing(self.card) as card:
            permit(card, dict.fromkeys(PERMISSIONS, True), "a test")
        self.pass_stages(1)

    def set(self, **facts: str) -> None:
        words = [f"{name}={value}" for name, value in facts.items()]
        answer("task-set", "task", "set", *words, "--task", self.card)

    def pass_stages(self, *stages: int, result: Mapping[str, Any] | None = None) -> None:
        """Leave evidence by hand."""
        with changing(self.card) as card:
            for stage in stages:
                record(card, stage, True, "by hand", result=result)

    def ready(self, train: int | None = 2, infer: int | None = 1) -> Task:
        """Up to stage 5; the scene is the real one, the worlds are stage 4's."""
        answer("scene", "scene", "--recipe-file", TRAINER, "--task", self.card)
        self.pass_stages(4, result={"world": {"train": train, "infer": infer}})
        self.pass_stages(5)
        return self

    def prepare(self, *words: str | Path, code: int = 0) -> dict[str, Any]:
        named = ["--recipe-file", TRAINER, *words, "--task", self.card]
        return answer("capture-prepare" if not code else "error", "capture", "prepare", *named, code=code)

    def run(self, *words: str | Path, code: int = 0, failing: bool = False) -> dict[str, Any]:
        """``failing``: the command itself is refused."""
        schema = "error" if failing else "capture-run"
        return answer(schema, "capture", "run", *words, "--task", self.card, code=code)

    def fresh(self, card: bytes) -> Task:
        """As it was when the card said this: no dump, no log."""
        for name in ("dump", "logs"):
            shutil.rmtree(self.root / name, ignore_errors=True)
        self.card.write_bytes(card)
        return self
