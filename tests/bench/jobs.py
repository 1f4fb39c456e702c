"""The commands that are measured. Those of a group run one after the other, on one checkout; groups are independent."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.bench.scene import Scene

ROOT = Path(__file__).parents[2]
PEERS = Path(__file__).parent / "peers"
CODEMOD, LEAN = "VerlCodemod", "LeanVerlCodemod"
AST_GREP = str(Path(sys.executable).with_name("ast-grep"))


@dataclass(frozen=True)
class Job:
    """``tool`` names the checkout that it works on. ``after`` is not measured. ``reports``: the command prints its own
    measurements as JSON."""

    scene: str
    name: str
    argv: tuple[str, ...]
    cwd: Path
    tool: str = ""
    env: dict[str, str] = field(default_factory=dict)
    after: Callable[[], None] | None = None
    reports: bool = False


INSIDE = ("planning", "codemod", "codemod, lean", "stages")


def groups(scenes: Sequence[Scene], crowd: Scene, git: str) -> list[list[Job]]:
    """Everything, in groups."""
    found = [_bare()]
    for scene in scenes:
        found += [_ours(scene), _git(scene, "git", git), _libcst(scene), _ast_grep(scene), *_inside(scene)]
    return [*found, [*_ours(crowd), *_git(crowd, "probepatch", git)]]


def diff(scene: Scene) -> Job:
    return _ours(scene)[0]


def _bare() -> list[Job]:
    return [
        Job("", "python -c pass", (sys.executable, "-c", "pass"), ROOT),
        Job("", "import libcst", (sys.executable, "-c", "import libcst"), ROOT),
    ]


def _ours(scene: Scene) -> list[Job]:
    tool = "probepatch"

    def job(name: str, *options: str, after: Callable[[], None] | None = None) -> Job:
        argv = (sys.executable, "-m", tool, name, str(scene.checkouts[tool]), *options)
        return Job(scene.name, name, argv, ROOT, tool, after=after)

    recipe = ("--recipe", scene.recipe)
    restore = partial(scene.restore, tool)
    return [job("diff", *recipe), job("apply", *recipe), job("status"), job("revert", after=restore)]


def _git(scene: Scene, tool: str, git: str) -> list[Job]:
    def job(name: str, *arguments: str) -> Job:
        return Job(scene.name, f"git {name}", (git, *arguments), scene.checkouts[tool], tool)

    patch = ("--whitespace=nowarn", str(scene.patch))
    return [
        job("apply", "apply", *patch),
        job("status", "status", "--porcelain"),
        job("apply -R", "apply", "-R", *patch),
    ]


def _libcst(scene: Scene) -> list[Job]:
    tool = "libcst"
    checkout = scene.checkouts[tool]
    quiet = ("--no-format", "--hide-progress", "--edits", str(scene.edits))
    files = tuple(str(checkout / file) for file in scene.files)

    def job(name: str, *options: str, command: str = CODEMOD) -> Job:
        argv = (
            sys.executable,
            "-m",
            "libcst.tool",
            "codemod",
            "-x",
            f"verl_codemod.{command}",
            *quiet,
            *options,
            *files,
        )
        restore = partial(scene.restore, tool)
        return Job(scene.name, name, argv, checkout, tool, _path(PEERS, scene.peers), restore)

    return [
        job("libcst codemod -u", "--unified-diff=3"),
        job("libcst codemod"),
        job("libcst codemod -j 1", "--jobs=1"),
        job("libcst codemod, lean", command=LEAN),
    ]


def _ast_grep(scene: Scene) -> list[Job]:
    tool = "ast-grep"

    def job(name: str, *options: str) -> Job:
        argv = (AST_GREP, "scan", "-r", str(scene.rules), *options, *scene.files)
        return Job(scene.name, name, argv, scene.checkouts[tool], tool, after=partial(scene.restore, tool))

    return [job("ast-grep scan"), job("ast-grep scan -U", "-U")]


def _inside(scene: Scene) -> list[list[Job]]:
    checkout = str(scene.checkouts["probepatch"])

    def job(name: str, module: str, *arguments: str) -> list[Job]:
        argv = (sys.executable, "-m", f"tests.bench.{module}", *arguments)
        return [Job(scene.name, name, argv, ROOT, env=_path(ROOT, PEERS, scene.peers), reports=True)]

    return [
        job("planning", "inside", "ours", checkout, scene.recipe),
        job("codemod", "inside", CODEMOD, checkout, str(scene.edits), *scene.files),
        job("codemod, lean", "inside", LEAN, checkout, str(scene.edits), *scene.files),
        job("stages", "stages", checkout, scene.recipe),
    ]


def _path(*folders: Path) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join(map(str, folders))}
