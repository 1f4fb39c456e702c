"""The package for the analysis side: where the dumps are, which step and rank, how requests are tied, what was aligned, what is
known to look like a difference and is none. No tensor, prompt, token or credential: it is searched for them beforehand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from codemods.errors import RefusedError
from locales import _
from stages.card.card import Card, now
from stages.card.credentials import secrets_in
from stages.card.evidence import Evidence, digest, evidence, stale
from stages.card.order import INSTRUMENT, PARAMS, STUB, VERIFY
from stages.dumps.false_alarms import known_alarms
from stages.dumps.given import SIDES, read_json
from stages.dumps.report import read_report

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
_FORBIDDEN = (
    "prompt",
    "prompts",
    "token_ids",
    "prompt_token_ids",
    "input_ids",
    "prompt_sha256",
    "logprobs",
    "differences",
    "messages",
    "text",
)
"""Keys under which prompts, tokens and values of theirs would lie."""
_COUNTS = ("rank", "ranks", "step", "steps", "shape", "missing_layers")
"""Keys whose lists of numbers are no values of tensors."""
_LONGEST = 4096  # characters of a text: a command, a sentence
_MOST_NUMBERS = 4


class NotComparableError(RefusedError):
    """Stage 7 does not say that the dumps are comparable; nothing is handed over."""


class LeakError(RefusedError):
    """The package would hold something that must not leave the machine; nothing was written."""


def paths(root: Path, round_: int) -> Path:
    """Where the package goes."""
    return root / "handoff" / ("handoff.json" if round_ == 0 else f"handoff.round{round_}.json")


def make_handoff(card: Card, round_: int) -> dict[str, Any]:
    """Raises NotComparableError, ReportError, LeakError."""
    verified = _comparable(card, round_)
    report_path = Path(verified.result["report"])
    report = read_report(report_path)
    made = evidence(card, INSTRUMENT)
    prepared: Mapping[str, Any] = made.result if made is not None else {}
    facts = {name: card.fact(name) for name in _FACTS if _has(card, name)}
    document = {
        "format": FORMAT,
        "made": now(),
        "round": round_,
        "statement": report["statement"],
        "sides": {side: _side(card, side, prepared, report, round_) for side in SIDES},
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
    check_leaks(document)
    return document


def _has(card: Card, name: str) -> bool:
    return name in card.data["facts"]


def _comparable(card: Card, round_: int) -> Evidence:
    found = evidence(card, VERIFY)
    todo = (
        _("`probepatch dumps verify`") if round_ == 0 else _("`probepatch dumps verify --round {n}`").format(n=round_)
    )
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
    if changed := stale(card, found):
        raise NotComparableError(_("what stage 7 found is not true any more"), why=changed, todo=todo)
    return found


def _side(card: Card, side: str, prepared: Mapping[str, Any], report: Mapping[str, Any], round_: int) -> dict[str, Any]:
    made = (prepared.get("sides") or {}).get(side) or {}
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
            "content": read_json(config),
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


# --- what must not be in it -------------------------------------------------------------------------------------------


def check_leaks(document: Mapping[str, Any]) -> None:
    """Raises LeakError with the places, never with what is there."""
    found = [
        *(_("{place}: a credential").format(place=place) for place in secrets_in(document)),
        *_leaks(document, ""),
    ]
    if found:
        raise LeakError(
            _("the package would hold what must not leave this machine"),
            why="; ".join(found[:4]),
            todo=_("correct the card or the configs that it comes from; nothing was written"),
        )


def _leaks(value: Any, where: str) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) > _LONGEST or value.count("\n") > 20:
            yield _("{place}: a long text").format(place=where)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            inner = f"{where}.{key}" if where else str(key)
            if str(key) in _FORBIDDEN:
                yield _("{place}: a prompt, tokens, or values of theirs").format(place=inner)
            yield from _leaks(item, inner)
    elif isinstance(value, (list, tuple)):
        numbers = [one for one in value if isinstance(one, (int, float)) and not isinstance(one, bool)]
        if len(numbers) > _MOST_NUMBERS and where.rpartition(".")[2] not in _COUNTS:
            yield _("{place}: a list of {count} numbers").format(place=where, count=len(numbers))
        for number, item in enumerate(value):
            yield from _leaks(item, f"{where}[{number}]")
