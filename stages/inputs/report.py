"""The verdicts on one or more runs, for people and programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from locales import _, ngettext
from stages.inputs.baseline import LOST, Difference, differences
from stages.inputs.rules.all import RULES
from stages.inputs.rules.rule import FAIL, PASS, UNKNOWN, Rule, Verdict, assumed_text
from stages.inputs.run import Run, Script
from stages.inputs.shell.nodes import Param

LINE_ENDS = Rule(
    "line-ends",
    "both",
    _("lines end in LF"),
    _("bash takes a CR as part of the last word of a line, and a `\\` before it continues nothing"),
    lambda run: None,
)
LAUNCH = Rule(
    "launch",
    "both",
    _("a launch is found"),
    _("a command that starts verl, slime, vime, vLLM or SGLang"),
    lambda run: None,
)
BASELINE = Rule(
    "baseline",
    "both",
    _("nothing of the baseline is lost"),
    _("a script that was rebuilt from a working one is compared with it before anything else is looked for"),
    lambda run: None,
)


@dataclass(frozen=True)
class Item:
    """A rule with its verdict. ``accepted``: the user took responsibility for it by name."""

    rule: Rule
    verdict: Verdict
    accepted: bool = False

    @property
    def good(self) -> bool:
        return self.accepted or self.verdict.state == PASS

    def as_json(self) -> dict[str, Any]:
        return {
            "rule": self.rule.id,
            "side": self.rule.side,
            "state": self.verdict.state,
            "accepted": self.accepted,
            "value": self.verdict.value,
            "where": self.verdict.where,
            "reason": self.verdict.reason,
            "assumes": sorted(self.verdict.assumes),
        }


@dataclass(frozen=True)
class Judged:
    """One run and what the rules say of it."""

    run: Run
    items: tuple[Item, ...]
    lost: tuple[Difference, ...] = ()

    def as_json(self) -> dict[str, Any]:
        run = self.run
        return {
            "where": run.where,
            "framework": run.framework,
            "version": run.facts.version,
            "backend": run.backend,
            "engine": run.engine,
            "program": run.launch.program if run.launch is not None else None,
            "submitted": run.launch is not None and run.launch.job is not None,
            "certain": run.launch.command.maybe or None if run.launch is not None else None,
            "rules": [item.as_json() for item in self.items],
            "baseline": [
                {
                    "kind": one.kind,
                    "name": one.name,
                    "before": one.before,
                    "after": one.after,
                    "where": one.where,
                    "wanted": one.wanted,
                }
                for one in self.lost
            ],
        }


@dataclass(frozen=True)
class Report:
    """``items`` are about the scripts themselves."""

    scripts: tuple[Script, ...]
    items: tuple[Item, ...]
    judged: tuple[Judged, ...]
    notes: tuple[str, ...]

    def all(self) -> Iterator[Item]:
        yield from self.items
        for one in self.judged:
            yield from one.items

    def counts(self) -> Mapping[str, int]:
        states = [item.verdict.state for item in self.all()]
        return {state: states.count(state) for state in (PASS, FAIL, UNKNOWN)}

    @property
    def passed(self) -> bool:
        """Everything passes, or was accepted by name; nothing judged is no pass."""
        return bool(self.judged) and all(item.good for item in self.all())

    def summary(self) -> str:
        text = ", ".join(f"{state} {count}" for state, count in self.counts().items())
        accepted = sum(item.accepted for item in self.all())
        if accepted:
            text += ", " + ngettext("{n} is accepted by name", "{n} are accepted by name", accepted).format(n=accepted)
        return text


def judge(
    scripts: Sequence[Script],
    found: Sequence[Run],
    *,
    side: str | None = None,
    baseline: Sequence[Run] = (),
    accepted: Sequence[str] = (),
) -> Report:
    """What the rules say. ``side``: only the rules of this side; ``accepted``: ids of rules whose outcome was accepted."""
    items = [_line_ends(script) for script in scripts if script.crlf]
    if not found:
        items.append(Item(LAUNCH, Verdict(FAIL, _("no command in it starts a framework that is known here"))))
    judged = [_judged(run, side, _like(run, baseline), accepted) for run in found]
    items = [Item(item.rule, item.verdict, item.rule.id in accepted) for item in items]
    return Report(tuple(scripts), tuple(items), tuple(judged), tuple(_notes(scripts, found)))


def _line_ends(script: Script) -> Item:
    text = _("has CR line ends: the last argument of each of {n} lines would carry a \\r").format(n=script.crlf)
    return Item(LINE_ENDS, Verdict(FAIL, text, "CRLF", script.path.name))


def _judged(run: Run, side: str | None, base: Run | None, accepted: Sequence[str]) -> Judged:
    items = []
    for rule in RULES:
        if side is not None and rule.side not in (side, "both"):
            continue
        if not run.trains and rule.side == "train":
            continue
        verdict = rule.judge(run)
        if verdict is not None:
            items.append(Item(rule, _explained(verdict), rule.id in accepted))
    lost: tuple[Difference, ...] = ()
    if base is not None:
        lost = tuple(differences(base, run))
        items.append(_baseline(lost, accepted))
    return Judged(run, tuple(items), lost)


def _explained(verdict: Verdict) -> Verdict:
    """The reason, with what it rests on."""
    rests = assumed_text(verdict.assumes)
    text = f"{verdict.reason} ({rests})" if rests and verdict.reason else verdict.reason or rests
    return Verdict(verdict.state, text, verdict.value, verdict.where, verdict.wishes, verdict.assumes)


def _baseline(found: Sequence[Difference], accepted: Sequence[str]) -> Item:
    gone = [one for one in found if one.kind == LOST and not one.wanted]
    if gone:
        names = ", ".join(one.name for one in gone)
        verdict = Verdict(
            FAIL, _("lost: {names}").format(names=names), None, ", ".join(sorted({str(one.where) for one in gone}))
        )
    else:
        changed = ", ".join(one.name for one in found if one.kind != LOST) or _("nothing")
        verdict = Verdict(PASS, _("nothing is lost; changed or added: {names}").format(names=changed))
    return Item(BASELINE, verdict, BASELINE.id in accepted)


def _like(run: Run, baseline: Sequence[Run]) -> Run | None:
    """The baseline's run of the same framework; the first of several."""
    return next((one for one in baseline if one.framework == run.framework), None)


def _notes(scripts: Sequence[Script], found: Sequence[Run]) -> Iterator[str]:
    for script in scripts:
        for where, text in script.notes:
            yield f"{where}: {text}" if where else text
    for run in found:
        if run.launch is None:
            continue
        if run.launch.command.maybe:
            yield f"{run.where}: " + run.launch.command.maybe
        if run.facts.version is None and run.framework in ("verl", "slime", "vime"):
            text = _(
                "{where}: the version of {framework} is not known; a default that differs between versions is UNKNOWN"
            )
            yield text.format(where=run.where, framework=run.framework)
        names = [
            f"${{{part.name}[{part.index}]}}"
            for word in run.launch.command.node.words
            for part in word.parts
            if isinstance(part, Param) and part.index in ("@", "*") and not part.quoted
        ]
        if names:
            text = _("{where}: {names} without quotes: an element with a blank in it is split into several arguments")
            yield text.format(where=run.where, names=", ".join(dict.fromkeys(names)))
