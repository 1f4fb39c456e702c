"""Trees of a few lines, and recipes for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from authoring.drift.diagnosis import Diagnosis, diagnose_all
from authoring.drift.view import View
from codemods.recipe import Recipe
from codemods.recipe_reader import load_recipe

WORKER = '''
import torch


class Worker:
    def __init__(self, model):
        self.model = model

    def compute_log_prob(self, data):
        """Log-probs of a batch."""
        data = data.to("cpu")
        with torch.no_grad():
            output = self.model.infer(data)
        output = output.to("cpu")
        return output

    def update(self, data):
        loss = self.model.train(data)
        return loss
'''
EDIT = """
  - id: dump
    why: dump the forward   # a comment of the author's
    file: lab/worker.py
    in: Worker.compute_log_prob
    before: $OUT = self.model.infer(data)
    insert: probe.start(data)
"""
IMPORT = """
  - id: import
    why: for the line below
    file: lab/worker.py
    add_import: from lab import probe
"""


@dataclass(frozen=True)
class Small:
    """A tree in memory."""

    contents: Mapping[str, str]
    label: str = "small"

    def files(self) -> tuple[str, ...]:
        return tuple(sorted(self.contents))

    def read(self, file: str) -> bytes | None:
        text = self.contents.get(file)
        return None if text is None else text.encode()

    def key(self, file: str) -> str | None:
        return self.contents.get(file)


def recipe(folder: Path, edits: str = IMPORT + EDIT, rest: str = "", name: str = "lab") -> Recipe:
    head = f"# who wrote this\nrecipe: {name}\nframework: lab\nside: train\nversions: '>=1,<2'\nwhy: a test\n"
    path = folder / f"{name}.yaml"
    path.write_text(head + "edits:\n" + edits.strip("\n") + "\n" + rest)
    return load_recipe(path)


def tree(**files: str) -> Small:
    """``worker=TEXT`` is the file lab/worker.py."""
    contents = {f"lab/{name.replace('__', '/')}.py": dedent(text) for name, text in files.items()}
    return Small({"lab/__init__.py": "", "lab/probe.py": "", **contents})


def diagnosed(one: Recipe, new: Small, old: Small | None = None) -> dict[str, Diagnosis]:
    was = View(old) if old is not None else None
    return {found.edit.id: found for found in diagnose_all(one, one.edits, View(new), was)}
