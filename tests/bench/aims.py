"""What the project set itself, and whether the numbers say so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.bench.clock import Results, Series

NEAR = 0.1  # seconds above Python's own start
FREE = 1.1  # a tree is free while diff takes no more than this times as long

Measure = Callable[[Callable[[Series], float]], Mapping[str, float]]
"""From what a series says (its median, its fastest) to a figure for each release."""


@dataclass(frozen=True)
class Aim:
    """``median`` and ``fastest`` are the figures in words, by release; ``met`` goes by the medians. ``why`` says what stands in the
    way of an aim that is missed, where it is not the stages of diff."""

    what: str
    median: str
    fastest: str
    met: bool
    why: str


def judge(results: Results, releases: Sequence[str], crowd: str) -> list[Aim]:
    """All aims, on wall time."""

    def beside(slow: str, fast: str) -> Measure:
        return lambda of: {name: of(results[name, slow]) / of(results[name, fast]) for name in releases}

    def above_libcst(of: Callable[[Series], float]) -> Mapping[str, float]:
        return {name: of(results[name, "diff"]) / of(results["", "import libcst"]) for name in releases}

    def above_start(job: str) -> Measure:
        return lambda of: {name: of(results[name, job]) - of(results["", "python -c pass"]) for name in releases}

    def grown(of: Callable[[Series], float]) -> Mapping[str, float]:
        alone, _plus, _count = crowd.partition(" + ")
        return {alone: of(results[crowd, "diff"]) / of(results[alone, "diff"])}

    def busy(job: str) -> str:
        start = results["", "python -c pass"].cpu
        cpu = " and ".join(f"{(results[name, job].cpu - start) * 1000:.0f} ms" for name in releases)
        return f"{cpu} of it are CPU time, most of that imports; the rest is waiting: for the disk, for git, for a CPU."

    others = f"{int(crowd.rpartition(' ')[2]):,}"
    return [
        _aim("planning 8x faster than the codemod, imports apart", beside("codemod", "planning"), "", least=8),
        _aim("`diff` 4x faster than the codemod command", beside("libcst codemod -u", "diff"), "", least=4),
        _aim('`diff` within 3x of `python -c "import libcst"`', above_libcst, "", most=3),
        _aim(f"`status` within {NEAR:.1f} s of Python's own start", above_start("status"), busy("status"), most=NEAR),
        _aim(f"`revert` within {NEAR:.1f} s of Python's own start", above_start("revert"), busy("revert"), most=NEAR),
        _aim(f"`diff` costs the same among {others} other files", grown, "git's index is read whole.", most=FREE),
    ]


def _aim(what: str, measure: Measure, why: str, least: float = 0.0, most: float = float("inf")) -> Aim:
    words = _seconds if most == NEAR else _times
    median, fastest = measure(lambda series: series.wall), measure(lambda series: series.fastest)
    met = all(least <= value <= most for value in median.values())
    return Aim(what, words(median), words(fastest), met, why)


def _times(found: Mapping[str, float]) -> str:
    return ", ".join(f"{ratio:.2f}x on {release}" for release, ratio in found.items())


def _seconds(found: Mapping[str, float]) -> str:
    return ", ".join(f"{seconds:+.3f} s on {release}" for release, seconds in found.items())
