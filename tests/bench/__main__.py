"""``python -m tests.bench``: measure, print, and write docs/benchmarks.md."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tests.bench import versions, weights
from tests.bench.aims import judge
from tests.bench.clock import Launcher
from tests.bench.jobs import AST_GREP, ROOT, groups
from tests.bench.machine import describe
from tests.bench.measure import agree, keep_patch, rounds
from tests.bench.page import COLUMNS, Report, rows, write
from tests.bench.scene import CROWD, ENVIRONMENT, RELEASES, build

PAGE = ROOT / "docs" / "benchmarks.md"
CROWDED = "0.9.1"


@click.command
@click.option("--rounds", "count", default=15, show_default=True, help="how often everything is measured")
@click.option("--quick", is_flag=True, help="three rounds and a smaller crowd; the page is not written")
def main(count: int, quick: bool) -> None:
    """Measure probepatch beside LibCST's codemod command, ast-grep and git."""
    git = shutil.which("git", path=ENVIRONMENT["PATH"])
    if git is None or not Path(AST_GREP).is_file():
        raise click.ClickException("git and ast-grep are needed: pip install -e '.[dev]'")
    console = Console()
    report = _run(console, git, 3 if quick else count, CROWD // 10 if quick else CROWD)
    _show(console, report)
    if not quick:
        PAGE.write_text(write(report), encoding="utf-8")
        console.print(f"written: {PAGE.relative_to(ROOT)}")


def _run(console: Console, git: str, count: int, crowd_size: int) -> Report:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with (
        tempfile.TemporaryDirectory(prefix="probepatch-bench-") as folder,
        Progress(*columns, console=console) as progress,
    ):
        scratch = Path(folder).resolve()
        task = progress.add_task("checkouts", total=len(RELEASES) + 1)
        scenes = []
        for version in RELEASES:
            scenes.append(build(version, scratch))
            progress.advance(task)
        crowd = build(CROWDED, scratch, tools=("probepatch",), crowd=crowd_size)
        progress.advance(task)
        todo = groups(scenes, crowd, git)
        with Launcher(scratch, ENVIRONMENT) as launcher:
            for scene in (*scenes, crowd):
                keep_patch(launcher, scene)
            task = progress.add_task("do the tools agree?", total=1)
            likeness = agree(launcher, scenes, todo)
            progress.advance(task)
            task = progress.add_task("measuring", total=count * sum(map(len, todo)))
            results, stages, load = rounds(launcher, todo, count, lambda: progress.advance(task))
            by_version = versions.stories(scratch)
            fewer = max(count // 3, 1)
            task = progress.add_task("versions", total=versions.jobs_of(by_version, fewer))
            found = versions.measure(launcher, by_version, fewer, lambda: progress.advance(task))
            task = progress.add_task("weights", total=4 * (fewer + 1))
            of_weights = weights.measure(launcher, weights.build(scratch), fewer, lambda: progress.advance(task))
    aims = judge(results, [scene.name for scene in scenes], crowd.name)
    parts = versions.section(by_version, found), weights.section(of_weights)
    return Report(describe(git), count, load, RELEASES, crowd.name, results, stages, likeness, aims, *parts)


def _show(console: Console, report: Report) -> None:
    for scene in (*report.releases, report.crowd):
        grid = Table(title=f"verl {scene}", title_justify="left")
        for number, heading in enumerate(COLUMNS):
            grid.add_column(heading, justify="right" if number else "left")
        for row in rows(report, scene):
            grid.add_row(*row)
        console.print(grid)
    console.print(report.versions, report.weights, markup=False)
    grid = Table(title="aims", title_justify="left")
    for heading in ("aim", "median", "fastest", ""):
        grid.add_column(heading)
    for aim in report.aims:
        grid.add_row(aim.what, aim.median, aim.fastest, "[green]met[/]" if aim.met else "[bold red]missed[/]")
    console.print(grid)


if __name__ == "__main__":
    main(prog_name="python -m tests.bench")
