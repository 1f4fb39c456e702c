"""dump_verification.json: the result of stage 7, for programs, for the page, and for the handoff. No prompt, token or tensor value
is in it; of log-probs only their differences."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from codemods.errors import InvalidError
from locales import _
from stages.card.card import now
from stages.dumps.causes import first_confirmed
from stages.dumps.checks import PASS, Judged
from stages.dumps.given import no_constant
from stages.dumps.logprobs import Compared
from stages.dumps.metrics import Metric
from stages.dumps.problem import Problem
from stages.dumps.steps import Step
from stages.dumps.streaming import open_regular
from stages.dumps.verify import Found
from stages.sides import INFER, TRAIN

FORMAT = "probepatch/dump-verification/1"
COMPUTED, NOT_COMPUTED = "computed", "not computed"
_LARGEST = 256 << 20  # bytes


class ReportError(InvalidError):
    """The report of stage 7 is missing or no report."""


def report_paths(root: Path, round_: int) -> tuple[Path, Path]:
    """(report, page)."""
    name = "dump_verification" if round_ == 0 else f"dump_verification.round{round_}"
    return root / f"{name}.json", root / f"{name}.html"


def document(found: Found, judged: Judged, *, root: Path, round_: int) -> dict[str, Any]:
    chosen = {id(step) for one in found.pairs for step in (one.train, one.infer)}
    return {
        "format": FORMAT,
        "made": now(),
        "round": round_,
        "root": str(root),
        "verdict": judged.verdict,
        "comparable": judged.comparable,
        "statement": judged.statement,
        "cause": _first_cause(found, judged),
        "checks": [one.as_json() for one in judged.checks],
        "sides": {side: _side(found, side) for side in found.sources},
        "chosen": _chosen(found),
        "steps": [_step(side, step, id(step) in chosen) for side, steps in found.steps.items() for step in steps],
        "association": list(_association(found)),
        "boundaries": [row.as_json() for row in found.rows],
        "logprobs": _logprobs(found),
        "metrics": [_metric(one) for one in found.metrics.values()],
        "problems": [_problem(one) for one in found.problems],
        "causes": {side: [one.as_json() for one in causes] for side, causes in found.causes.items()},
    }


def _first_cause(found: Found, judged: Judged) -> str | None:
    """What to mend first; None where nothing is to be mended."""
    if judged.comparable:
        return None
    confirmed = (first_confirmed(causes) for causes in found.causes.values())
    cause = next((one for one in confirmed if one is not None), None)
    if cause is not None:
        return cause.what
    return next((one.why or one.what for one in judged.checks if one.state != PASS), judged.statement)


def _problem(one: Problem) -> dict[str, str]:
    return {"name": one.name, "level": one.level, "what": one.what, "where": one.where, "todo": one.todo}


def _side(found: Found, side: str) -> dict[str, Any]:
    source, steps, coverage = found.sources[side], found.steps[side], found.coverage[side]
    filled = [step.outline for step in steps if not step.outline.empty]
    return {
        "framework": source.known.framework,
        "version": source.version,
        "dump_path": str(source.dump_path),
        "log": str(source.known.log) if source.known.log is not None else None,
        "task": next((one.task for one in filled if one.task), None),
        "level": next((one.level for one in filled if one.level), None),
        "folders": len(steps),
        "lines": len(found.records[side].lines),
        "layers": len(coverage.layers),
        "missing_layers": list(coverage.missing) if coverage.missing is not None else None,
    }


def _chosen(found: Found) -> dict[str, Any] | None:
    one = found.chosen
    if one is None:
        return None
    return {
        "train_request": one.train.request_id,
        "infer_request": one.infer.request_id,
        "rule": one.pairs[0].rule,
        "prompt_tokens": one.train.tokens,
        TRAIN: _place(one.train.line.step, found.chosen_steps(TRAIN)),
        INFER: _place(one.infer.line.step, found.chosen_steps(INFER)),
    }


def _place(number: int, steps: list[Step]) -> dict[str, Any]:
    return {
        "step": number,
        "ranks": [step.folder.process for step in steps],
        "folders": [str(step.folder.path) for step in steps],
    }


def _step(side: str, step: Step, chosen: bool) -> dict[str, Any]:
    return {
        "side": side,
        "step": step.folder.step,
        "rank": step.folder.rank,
        "pid": step.folder.pid,
        "folder": str(step.folder.path),
        "tokens": step.tokens,
        "label": step.label,
        "why": step.why,
        "requests": list(step.requests),
        "chosen": chosen,
    }


def _association(found: Found) -> Iterator[dict[str, Any]]:
    """Requests of both sides first, then what is not tied, and why."""

    def row(
        state: str, train: Any, infer: Any, why: str, rule: str | None = None, chosen: bool = False
    ) -> dict[str, Any]:
        return {
            "train_request": train.request_id if train else None,
            "infer_request": infer.request_id if infer else None,
            "rule": rule,
            "state": state,
            "prompt_tokens": (train or infer).tokens,
            "train_step": train.line.step if train else None,
            "infer_step": infer.line.step if infer else None,
            "chosen": chosen,
            "why": why,
        }

    for one in found.candidates:
        yield row("tied", one.train, one.infer, one.unfit, one.pairs[0].rule, one is found.chosen)
    for mismatch in found.association.mismatched:
        yield row("mismatched", mismatch.train, mismatch.infer, mismatch.reason, mismatch.rule)
    for doubt in found.association.ambiguous:
        yield row("ambiguous", doubt.place, None, doubt.reason)
    for left in found.association.unmatched:
        train = left.place.line.side == TRAIN
        yield row("unmatched", left.place if train else None, None if train else left.place, left.reason)


def _logprobs(found: Found) -> dict[str, Any]:
    """``differences``: of the chosen request, by position from ``first_position`` on."""
    of_all, own = found.differences.spread, _of_chosen(found)
    reasons = [one.reason for one in found.differences.compared if one.reason]
    reasons += [one.what for one in found.differences.problems]
    prints = found.printed.prints if found.printed is not None else ()
    computed = [one for one in found.differences.compared if one.differences]
    return {
        "state": COMPUTED if of_all is not None else NOT_COMPUTED,
        "why": "" if of_all is not None else next(iter(reasons), ""),
        "mean": of_all.mean if of_all is not None else None,
        "max": of_all.max if of_all is not None else None,
        "std": of_all.std if of_all is not None else None,
        "tokens": of_all.count if of_all is not None else 0,
        "requests": len(computed),
        "refused": len(found.differences.compared) - len(computed),
        "first_position": 1,
        "differences": list(own.differences) if own is not None else [],
        "printed": [
            {"where": one.where, "mean": one.mean, "max": one.max, "std": one.std} for one in prints if one.plausible
        ],
        "notes": _notes(found),
    }


def _of_chosen(found: Found) -> Compared | None:
    if found.chosen is None:
        return None
    train, infer = found.chosen.train, found.chosen.infer
    for one in found.differences.compared:
        same = one.train.request_id == train.request_id or one.infer.request_id == infer.request_id
        if one.differences and same and one.train.n_tokens == train.tokens:
            return one
    return None


def _notes(found: Found) -> list[str]:
    """What the training log says of the difference."""
    if found.printed is None:
        return [_("no training log was given: what it printed was not compared")]
    notes = [one.what for one in found.problems if one.name.startswith(("prefill-print", "prefill-not-printed"))]
    if not notes and found.printed.prints and found.differences.spread is not None:
        notes = [_("the training log printed the same")]
    return notes


def _metric(one: Metric) -> dict[str, Any]:
    """``state``: measured, or evidence_missing."""
    values = dict(one.chosen.values) if one.chosen is not None else {}
    return {
        "name": one.name,
        "state": one.status,
        "values": values,
        "where": one.chosen.where if one.chosen is not None else None,
        "text": ", ".join(f"{key} {value:.6g}" for key, value in values.items()),
        "why": one.reason,
    }


def grouped(problems: Sequence[Mapping[str, str]]) -> list[tuple[Mapping[str, str], int]]:
    """The same sentence once, at its first place, with the number of further places."""
    counts: dict[tuple[str, str], int] = {}
    for one in problems:
        counts[one["name"], one["what"]] = counts.get((one["name"], one["what"]), -1) + 1
    first = {(one["name"], one["what"]): one for one in reversed(problems)}
    return [(first[key], more) for key, more in counts.items()]


def read_report(path: Path) -> Mapping[str, Any]:
    """Raises ReportError."""
    todo = _("`probepatch dumps verify` writes it")
    try:
        if path.stat().st_size > _LARGEST:
            raise ReportError(_("the report is too large"), where=str(path), todo=todo)
        with open_regular(path) as file:
            data = json.loads(file.read().decode("utf-8"), parse_constant=no_constant)
    except OSError as error:
        raise ReportError(_("{path} cannot be read").format(path=path), why=error.strerror, todo=todo) from error
    except (ValueError, RecursionError) as error:
        raise ReportError(_("the report is no JSON"), where=str(path), why=str(error)[:200], todo=todo) from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ReportError(_("this is no report of `probepatch dumps verify`"), where=str(path), todo=todo)
    return data
