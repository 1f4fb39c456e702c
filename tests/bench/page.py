"""docs/benchmarks.md, written from the numbers of one run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from string import Template

from tests.bench.aims import Aim
from tests.bench.clock import Results, Series
from tests.bench.equal import Likeness
from tests.bench.jobs import INSIDE

TEXT = Path(__file__).with_name("page.md")
COLUMNS = ("command", "wall, ms", "fastest, ms", "CPU, ms", "peak, MB", "wall / diff")
START = ("", "python -c pass")
AT_EXIT = "taking everything down at exit, and what no clock saw"


@dataclass(frozen=True)
class Report:
    """One run of the benchmark. ``releases`` maps verl's versions to recipes; ``load`` are load averages over a minute, from before
    the first round to after the last; ``versions`` and ``weights`` are parts of the page that were written already."""

    machine: Mapping[str, str]
    rounds: int
    load: Sequence[float]
    releases: Mapping[str, str]
    crowd: str
    results: Results
    stages: Mapping[str, Mapping[str, Sequence[float]]]
    likeness: Mapping[str, Mapping[str, Likeness]]
    aims: Sequence[Aim]
    versions: str
    weights: str

    @property
    def alone(self) -> str:
        """The release that the crowd stands around."""
        return self.crowd.partition(" ")[0]


def rows(report: Report, scene: str) -> Iterator[tuple[str, ...]]:
    """The table of one scene, with the two bare starts of Python below."""
    keys = [key for key in report.results if key[0] == scene and key[1] not in INSIDE]
    base = report.results[scene, "diff"].wall
    for key in (*keys, *(key for key in report.results if key[0] == "")):
        series = report.results[key]
        yield (key[1], *_figures(series), f"{series.wall / base:.2f}")


def _figures(series: Series) -> tuple[str, ...]:
    return _ms(series.wall), _ms(series.fastest), _ms(series.cpu), f"{series.peak / 1e6:.0f}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f}"


def table(headings: Sequence[str], lines: Iterable[Sequence[str]], numbers: bool = True) -> str:
    """A Markdown table; numbers stand to the right."""
    rule = (" ---: |" if numbers else " --- |") * (len(headings) - 1)
    text = "| " + " | ".join(headings) + " |\n| --- |" + rule + "\n"
    return text + "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def write(report: Report) -> str:
    """The whole page."""
    smallest = min(series.peak for series in report.results.values() if series.peak)
    labels = {**report.machine, "rounds": str(report.rounds), "load": _load(report.load)}
    return Template(TEXT.read_text(encoding="utf-8")).substitute(
        machine="".join(f"- {label}: {text}\n" for label, text in labels.items()),
        recipes=", ".join(f"`{recipe}` on {version}" for version, recipe in report.releases.items()),
        floor=f"{smallest / 1e6:.0f}",
        aims=_aims(report),
        lean=_lean(report),
        inside=_inside(report),
        releases="\n".join(f"## verl {version}\n\n{_scene(report, version)}" for version in report.releases),
        crowd=f"{int(report.crowd.rpartition(' ')[2]):,}",
        alone=report.alone,
        crowded=_scene(report, report.crowd),
        grown=_grown(report),
        git=_git(report),
        shares=_shares(report),
        stages=_stages(report),
        versions=report.versions,
        weights=report.weights,
        likeness=_likeness(report),
    )


def _load(load: Sequence[float]) -> str:
    return f"{load[0]:.1f} before, {min(load):.1f} to {max(load):.1f} meanwhile (this benchmark alone makes 1.0)"


def _aims(report: Report) -> str:
    lines = [(aim.what, aim.median, aim.fastest, "met" if aim.met else "**missed**") for aim in report.aims]
    missed = "".join(f"- Missed: {aim.what}. {aim.why or _largest(report)}\n" for aim in report.aims if not aim.met)
    grid = table(("aim", "median", "fastest", ""), lines, numbers=False)
    return f"{grid}\n{missed}" if missed else grid


def _largest(report: Report) -> str:
    """The stages of diff that cost most on the release where it is slowest."""
    slowest = max(report.releases, key=lambda version: report.results[version, "diff"].wall)
    stages = {name: median(samples) for name, samples in report.stages[slowest].items()}
    largest = sorted(stages, key=lambda name: -stages[name])[:3]
    words = ", ".join(f"{name} {_ms(stages[name])} ms" for name in largest)
    return f"The largest stages of `diff` on {slowest}: {words}."


def _lean(report: Report) -> str:
    def beside(slow: str, fast: str) -> str:
        found = (report.results[version, slow].wall / report.results[version, fast].wall for version in report.releases)
        return " and ".join(f"{ratio:.1f}x" for ratio in found)

    planning, whole = beside("codemod, lean", "planning"), beside("libcst codemod, lean", "diff")
    subject = "Beside a codemod without LibCST's own import helper (*lean*, below)"
    return f"{subject} planning is {planning} faster, the whole process {whole}."


def _scene(report: Report, scene: str) -> str:
    return table(COLUMNS, [(f"`{job}`", *rest) for job, *rest in rows(report, scene)])


def _grown(report: Report) -> str:
    def more(job: str) -> float:
        return report.results[report.crowd, job].wall - report.results[report.alone, job].wall

    return ", ".join(
        f"`{job}` {more(job) * 1000:+.0f} ms" for job in ("diff", "apply", "status", "revert", "git status")
    )


def _inside(report: Report) -> str:
    lines = []
    for version in report.releases:
        ours = report.results[version, "planning"]
        for name, words in (("planning", "probepatch"), ("codemod", "codemod"), ("codemod, lean", "lean codemod")):
            series = report.results[version, name]
            beside = f"{series.wall / ours.wall:.1f}", f"{series.cpu / ours.cpu:.1f}"
            lines.append((f"verl {version}, {words}", _ms(series.wall), _ms(series.cpu), *beside))
    return table(("", "wall, ms", "CPU, ms", "wall / ours", "CPU / ours"), lines)


def _git(report: Report) -> str:
    start = report.results[START].wall
    lines = []
    for scene in (*report.releases, report.crowd):
        for ours, theirs in (("status", "git status"), ("revert", "git apply -R")):
            mine, git = report.results[scene, ours].wall, report.results[scene, theirs].wall
            lines.append((f"verl {scene}, `{ours}`", _ms(mine), _ms(mine - start), f"`{theirs}`", _ms(git)))
    return table(("", "wall, ms", "above Python's start, ms", "git's command", "wall, ms"), lines)


def _seconds(report: Report) -> dict[str, list[float]]:
    """CPU seconds of each stage, one for each release; together as much as the whole process takes."""
    stages = [report.stages[version] for version in report.releases]
    names = dict.fromkeys(name for one in stages for name in one)
    found = {name: [median(one.get(name, [0.0])) for one in stages] for name in names}
    found["Python's own start"] = [report.results[START].cpu] * len(stages)
    known = [sum(values) for values in zip(*found.values(), strict=True)]
    whole = [report.results[version, "diff"].cpu for version in report.releases]
    found[AT_EXIT] = [max(all_ - some, 0.0) for all_, some in zip(whole, known, strict=True)]
    return found


def _stages(report: Report) -> str:
    found = _seconds(report)
    ordered = sorted(found.items(), key=lambda item: -sum(item[1]))
    lines = [(name, *(f"{seconds * 1000:.1f}" for seconds in values)) for name, values in ordered]
    sums = (sum(values) for values in zip(*found.values(), strict=True))
    lines.append(("**together**", *(f"**{seconds * 1000:.1f}**" for seconds in sums)))
    return table(("stage", *(f"verl {version}, CPU ms" for version in report.releases)), lines)


def _shares(report: Report) -> str:
    found = {name: sum(values) for name, values in _seconds(report).items()}
    whole = sum(found.values())
    imports = sum(seconds for name, seconds in found.items() if name.startswith("import "))
    around = found["Python's own start"] + found[AT_EXIT]
    rest = whole - imports - around
    return f"Imports are {imports / whole:.0%} of it, Python's start and end {around / whole:.0%}, the work {rest / whole:.0%}."


def _likeness(report: Report) -> str:
    lines = [
        (f"{tool}, verl {version}", f"{like.same_bytes} of {like.files}", str(like.markers), str(like.blanks))
        for version, tools in report.likeness.items()
        for tool, like in tools.items()
    ]
    return table(("", "files equal byte for byte", "comments that name an edit", "white space in blank lines"), lines)
