"""Recipes by version: `recipe matrix` beside unpacking every version and running `diff` on it.

``python -m tests.bench.versions`` measures this part alone, and puts it into docs/benchmarks.md in the place of the last one.
``PROBEPATCH_CORPUS`` names slime's repository, or a folder that holds it as ``slime.git``; without it that half is left out.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from authoring.matrix.releases import Release, framework_of, from_tags, from_wheels
from authoring.trees import open_repository
from codemods.catalogue import Framework, catalogue
from codemods.errors import UsageError
from codemods.recipe import Heading
from codemods.recipe_reader import load_recipe
from tests.bench.clock import Launcher, Results, Series
from tests.bench.jobs import ROOT
from tests.bench.scene import ENVIRONMENT
from tests.verl.wheels import wheel

PAGE = ROOT / "docs" / "benchmarks.md"
HEADING = "## Recipes by version"
WHEELS = ("0.4.1", "0.5.0", "0.6.0", "0.6.1", "0.7.0", "0.7.1", "0.8.0", "0.9.0", "0.9.1")
MATRIX, ONE_BY_ONE = "recipe matrix", "unpack and diff, one by one"
NO_SLIME = "slime's tags are left out: PROBEPATCH_CORPUS names no repository of it"


@dataclass(frozen=True)
class Story:
    """``diffs`` counts the pairs of a recipe and a version of its range, ``versions`` what they are in. ``jobs`` by name."""

    name: str
    recipes: tuple[str, ...]
    versions: int
    diffs: int
    jobs: dict[str, tuple[str, ...]]


def stories(scratch: Path) -> list[Story]:
    """Both, or verl's alone where there is no repository of slime."""
    paths = [wheel("verl", version) for version in WHEELS]
    options = tuple(part for path in paths for part in ("--wheels", str(path)))
    verl = [recipe for recipe in catalogue("verl") if recipe.id in ("verl-engine-fsdp", "verl-legacy-fsdp")]
    found = [_story("verl", verl, options, from_wheels(paths, _framework(verl)), scratch)]
    repo = slime()
    if repo is not None:
        recipes = catalogue("slime")
        releases = from_tags(open_repository(repo), ["*"], _framework(recipes))
        found.append(_story("slime", recipes, ("--repo", str(repo)), releases, scratch))
    return found


def _framework(recipes: Sequence[Heading]) -> Framework:
    return framework_of([load_recipe(recipe.path) for recipe in recipes])


def slime() -> Path | None:
    corpus = os.environ.get("PROBEPATCH_CORPUS")
    for path in (Path(corpus) / "slime.git", Path(corpus)) if corpus else ():
        try:
            open_repository(path)
        except UsageError:
            continue
        return path.resolve()
    return None


def _story(
    framework: str, recipes: Sequence[Heading], options: Sequence[str], releases: Sequence[Release], scratch: Path
) -> Story:
    ids = tuple(recipe.id for recipe in recipes)
    todo = []
    for release in releases:
        wanted = [recipe.id for recipe in recipes if release.version in recipe.versions]
        todo.append({"source": release.source, "recipes": wanted})
    plan = scratch / f"{framework}.json"
    repo = options[1] if options[0] == "--repo" else None
    plan.write_text(json.dumps({"repo": repo, "versions": [item for item in todo if item["recipes"]]}))
    jobs = {
        MATRIX: (sys.executable, "-m", "probepatch", "recipe", "matrix", *ids, *options, "--in-range", "--json"),
        ONE_BY_ONE: (sys.executable, "-m", "tests.bench.one_by_one", str(plan), str(scratch)),
    }
    kind = f"{framework}, {len(releases)} {'tags' if repo else 'wheels'}"
    diffs = sum(len(item["recipes"]) for item in todo)
    return Story(kind, ids, sum(bool(item["recipes"]) for item in todo), diffs, jobs)


def measure(launcher: Launcher, found: Sequence[Story], count: int, step: Callable[[], None]) -> Results:
    """``count`` rounds after one that warms up. Every job ends with 0: both ways say that every edit fits. Raises JobFailed."""
    results: Results = defaultdict(Series)
    for number in range(count + 1):
        for story in found:
            for name in (MATRIX, ONE_BY_ONE) if number % 2 else (ONE_BY_ONE, MATRIX):
                sample = launcher.run(story.jobs[name], ROOT, {})
                if number:
                    results[story.name, name].samples.append(sample)
                step()
    return results


def jobs_of(found: Sequence[Story], count: int) -> int:
    return 2 * len(found) * (count + 1)


def lines(found: Sequence[Story], results: Results) -> list[tuple[str, ...]]:
    rows = []
    for story in found:
        ours = results[story.name, MATRIX]
        for name in (MATRIX, ONE_BY_ONE):
            series = results[story.name, name]
            times = f"{series.wall / ours.wall:.1f}", f"{series.cpu / ours.cpu:.1f}"
            rows.append((f"{story.name}, {name}", f"{series.wall:.2f}", f"{series.cpu:.2f}", *times))
    return rows


def section(found: Sequence[Story], results: Results) -> str:
    """The part of the page, with its heading."""
    rounds = min(len(series.samples) for series in results.values())
    what = "; ".join(
        f"{' and '.join(f'`{recipe}`' for recipe in story.recipes)} on {story.name}: {story.diffs} diffs in {story.versions} trees"
        for story in found
    )
    table = "|  | wall, s | CPU, s | wall / matrix | CPU / matrix |\n| --- | ---: | ---: | ---: | ---: |\n"
    table += "".join("| " + " | ".join(row) + " |\n" for row in lines(found, results))
    left_out = "" if slime() else f"\n{NO_SLIME}.\n"
    return f"""{HEADING}

`recipe matrix` reads git's objects or the wheels where they are and plans every distinct blob once, in as many processes as
there are CPUs. Beside it: every version unpacked (`git archive`, or the whole wheel) and `diff` run on it for each recipe that is
for that version, one after the other. Both make the same pairs ({what}), and end with 0 only when every edit fits. Medians of
{rounds} rounds of whole processes; a load of {os.getloadavg()[0]:.1f} at their end, so read CPU first.

{table}{left_out}"""


@click.command
@click.option("--rounds", "count", default=5, show_default=True)
def main(count: int) -> None:
    """Measure this part alone and put it into the page."""
    console = Console()
    if slime() is None:
        console.print(NO_SLIME)
    with tempfile.TemporaryDirectory(prefix="probepatch-bench-") as folder, Progress(console=console) as progress:
        scratch = Path(folder).resolve()
        found = stories(scratch)
        task = progress.add_task("versions", total=jobs_of(found, count))
        with Launcher(scratch, ENVIRONMENT) as launcher:
            results = measure(launcher, found, count, lambda: progress.advance(task))
    for row in lines(found, results):
        console.print("  ".join(row), highlight=False)
    text = PAGE.read_text(encoding="utf-8")
    text = re.sub(rf"{HEADING}\n.*?(?=^## )", "", text, flags=re.DOTALL | re.MULTILINE)
    PAGE.write_text(
        text.replace("## Is it the same work?", section(found, results) + "\n## Is it the same work?"), encoding="utf-8"
    )


if __name__ == "__main__":
    main(prog_name="python -m tests.bench.versions")
