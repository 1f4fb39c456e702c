"""The checkouts that are worked on: a release of verl in git, one copy for each tool, and one among 50,000 other files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.peers.anchors import anchors_module
from tests.bench.peers.astgrep_rules import rules_of
from tests.bench.peers.edits import edits_of
from tests.verl.wheels import unpack

RELEASES = {"0.9.1": "verl-engine-fsdp", "0.7.1": "verl-legacy-fsdp"}
CROWD = 50_000  # files
TOOLS = ("probepatch", "git", "libcst", "ast-grep")

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": os.devnull,
    "LANG": "C.UTF-8",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    **{f"GIT_{who}_{what}": f"bench@{who}.invalid" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}
"""Of every command that is measured: nothing of the developer's own settings."""


@dataclass(frozen=True)
class Scene:
    """``checkouts`` by tool; ``files`` are those that the other tools are given, ``pristine`` their bytes. ``peers`` is the folder
    of what the others are given beside: the codemod's edits and matchers, ast-grep's rules, the patch that we printed."""

    name: str
    recipe: str
    checkouts: dict[str, Path]
    files: tuple[str, ...]
    pristine: dict[str, bytes]
    peers: Path

    @property
    def edits(self) -> Path:
        return self.peers / "edits.json"

    @property
    def rules(self) -> Path:
        return self.peers / "rules.yml"

    @property
    def patch(self) -> Path:
        return self.peers / "printed.patch"

    def texts(self, tool: str) -> dict[str, bytes]:
        """The files as they are now."""
        return {file: (self.checkouts[tool] / file).read_bytes() for file in self.files}

    def restore(self, tool: str) -> None:
        """Put the changed files back, as they were committed."""
        for file, data in self.pristine.items():
            path = self.checkouts[tool] / file
            if path.read_bytes() != data:
                path.write_bytes(data)
        shutil.rmtree(self.checkouts[tool] / ".git" / "probepatch", ignore_errors=True)


def build(version: str, scratch: Path, tools: Sequence[str] = TOOLS, crowd: int = 0) -> Scene:
    """``crowd``: so many files around the package, in git as well."""
    name = f"{version} + {crowd}" if crowd else version
    folder = scratch / name.replace(" ", "")
    recipe = RELEASES[version]
    checkouts = {}
    for tool in tools:
        checkouts[tool] = unpack("verl", version, folder / tool)
        _surround(checkouts[tool], crowd)
        for arguments in (["init", "-q"], ["add", "-A", "-f"], ["commit", "-q", "-m", version]):
            subprocess.run(["git", *arguments], cwd=checkouts[tool], env=ENVIRONMENT, check=True)
    first = checkouts[tools[0]]
    edits = edits_of(recipe, version, first)
    files = tuple(sorted({edit.file for edit in edits}))
    scene = Scene(
        name, recipe, checkouts, files, {file: (first / file).read_bytes() for file in files}, folder / "peers"
    )
    scene.peers.mkdir()
    scene.edits.write_text(json.dumps([edit.as_json() for edit in edits]), encoding="utf-8")
    scene.rules.write_text(rules_of(edits), encoding="utf-8")
    (scene.peers / "verl_anchors.py").write_text(anchors_module(edits), encoding="utf-8")
    return scene


def _surround(checkout: Path, count: int) -> None:
    """``count`` small modules, a hundred in a folder."""
    for number in range(0, count, 100):
        folder = checkout / "crowd" / f"part{number // 100}"
        folder.mkdir(parents=True)
        for inner in range(min(100, count - number)):
            (folder / f"module{inner}.py").write_text(f"VALUE = {inner}\n", encoding="utf-8")
