"""All checks, one after the other, and what they leave on the task card."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from locales import _, ngettext
from stages.card.card import Card, now
from stages.card.credentials import hiding, without_secrets
from stages.card.evidence import record
from stages.card.order import PREFLIGHT
from stages.preflight import cards, command, disk, environment, paths, ports, processes, weights
from stages.preflight.asking import ask
from stages.preflight.baseline import Baseline, joined, read
from stages.preflight.disk import Plan
from stages.preflight.finding import OK, PROBLEM, UNKNOWN, Finding, passed
from stages.preflight.left import left
from stages.preflight.places import SIDES, Place, side, visit
from stages.preflight.processes import Leftover
from stages.sides import TRAIN, SideError

_FACTS = (
    "model.path",
    "baseline_command",
    "artifacts",
    "hardware",
    "usage",
    *(
        f"{name}.{fact}"
        for name in SIDES
        for fact in ("framework", "version", "prefix", "python", "checkout", "workdir", "log")
    ),
)
_TOOLS = list(cards.TOOLS)


@dataclass
class Survey:
    """``models``, ``told`` and ``interpreters`` are by side."""

    findings: list[Finding] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    seen: list[cards.Seen] = field(default_factory=list)
    leftovers: list[Leftover] = field(default_factory=list)
    models: dict[str, dict[str, Any]] = field(default_factory=dict)
    told: dict[str, dict[str, Any]] = field(default_factory=dict)
    interpreters: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return passed(self.findings)

    def count(self, state: str) -> int:
        return sum(one.state == state for one in self.findings)


def survey(
    card: Card, plan: Plan, keep: Collection[int], progress: Callable[[str], None] = lambda step: None
) -> Survey:
    """Look at everything. Nothing is changed anywhere. ``progress`` is told each step before it begins."""
    out, before = Survey(), left(card)
    baseline = _baseline(card)
    progress(_("places"))
    out.places, out.findings = visit(card, list(ports.wanted(card, baseline)))
    reached = [name for place in out.places for name in place.names if name in SIDES]
    for name in reached:
        progress(_("files of {side}").format(side=name))
        out.told[name] = _paths(card, name, baseline)
        if card.fact("model.path"):
            out.models[name] = ask(side(card, name), "weights", {"path": card.fact("model.path")})
    progress(_("cards"))
    tools = {
        place.name: ask(place.side, "paths", {"paths": {}, "commands": _TOOLS})["commands"] for place in out.places
    }
    out.seen, unseen = cards.see(out.places, tools, card.fact("hardware"))
    visible = baseline.cards if baseline is not None else None
    out.findings += unseen
    out.findings += cards.check(out.seen, out.places, before.get("baseline_mb", {}), visible, keep)
    others = [*cards.holders(out.seen, out.places), *ports.holders(out.places)]
    out.leftovers = processes.collect(out.places, others, keep)
    out.findings += processes.check(out.leftovers, out.places, card.fact("hardware"))
    out.findings += ports.check(card, baseline, out.places, keep)
    out.findings += _weights(card, out)
    out.findings += command.check(baseline, out.told.get(TRAIN))
    out.findings += paths.check(card, out.told)
    roots = {name: told["paths"]["artifacts"] for name, told in out.told.items() if "artifacts" in told["paths"]}
    hosts = {place.where["boot"] for place in out.places if place.is_side}
    out.findings += disk.check(plan, out.models, roots, disk.same_disk(list(roots.values()), len(hosts) == 1))
    for name in reached:
        progress(_("packages of {side}").format(side=name))
        try:
            findings, out.interpreters[name] = environment.check(card, side(card, name), baseline)
        except SideError as error:
            what = ": ".join(filter(None, (error.what, error.why)))
            findings = [Finding("msprobe", name, PROBLEM, what, error.todo or "")]
        out.findings += findings
    out.findings = [replace(one, what=without_secrets(one.what), facts=hiding(one.facts)) for one in out.findings]
    return out


def _baseline(card: Card) -> Baseline | None:
    text = card.fact("baseline_command")
    return read(text, card.fact("train.workdir"), card.words("train.prefix")) if text else None


def _paths(card: Card, name: str, baseline: Baseline | None) -> dict[str, Any]:
    wanted = {
        "artifacts": card.fact("artifacts"),
        "model": card.fact("model.path"),
        **{key: card.fact(f"{name}.{key}") for key in ("log", "checkout", "workdir")},
    }
    given: dict[str, Any] = {"commands": [], "folder": None}
    if name == TRAIN and baseline is not None:
        given["folder"] = baseline.folder
        given["commands"] = [baseline.program] if baseline.program else []
        wanted["script"] = joined(baseline.folder, baseline.script) if baseline.script else None
        wanted["program"] = joined(baseline.folder, baseline.program) if "/" in (baseline.program or "") else None  # type: ignore[arg-type]
    given["paths"] = {key: path for key, path in wanted.items() if path}
    told: dict[str, Any] = ask(side(card, name), "paths", given)
    return told


def _weights(card: Card, out: Survey) -> list[Finding]:
    if card.fact("model.path") is None:
        return [
            Finding("weights", TRAIN, UNKNOWN, _("no model is on the card"), _("`probepatch task set model.path=/…`"))
        ]
    return weights.check(out.models)


def leave(card: Card, out: Survey, plan: Plan) -> None:
    """Record the stage's evidence. The first state of the cards, their idle memory and what was stopped are carried on."""
    before = left(card)
    now_cards = [one.as_json() for one in out.seen]
    result = {
        "findings": [one.as_json() for one in out.findings if one.state != OK],
        "interpreters": {name: answered for place in out.places for name, answered in place.answered.items()},
        "packages": out.interpreters,
        "plan": vars(plan),
        "cards_before": before.get("cards_before", {"at": now(), "cards": now_cards}),
        "cards": {"at": now(), "cards": now_cards},
        "baseline_mb": cards.baselines(out.seen, before.get("baseline_mb", {})),
        "processes": [one.as_json() for one in out.leftovers],
        "stopped": before.get("stopped", []),
    }
    files = []
    if (model := card.fact("model.path")) is not None:
        folder = Path(os.path.expanduser(model))
        files = [path for path in (folder / "config.json", folder / "model.safetensors.index.json") if path.is_file()]
    record(card, PREFLIGHT, out.passed, summary(out), files=files, facts=_FACTS, result=hiding(result))


def summary(out: Survey) -> str:
    """One sentence, with the names of what is not known."""
    problems, unknown = out.count(PROBLEM), out.count(UNKNOWN)
    what = (
        ngettext("{count} problem", "{count} problems", problems).format(count=problems)
        if problems
        else _("no problem")
    )
    if unknown:
        names = sorted({f"{one.check} ({one.place})" for one in out.findings if one.state == UNKNOWN})
        what += _("; not known: {names}").format(names=", ".join(names))
    return what
