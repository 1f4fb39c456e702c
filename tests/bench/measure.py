"""One run: everything once to see that the tools agree (which warms all caches), then round after round."""

from __future__ import annotations

import json
import os
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from tests.bench.clock import Launcher, Results, Sample, Series
from tests.bench.equal import Likeness, compare
from tests.bench.jobs import ROOT, Job, diff
from tests.bench.scene import Scene

Stages = Mapping[str, Mapping[str, Sequence[float]]]
"""CPU seconds by release and stage, one for each round."""

PEERS = {
    "codemod": "libcst codemod",
    "lean codemod": "libcst codemod, lean",
    "ast-grep": "ast-grep scan -U",
    "git apply": "git apply",
}


def keep_patch(launcher: Launcher, scene: Scene) -> None:
    """What `diff --patch` prints, for `git apply`."""
    launcher.run([*diff(scene).argv, "--patch"], ROOT, {}, keep_output=True)
    scene.patch.write_bytes(launcher.output())


def agree(launcher: Launcher, scenes: Sequence[Scene], todo: Sequence[Sequence[Job]]) -> dict[str, dict[str, Likeness]]:
    """Run every job once and compare what the tools wrote, by release and tool. Raises NotTheSame, SyntaxError, JobFailed."""
    wrote: dict[tuple[str, str], dict[str, bytes]] = {}
    known = {scene.name: scene for scene in scenes}
    for job in (job for group in todo for job in group):
        launcher.run(job.argv, job.cwd, job.env)
        if job.scene in known and job.tool:
            wrote[job.scene, job.name] = known[job.scene].texts(job.tool)
        if job.after:
            job.after()
    return {
        scene.name: {
            tool: compare(tool, scene.pristine, wrote[scene.name, "apply"], wrote[scene.name, name])
            for tool, name in PEERS.items()
        }
        for scene in scenes
    }


def rounds(
    launcher: Launcher, todo: Sequence[Sequence[Job]], count: int, step: Callable[[], None]
) -> tuple[Results, Stages, list[float]]:
    """``count`` rounds, the groups of each in an order of its own. Gives also the load averages of the last minute."""
    results: Results = defaultdict(Series, {(job.scene, job.name): Series() for group in todo for job in group})
    stages: dict[str, dict[str, list[float]]] = {}
    load = [os.getloadavg()[0]]
    for number in range(count):
        for job in _shuffled(todo, number):
            sample = launcher.run(job.argv, job.cwd, job.env, keep_output=job.reports)
            if job.reports:
                answer = json.loads(launcher.output())
                sample = Sample(**answer["work"])
                for stage, seconds in answer.get("stages", {}).items():
                    stages.setdefault(job.scene, {}).setdefault(stage, []).append(seconds)
            results[job.scene, job.name].samples.append(sample)
            if job.after:
                job.after()
            step()
        load.append(os.getloadavg()[0])
    return results, stages, load


def _shuffled(todo: Sequence[Sequence[Job]], seed: int) -> Iterator[Job]:
    order = list(todo)
    random.Random(seed).shuffle(order)
    return (job for group in order for job in group)
