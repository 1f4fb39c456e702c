"""Reading the dumps of a large model on many ranks beside `json.load` of the same files, in a warm cache.

``python -m tests.bench.dumps`` measures this alone and prints it, as a section of docs/benchmarks.md. The dumps are written to a
temporary folder for it: 60 layers, 64 ranks, four steps, as msprobe writes
level L0.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from tests.bench.clock import Launcher, Results, Series
from tests.bench.jobs import ROOT
from tests.bench.scene import ENVIRONMENT
from tests.stages.dumps.synthetic import Model, write_ranks

LAYERS, RANKS, STEPS, TOKENS = 60, 64, 4, 190
SCENE = f"{LAYERS} layers x {RANKS} ranks x {STEPS} steps"
JSON, OURS, ONE, ENTRIES = "json.load", "outlines", "outlines, one process", "read_dump, one process"
_HEAD = "import sys; from pathlib import Path; files = sorted(Path(sys.argv[1]).glob('*/*/dump.json'))\n"
_OURS = (
    _HEAD + "from stages.dumps.outline import outlines\nassert {one.entries for one in outlines(files, %d)} == {%d}\n"
)
_EACH = (
    "from stages.dumps.reading import read_dump\nfor file in files:\n    assert len(read_dump(file).entries) == %d\n"
)
_LOAD = (
    "import json\nfor file in files:\n    with open(file) as text:\n        assert len(json.load(text)['data']) == %d\n"
)


def build(scratch: Path) -> tuple[dict[str, tuple[str, ...]], int]:
    """The jobs by name, and the bytes of the files that were written for them."""
    model = Model(LAYERS)
    files = write_ranks(scratch / "dump", model, TOKENS, RANKS)
    for step in range(1, STEPS):
        shutil.copytree(scratch / "dump" / "step0", scratch / "dump" / f"step{step}")
    count = sum(1 for _entry in model.entries(TOKENS))
    scripts = {JSON: _HEAD + _LOAD % count, OURS: _OURS % (2, count), ONE: _OURS % (1, count)}
    scripts[ENTRIES] = _HEAD + _EACH % count
    jobs = {name: (sys.executable, "-c", script, str(scratch / "dump")) for name, script in scripts.items()}
    return jobs, STEPS * sum(map(os.path.getsize, files))


def measure(launcher: Launcher, jobs: dict[str, tuple[str, ...]], count: int, step: Callable[[], None]) -> Results:
    """``count`` rounds after one that fills the cache. Raises JobFailed: every entry of every file was seen."""
    results: Results = defaultdict(Series)
    for number in range(count + 1):
        for name in list(jobs)[:: 1 if number % 2 else -1]:
            sample = launcher.run(jobs[name], ROOT, {"PYTHONPATH": str(ROOT)})
            if number:
                results[SCENE, name].samples.append(sample)
            step()
    return results


def section(results: Results, size: int) -> str:
    """The part of the page, with its heading."""
    plain, ours = results[SCENE, JSON], results[SCENE, OURS]
    rows = ""
    for (_scene, name), series in results.items():
        numbers = f"{series.wall:.2f}", f"{series.fastest:.2f}", f"{series.cpu:.2f}", f"{series.peak / 1e6:.0f}"
        beside = f"{series.wall / plain.wall:.2f}", f"{series.cpu / plain.cpu:.2f}"
        rows += "| " + " | ".join((name, *numbers, *beside)) + " |\n"
    rounds, load = len(ours.samples), f"{os.getloadavg()[0]:.1f}"
    return f"""## Dumps

`dumps verify` reads the dump.json of every rank: {SCENE}, {size / 1e6:.0f} MB, beside `json.load` of the same files one
after the other, in the page cache; Python's start and imports are in it. The peak is that of the largest process. Medians of
{rounds} rounds of whole processes; a load of {load} at their end. Outlines: {ours.wall / plain.wall:.2f}x of `json.load`, and
{ours.peak / 1e6:.0f} MB.

|  | wall, s | fastest, s | CPU, s | peak, MB | wall / json.load | CPU / json.load |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
{rows}"""


@click.command
@click.option("--rounds", "count", default=5, show_default=True)
def main(count: int) -> None:
    """Measure this part alone, and print it."""
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="probepatch-bench-") as folder, Progress(console=console) as progress:
        scratch = Path(folder).resolve()
        jobs, size = build(scratch)
        task = progress.add_task("dumps", total=len(jobs) * (count + 1))
        with Launcher(scratch, ENVIRONMENT) as launcher:
            results = measure(launcher, jobs, count, lambda: progress.advance(task))
    click.echo(section(results, size))


if __name__ == "__main__":
    main(prog_name="python -m tests.bench.dumps")
