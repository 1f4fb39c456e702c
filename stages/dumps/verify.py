"""Stage 7: dumps and logs of both sides -> everything that was found of them. Whether they are comparable is told in checks.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stages.dumps.association import associate
from stages.dumps.boundaries import Row, boundaries_of, side_by_side
from stages.dumps.causes import likely_causes
from stages.dumps.choosing import Candidate, Dumped, all_ranks, candidates, choose, step_problems
from stages.dumps.coverage import Coverage, cover
from stages.dumps.layout import find_folders
from stages.dumps.logprobs import Differences, prefill_differences
from stages.dumps.metrics import Metric, response_metrics
from stages.dumps.outline import Outline, outlines
from stages.dumps.places import Association
from stages.dumps.printed import Printed, check_printed, read_printed
from stages.dumps.problem import ERROR, WARNING, Problem
from stages.dumps.records import Records, rank_folders, read_records
from stages.dumps.request_ids import request_name
from stages.dumps.shapes import Pair, Verdict, compare, pair
from stages.dumps.situation import Cause, Situation
from stages.dumps.stamps import stamped, written_since
from stages.dumps.steps import Step, label_all
from stages.dumps.token_ids import Ids, read_ids
from stages.sides import INFER, TRAIN, Side, SideError

Progress = Callable[[str, int, int], None]
"""What is being read (train, infer, shapes), how many of how many."""
_EMPTYING = ("graph-mode", "near-empty", "no-modules")
"""Problems of a dump that is there and holds next to nothing."""


@dataclass(frozen=True)
class Source:
    """One side as it is given: where its dump is, and what is known of the run that made it."""

    dump_path: Path
    known: Situation
    version: str | None = None


@dataclass(frozen=True)
class Found:
    """Everything that was found of a capture; ``chosen`` None where there is nothing to lay side by side."""

    sources: Mapping[str, Source]
    steps: Mapping[str, Sequence[Step]]
    records: Mapping[str, Records]
    association: Association
    candidates: Sequence[Candidate]
    chosen: Candidate | None
    pairs: Sequence[Pair]
    verdict: Verdict
    coverage: Mapping[str, Coverage]
    rows: Sequence[Row]
    differences: Differences
    printed: Printed | None
    metrics: Mapping[str, Metric]
    causes: Mapping[str, tuple[Cause, ...]]
    problems: tuple[Problem, ...]

    def chosen_steps(self, side: str) -> list[Step]:
        return [one.train if side == TRAIN else one.infer for one in self.pairs]


def verify(
    sources: Mapping[str, Source],
    *,
    request: str | None = None,
    layers: int | None = None,
    processes: int = 2,
    progress: Progress = lambda what, done, total: None,
) -> Found:
    """``layers``: of the model, where that is known. Raises UsageError for a request that nobody logged; for what dumps and logs
    hold nothing is raised."""
    problems: list[Problem] = []
    records, steps = dict[str, Records](), dict[str, Sequence[Step]]()
    stamps = dict[Path, tuple[int, int] | None]()
    for side, source in sources.items():
        stamps |= stamped(log for folder in rank_folders(source.dump_path) for log in sorted(folder.glob("*.jsonl")))
        records[side] = read_records(source.dump_path, side)
        steps[side], more = _steps(side, source.dump_path, records[side], processes, progress, stamps)
        problems += [*more, *records[side].problems]
    association = associate(records[TRAIN].lines, records[INFER].lines)
    dumped = Dumped(steps)
    request = request_name(request) if request is not None else None
    found = candidates(association, dumped)
    chosen = choose(found, association, request, dumped)
    problems += [*association.problems, *step_problems(chosen, request, found, dumped)]
    pairs, apart = _pairs(chosen, records, dumped, sources) if chosen is not None else ((), ())
    verdict = compare(pairs, chosen.train.tokens if chosen is not None else None)
    coverage = {side: cover(_of_one_step(side, pairs, steps), layers) for side in sources}
    problems += [
        *apart,
        *(verdict.problems if pairs else ()),
        *(one for own in coverage.values() for one in own.problems),
    ]
    rows = _rows(pairs, processes, progress)
    logs = {line.path for own in records.values() for line in own.lines}
    logs |= {line.path for own in records.values() for line in own.prefills}
    problems += written_since(stamps, {*logs, *(step.folder.dump for one in pairs for step in (one.train, one.infer))})
    differences = prefill_differences(records[TRAIN].prefills, records[INFER].prefills)
    log = sources[TRAIN].known.log
    printed = read_printed(log) if log is not None else None
    problems += [*differences.problems, *(check_printed(printed, differences) if printed is not None else ())]
    metrics = response_metrics([log] if log is not None else [])
    causes = {
        side: _causes(source, records[side]) if _lacks(steps[side], coverage[side]) else ()
        for side, source in sources.items()
    }
    return Found(
        sources,
        steps,
        records,
        association,
        found,
        chosen,
        pairs,
        verdict,
        coverage,
        rows,
        differences,
        printed,
        metrics,
        causes,
        tuple(_ordered(problems, pairs, sources)),
    )


def _steps(
    side: str,
    dump_path: Path,
    records: Records,
    processes: int,
    progress: Progress,
    stamps: dict[Path, tuple[int, int] | None],
) -> tuple[tuple[Step, ...], list[Problem]]:
    folders, problems = find_folders(dump_path)
    stamps |= stamped(folder.dump for folder in folders)
    read: list[Outline] = []
    for one in outlines([folder.dump for folder in folders], processes):
        read.append(one)
        progress(side, len(read), len(folders))
    steps, more = label_all(folders, records.lines, read)
    return steps, [*problems, *(problem for one in read for problem in one.problems), *more]


def _pairs(
    chosen: Candidate, records: Mapping[str, Records], dumped: Dumped, sources: Mapping[str, Source]
) -> tuple[tuple[Pair, ...], tuple[Problem, ...]]:
    """The request's steps, rank by rank, with the hashes of what went in, where the side's interpreter can tell them."""
    own = {}
    for side, place in ((TRAIN, chosen.train), (INFER, chosen.infer)):
        lines = all_ranks(place, records[side].lines)
        own[side] = [step for line in lines if (step := dumped.of(line)) is not None]
    pairs, problems = pair(own[TRAIN], own[INFER])
    train = _ids(sources[TRAIN].known.side, [one.train for one in pairs])
    infer = _ids(sources[INFER].known.side, [one.infer for one in pairs])
    read = (replace(one, train_ids=mine, infer_ids=other) for one, mine, other in zip(pairs, train, infer, strict=True))
    return tuple(read), problems


def _ids(side: Side | None, steps: Sequence[Step]) -> list[Ids | None]:
    if side is None or not any(step.outline.task == "tensor" for step in steps):
        return [None] * len(steps)
    try:
        return list(read_ids(side, steps))
    except SideError as error:
        return [Ids(error=error.what)] * len(steps)


def _of_one_step(side: str, pairs: Sequence[Pair], steps: Mapping[str, Sequence[Step]]) -> list[Outline]:
    """The chosen step on all its ranks; where none was chosen, the first step that holds anything."""
    own = [one.train if side == TRAIN else one.infer for one in pairs]
    own = own or [step for step in steps[side] if not step.outline.empty]
    return [step.outline for step in steps[side] if own and _where(step) == _where(own[0])]


def _where(step: Step) -> tuple[str, int]:
    return step.folder.above, step.folder.step


def _rows(pairs: Sequence[Pair], processes: int, progress: Progress) -> list[Row]:
    read = boundaries_of((step.folder.dump for one in pairs for step in (one.train, one.infer)), processes)
    rows: list[Row] = []
    for number, one in enumerate(pairs):
        rows += side_by_side(next(read), next(read), (one.train.folder.process, one.infer.folder.process))
        progress("shapes", number + 1, len(pairs))
    return rows


def _lacks(steps: Iterable[Step], coverage: Coverage) -> bool:
    """Whether a side left no dump, or an almost empty one."""
    empty = all(step.outline.empty for step in steps)
    return empty or any(one.name in _EMPTYING and one.level == ERROR for one in coverage.problems)


def _causes(source: Source, records: Records) -> tuple[Cause, ...]:
    return likely_causes(replace(source.known, steps_logged=frozenset(line.step for line in records.lines)))


def _ordered(problems: Iterable[Problem], pairs: Sequence[Pair], sources: Mapping[str, Source]) -> Iterator[Problem]:
    """Each once, errors first; what is wrong with another step's dump than the chosen ones' is a warning."""
    chosen = [str(step.folder.path) for one in pairs for step in (one.train, one.infer)]
    dumps = [f"{source.dump_path.resolve()}/" for source in sources.values()]
    seen: dict[tuple[str, str, str], Problem] = {}
    for one in problems:
        if chosen and one.level == ERROR and _of_a_step(one.where, dumps) and not _within(one.where, chosen):
            one = replace(one, level=WARNING)
        key = one.name, one.where, one.what
        if key not in seen or (seen[key].level != ERROR and one.level == ERROR):
            seen[key] = one
    order = {ERROR: 0, WARNING: 1}
    yield from sorted(seen.values(), key=lambda one: order.get(one.level, 2))


def _of_a_step(where: str, dumps: Iterable[str]) -> bool:
    return any(where.startswith(place) for place in dumps) and "/step" in where


def _within(where: str, places: Iterable[str]) -> bool:
    return any(where == place or where.startswith(f"{place}/") or place.startswith(f"{where}/") for place in places)
