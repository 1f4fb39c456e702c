"""The package for the analysis side: where the dumps are, which step and rank, how requests are tied, what was aligned, what is
known to look like a difference and is none. No tensor, prompt, token or credential: it is searched for them beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codemods.errors import RefusedError
from locales import _
from stages.card.card import Card, now
from stages.card.evidence import Evidence, digest, evidence, stale
from stages.card.order import INSTRUMENT, PARAMS, STUB, VERIFY
from stages.dumps.false_alarms import known_alarms
from stages.dumps.given import SIDES, instrumented, read_json
from stages.dumps.leaks import check_leaks
from stages.dumps.report import ReportError, read_report

FORMAT = "probepatch/handoff/1"
_FACTS = (
    "model.path",
    "model.name",
    "sample.id",
    "sample.prompt_source",
    *(
        f"{side}.{name}"
        for side in SIDES
        for name in ("framework", "version", "backend", "prefix", "python", "checkout")
    ),
    "hardware",
    "baseline_command",
    "artifacts",
    "evidence_tool",
    "scope",
    "stop_condition",
    "e2e_target",
    "usage",
)


class NotComparableError(RefusedError):
    """Stage 7 does not say that the dumps are comparable; nothing is handed over."""


def paths(root: Path, round_: int) -> Path:
    """Where the package goes."""
    return root / "handoff" / ("handoff.json" if round_ == 0 else f"handoff.round{round_}.json")


def make_handoff(card: Card, round_: int) -> dict[str, Any]:
    """Raises NotComparableError, ReportError, LeakError."""
    verified = _comparable(card, round_)
    report_path = Path(verified.result["report"])
    report = read_report(report_path)
    try:
        document = _document(card, round_, verified, report)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ReportError(
            _("the report is not of its form"),
            where=str(report_path),
            todo=_("`probepatch dumps verify` writes it again"),
        ) from error
    check_leaks(document)
    return document


def _document(card: Card, round_: int, verified: Evidence, report: Mapping[str, Any]) -> dict[str, Any]:
    report_path = Path(verified.result["report"])
    if (report["comparable"], report["round"]) != (True, round_):
        raise NotComparableError(_("the report says something else than the task card"), todo=_todo(round_))
    _still_there(report, report_path, round_)
    sides, _runs = instrumented(card)
    made = evidence(card, INSTRUMENT)
    prepared: Mapping[str, Any] = made.result if made is not None else {}
    facts = {name: card.fact(name) for name in _FACTS if _has(card, name)}
    return {
        "format": FORMAT,
        "made": now(),
        "round": round_,
        "statement": report["statement"],
        "sides": {side: _side(card, side, sides.get(side, {}), report, round_) for side in SIDES},
        "association": _association(report),
        "boundaries": _boundaries(report),
        "switches": dict(prepared.get("switches") or {}),
        "change_list": prepared.get("change_list"),
        "parameter_alignment": _parameters(card),
        "prefill_logprob_diff": _logprobs(report),
        "response_metrics": [
            {key: one[key] for key in ("name", "state", "values", "why")} for one in report["metrics"]
        ],
        "known_false_alarms": known_alarms({name: facts.get(name) for name in facts}),
        "warnings": [_problem(one) for one in report["problems"] if one["level"] == "warning"],
        "verification": {
            "report": str(report_path),
            "sha256": digest(report_path),
            "page": verified.result["page"],
        },
        "stub": _stub(card, round_),
        "task": {name: value for name, value in facts.items() if value is not None},
    }


def _still_there(report: Mapping[str, Any], report_path: Path, round_: int) -> None:
    """The dumps that were chosen, not written again since. Raises NotComparableError."""
    for side in SIDES:
        for folder in report["chosen"][side]["folders"]:
            dump = Path(folder) / "dump.json"
            try:
                newer = dump.stat().st_mtime_ns > report_path.stat().st_mtime_ns
                text = _("{path} has changed since") if newer else ""
            except (OSError, ValueError):
                text = _("{path} is not there any more")
            if text:
                why = text.format(path=dump)
                raise NotComparableError(_("what stage 7 found is not true any more"), why=why, todo=_todo(round_))


def checkouts_of(card: Card) -> list[str]:
    """Every tree that the card names, as far as it may be on this machine."""
    sides, _runs = instrumented(card)
    named = [card.fact(f"{side}.checkout") for side in SIDES]
    named += [one.get("checkout") for one in (*sides.values(), *card.data["edits"])]
    return [one for one in named if isinstance(one, str) and one.startswith("/") and "\0" not in one]


def _has(card: Card, name: str) -> bool:
    return name in card.data["facts"]


def _comparable(card: Card, round_: int) -> Evidence:
    found = evidence(card, VERIFY)
    todo = _todo(round_)
    if found is None:
        raise NotComparableError(_("the capture has not been verified"), todo=todo)
    if found.result.get("round") != round_:
        raise NotComparableError(
            _("round {wanted} is not the one that was verified last").format(wanted=round_),
            why=_("that was round {known}").format(known=found.result.get("round")),
            todo=todo,
        )
    if found.result.get("comparable") is not True:
        raise NotComparableError(_("the dumps are not comparable"), why=found.summary, todo=todo)
    named = [found.result.get(name) for name in ("report", "page")]
    if not all(isinstance(one, str) and one.startswith("/") and "\0" not in one for one in named):
        raise NotComparableError(_("the task card does not say where the report of stage 7 is"), todo=todo)
    if named[0] not in found.files:
        raise NotComparableError(_("what stage 7 found does not rest on its report"), todo=todo)
    if changed := stale(card, found):
        raise NotComparableError(_("what stage 7 found is not true any more"), why=changed, todo=todo)
    return found


def _todo(round_: int) -> str:
    command = "probepatch dumps verify" + (f" --round {round_}" if round_ else "")
    return _("`{command}`").format(command=command)


def _side(card: Card, side: str, made: Mapping[str, Any], report: Mapping[str, Any], round_: int) -> dict[str, Any]:
    config = _config_path(card, side, made, round_)
    return {
        "framework": card.fact(f"{side}.framework"),
        "version": card.fact(f"{side}.version"),
        "backend": card.fact("train.backend") if side == "train" else None,
        "dump_path": report["sides"][side]["dump_path"],
        "step": report["chosen"][side]["step"],
        "ranks": report["chosen"][side]["ranks"],
        "folders": report["chosen"][side]["folders"],
        "layers": report["sides"][side]["layers"],
        "world_size": made.get("world_size"),
        "recipes": list(made.get("recipes") or ()),
        "native": bool(made.get("native")),
        "msprobe_config": {
            "path": config,
            "sha256": digest(Path(config)) if config is not None else None,
            "content": read_json(config, strict=True),
        },
    }


def _config_path(card: Card, side: str, made: Mapping[str, Any], round_: int) -> str | None:
    stub = evidence(card, STUB)
    if round_ and stub is not None and stub.result.get("target_side") == side:
        found = stub.result.get("config")
        return str(found) if found is not None else None
    return str(made["config"]) if made.get("config") else None


def _association(report: Mapping[str, Any]) -> dict[str, Any]:
    chosen = report["chosen"]
    return {
        "train_request": chosen["train_request"],
        "infer_request": chosen["infer_request"],
        "rule": chosen["rule"],
        "prompt_tokens": chosen["prompt_tokens"],
        "token_ids_equal": True,
        "others": [
            {key: one[key] for key in ("train_request", "infer_request", "rule", "train_step", "infer_step", "why")}
            for one in report["association"]
            if one["state"] == "tied" and not one["chosen"]
        ],
    }


def _boundaries(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """msprobe's names of one place on both sides, of the first pair of ranks."""
    rows = report["boundaries"]
    first = [
        one for one in rows if (one["train_rank"], one["infer_rank"]) == (rows[0]["train_rank"], rows[0]["infer_rank"])
    ]
    return [{key: one[key] for key in ("name", "train", "infer")} for one in first]


def _parameters(card: Card) -> dict[str, Any]:
    """DECISION: a waived point means "not aligned at parameter level", and the package says so."""
    found = evidence(card, PARAMS)
    result: Mapping[str, Any] = found.result if found is not None else {}
    verdict = result.get("verdict")
    return {
        "verdict": verdict,
        "aligned": verdict == "EXACT",
        "statement": found.summary if found is not None else _("not computed"),
        "layers": dict(result.get("layers") or {}),
        "waived": list(result.get("waived") or ()),
    }


def _logprobs(report: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: report["logprobs"][key] for key in ("state", "why", "mean", "max", "std", "tokens", "requests", "notes")
    }


def _problem(one: Mapping[str, str]) -> dict[str, str]:
    return {key: one[key] for key in ("name", "what", "where")}


def _stub(card: Card, round_: int) -> dict[str, Any] | None:
    """What a stub round overrode; None for the first capture."""
    found = evidence(card, STUB)
    if round_ == 0 or found is None:
        return None
    names = ("target_side", "entries", "config", "dump_path", "source", "verified")
    return {"round": round_, **{name: found.result.get(name) for name in names}}
