"""`params weights` beside `cmp` on the same files, in a warm cache.

``python -m tests.bench.weights`` measures this part alone, and puts it into docs/benchmarks.md in the place of the last one. Two
checkpoints of 2 GB are written to a temporary folder for it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
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

PAGE = ROOT / "docs" / "benchmarks.md"
HEADING = "## Weights"
SHARDS, TENSORS, EACH = 2, 16, 64 << 20  # files, tensors of each, bytes of each: 2 GiB
SCENE = "2 GiB"
OURS, ONE_THREAD, CMP, OTHER = (
    "params weights",
    "params weights, one thread",
    "cmp",
    "params weights, a tensor of 32 differs",
)


def build(scratch: Path) -> dict[str, tuple[str, ...]]:
    """The jobs by name, after their files were written."""
    sides = [scratch / name for name in ("train", "infer", "other")]
    sides[0].mkdir()
    where = {}
    for number in range(SHARDS):
        file = f"model-{number}.safetensors"
        names = [f"model.layers.{number}.{at}.weight" for at in range(TENSORS)]
        where |= dict.fromkeys(names, file)
        head = {
            name: {"dtype": "BF16", "shape": [EACH >> 13, 4096], "data_offsets": [at * EACH, (at + 1) * EACH]}
            for at, name in enumerate(names)
        }
        text = json.dumps(head).encode()
        with (sides[0] / file).open("wb") as out:
            out.write(len(text).to_bytes(8, "little") + text)
            for _name in names:
                out.write(os.urandom(EACH))
    (sides[0] / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    for side in sides[1:]:
        shutil.copytree(sides[0], side)
    with (sides[2] / "model-0.safetensors").open("r+b") as out:
        out.seek(-EACH, os.SEEK_END)
        out.write(os.urandom(EACH))
    ours = (sys.executable, "-m", "probepatch", "params", "weights", "--train", str(sides[0]), "--infer")
    files = [
        f"cmp {shlex.quote(str(sides[0] / name))} {shlex.quote(str(sides[1] / name))}"
        for name in sorted(set(where.values()))
    ]
    return {
        OURS: (*ours, str(sides[1])),
        ONE_THREAD: (*ours, str(sides[1]), "--threads", "1"),
        CMP: ("/bin/sh", "-c", " && ".join(files)),
        OTHER: ("/bin/sh", "-c", f"{shlex.join((*ours, str(sides[2])))}; test $? = 1"),
    }


def measure(launcher: Launcher, jobs: dict[str, tuple[str, ...]], count: int, step: Callable[[], None]) -> Results:
    """``count`` rounds after one that fills the cache. Raises JobFailed: `params weights` says EXACT, and of the other one not."""
    results: Results = defaultdict(Series)
    for number in range(count + 1):
        for name in list(jobs)[:: 1 if number % 2 else -1]:
            sample = launcher.run(jobs[name], ROOT, {})
            if number:
                results[SCENE, name].samples.append(sample)
            step()
    return results


def lines(results: Results) -> list[tuple[str, ...]]:
    cmp = results[SCENE, CMP]
    rows = []
    for (_scene, name), series in results.items():
        beside = f"{series.wall / cmp.wall:.2f}", f"{series.cpu / cmp.cpu:.2f}"
        rows.append(
            (
                name,
                f"{series.wall:.2f}",
                f"{series.fastest:.2f}",
                f"{series.cpu:.2f}",
                f"{series.peak / 1e6:.0f}",
                *beside,
            )
        )
    return rows


def section(results: Results) -> str:
    """The part of the page, with its heading."""
    series = results[SCENE, OURS]
    rounds, load = len(series.samples), f"{os.getloadavg()[0]:.1f}"
    ratio, peak = series.wall / results[SCENE, CMP].wall, series.peak / 1e6
    met = "met" if ratio <= 2 and peak < 1000 else "**missed**"
    headings = "|  | wall, s | fastest, s | CPU, s | peak, MB | wall / cmp | CPU / cmp |"
    table = f"{headings}\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    table += "".join("| " + " | ".join(row) + " |\n" for row in lines(results))
    return f"""{HEADING}

`params weights` on two equal checkpoints of 2 GiB (two shards with an index, {SHARDS * TENSORS} BF16 tensors) beside `cmp`
on the same files, all of them in the page cache; Python's start and imports are in it. The last line compares with a checkpoint
in which one tensor is another one, without numpy. Medians of {rounds} rounds of whole processes; a load of {load} at their end.
Aim: within 2x of `cmp`, with less than 1 GB of memory: {ratio:.2f}x and {peak:.0f} MB, {met}.

{table}"""


def put(text: str, part: str) -> str:
    """The page with this part in the place of the last one, or before its last section."""
    text = re.sub(rf"{HEADING}\n.*?(?=^## )", "", text, flags=re.DOTALL | re.MULTILINE)
    return text.replace("## Is it the same work?", part + "\n## Is it the same work?")


@click.command
@click.option("--rounds", "count", default=5, show_default=True)
def main(count: int) -> None:
    """Measure this part alone and put it into the page."""
    console = Console()
    with tempfile.TemporaryDirectory(prefix="probepatch-bench-") as folder, Progress(console=console) as progress:
        scratch = Path(folder).resolve()
        jobs = build(scratch)
        task = progress.add_task("weights", total=len(jobs) * (count + 1))
        with Launcher(scratch, ENVIRONMENT) as launcher:
            results = measure(launcher, jobs, count, lambda: progress.advance(task))
    for row in lines(results):
        console.print("  ".join(row), highlight=False)
    PAGE.write_text(put(PAGE.read_text(encoding="utf-8"), section(results)), encoding="utf-8")


if __name__ == "__main__":
    main(prog_name="python -m tests.bench.weights")
