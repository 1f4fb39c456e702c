"""Writes docs/record-backtest.md: every shipped recipe, applied, recorded without its help, and applied again from the record.

python -m tests.authoring.record_backtest [FRAMEWORK…]       released wheels, cached in PROBEPATCH_CACHE
PROBEPATCH_CORPUS=FOLDER python -m …                         slime's checkouts, too: FOLDER/slime/v0.2.0, …

A release is unpacked and committed to git, the recipe applied by the real command line, our marker comments are taken off, and
`recipe record` is given that tree and nothing else. Then the tree goes back to its commit and the recorded recipe is applied:
every file has to be what it was with the shipped one.
"""

from __future__ import annotations

import datetime
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rich.progress import track

from codemods.catalogue import catalogue
from codemods.recipe import Heading
from tests.catalogue.support import ROOT, releases, run, unpack

_MARKER = re.compile(rb"  # probepatch: (?!parameters)[^\s]+(?=\r?$)", re.MULTILINE)
_LINE = re.compile(rb"^[ \t]*# probepatch: [^\s]+\r?\n", re.MULTILINE)
_JOBS = 2
_GIT = ["git", "-c", "user.name=A Tester", "-c", "user.email=tester@example.invalid", "-c", "core.autocrlf=false"]


@dataclass(frozen=True)
class Cell:
    """One recipe on one release: the recorded ``verbs``, and what went wrong, if anything did. ``shipped`` counts its own edits."""

    recipe: str
    version: str
    shipped: int = 0
    verbs: tuple[str, ...] = ()
    fault: str = ""


def git(tree: Path, *arguments: str) -> str:
    return subprocess.run([*_GIT, *arguments], cwd=tree, check=True, capture_output=True, text=True).stdout


def commit(tree: Path) -> None:
    """The tree as the one commit of a repository."""
    git(tree, "init", "-q")
    git(tree, "add", "-A", "-f")
    git(tree, "commit", "-q", "-m", "pristine")


def pristine(tree: Path) -> None:
    """Back to the commit, without a ledger."""
    git(tree, "reset", "-q", "--hard")
    git(tree, "clean", "-q", "-f", "-d", "-x")
    shutil.rmtree(tree / ".git" / "probepatch", ignore_errors=True)


def strip_markers(tree: Path) -> None:
    """Take our comments off every changed file, so that the recorder has no help."""
    for name, data in _changed(tree).items():
        (tree / name).write_bytes(_MARKER.sub(b"", _LINE.sub(b"", data)))


def back_and_forth(recipe: str, tree: Path, version: str, folder: Path) -> Cell:
    """Apply, strip, record, reset, apply what was recorded. The tree is a git checkout, and pristine afterwards."""
    applied = run("apply", tree, "--recipe", recipe)
    if applied.returncode:
        return Cell(recipe, version, fault="apply: " + json.loads(applied.stdout)["error"]["what"])
    shipped = len(json.loads(run("status", tree).stdout)["edits"])
    strip_markers(tree)
    wanted = _changed(tree)
    out = folder / f"{recipe}-{version}.yaml"
    recorded = run("recipe", "record", tree, "--out", out, "--overwrite")
    pristine(tree)
    answer = json.loads(recorded.stdout)
    if recorded.returncode:
        found = answer.get("findings") or [answer["error"]]
        return Cell(recipe, version, shipped, fault=f"record: {found[0]['where']}: {found[0]['what']}")
    verbs = tuple(edit["verb"] for edit in answer["edits"])
    tested = run("recipe", "test", out)
    again = run("apply", tree, "--recipe-file", out)
    made = _changed(tree)
    pristine(tree)
    if again.returncode:
        return Cell(recipe, version, shipped, verbs, "apply the record: " + json.loads(again.stdout)["error"]["what"])
    if made != wanted:
        wrong = sorted(path for path in {*made, *wanted} if made.get(path) != wanted.get(path))
        return Cell(recipe, version, shipped, verbs, "other bytes: " + ", ".join(wrong))
    return Cell(recipe, version, shipped, verbs, "" if tested.returncode == 0 else "its example fails")


def _changed(tree: Path) -> dict[str, bytes]:
    """The files that differ from the commit, new ones included."""
    names = git(tree, "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames").split("\0")
    return {name[3:]: (tree / name[3:]).read_bytes() for name in names if name}


def cells(framework: str, version: str, only: Sequence[str] = ()) -> Iterator[Cell]:
    recipes: list[Heading] = [recipe for recipe in catalogue(framework) if version in recipe.verified]
    with tempfile.TemporaryDirectory() as folder:
        tree = unpack(framework, version, Path(folder, "tree"))
        shutil.rmtree(tree / ".git", ignore_errors=True)
        commit(tree)
        for recipe in recipes:
            if not only or recipe.id in only:
                yield back_and_forth(recipe.id, tree, version, Path(folder))


def page(found: Sequence[Cell], missing: Sequence[str]) -> str:
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    equal = sum(not cell.fault for cell in found)
    lines = [
        "# Recording what the shipped recipes do",
        "",
        "Written by `python -m tests.authoring.record_backtest`. Each recipe was applied to each release by the real command line,",
        "our marker comments were taken off, `probepatch recipe record` got that tree and nothing else, and what it recorded was",
        "applied to the pristine release: *equal* is said only when every file then has the same bytes as with the shipped recipe,",
        "and when the recorded examples pass `recipe test`.",
        "",
        f"Run on {datetime.date.today().isoformat()} at commit {head.stdout.strip()}: {equal} of {len(found)} equal.",
        "",
        "| recipe | versions | edits: shipped, recorded | verbs recorded | |",
        "| --- | --- | --- | --- | --- |",
    ]
    rows: dict[tuple[str, int, tuple[tuple[str, int], ...], str], list[str]] = {}
    for cell in found:
        verbs = tuple(sorted(Counter(cell.verbs).items()))
        rows.setdefault((cell.recipe, cell.shipped, verbs, cell.fault), []).append(cell.version)
    for (recipe, shipped, verbs, fault), versions in sorted(rows.items()):
        said = ", ".join(f"{verb} {count}" for verb, count in verbs)
        total = sum(count for _verb, count in verbs)
        lines.append(f"| `{recipe}` | {', '.join(versions)} | {shipped}, {total} | {said} | {fault or 'equal'} |")
    if missing:
        lines += ["", "Not had from the package registry: " + ", ".join(missing) + "."]
    return "\n".join([*lines, ""])


def _all_cells(release: tuple[str, str]) -> list[Cell] | None:
    """None for a release that cannot be had."""
    try:
        found = list(cells(*release))
    except (AssertionError, StopIteration, FileNotFoundError):
        return None
    for cell in found:
        print(f"{cell.recipe} {cell.version}: {cell.fault or 'equal'}", flush=True)
    return found


def main(frameworks: Sequence[str]) -> int:
    wanted = [one for one in releases() if one[1] != "main" and (not frameworks or one[0] in frameworks)]
    with ThreadPoolExecutor(_JOBS) as pool:  # the work is done by processes
        results = list(track(pool.map(_all_cells, wanted), "releases", len(wanted)))
    found = [cell for result in results for cell in result or ()]
    missing = [" ".join(release) for release, result in zip(wanted, results, strict=True) if result is None]
    if frameworks:
        print(page(found, missing))
    else:
        (ROOT / "docs" / "record-backtest.md").write_text(page(found, missing), encoding="utf-8")
    return 1 if any(cell.fault for cell in found) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
