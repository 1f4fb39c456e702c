"""``probepatch inputs check SCRIPT…``: read only; with a task card it leaves the evidence of stage 4."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commands.arguments import file_path, text
from commands.inputs_scripts import FACTS, expect_rules, known_of, read_scripts, script_options, to_type
from commands.output import json_option, print_json, say, table, warn
from commands.task_card import card_path_if_any, following_steps, naming, say_next, task_option
from locales import _

if TYPE_CHECKING:
    from stages.card.card import Card
    from stages.inputs.report import Item, Judged, Report
    from stages.inputs.run import Script


@click.command(
    help=_(
        "Read launch scripts (bash, YAML, JSON) as they are, without running them, and judge every rule of input alignment. "
        "Several scripts are one run: a training and the engines beside it. What cannot be told from them is UNKNOWN."
    )
)
@script_options
@click.option(
    "--baseline", type=file_path, metavar="SCRIPT", help=_("the script that works: tell every flag that is lost")
)
@click.option(
    "--accept",
    "accepted",
    multiple=True,
    metavar="RULE",
    type=text,
    help=_("take a FAIL or UNKNOWN of this rule on your own account, on the record; may be repeated"),
)
@task_option
@json_option
def command(
    scripts: tuple[Path, ...],
    side: str | None,
    settings: tuple[str, ...],
    baseline: Path | None,
    accepted: tuple[str, ...],
    task: Path | None,
    as_json: bool,
) -> int:
    """Exit code 1 when a rule fails or is unknown, and was not accepted."""
    from stages.card.order import INPUTS, require
    from stages.card.store import read_card
    from stages.inputs.report import judge
    from stages.inputs.run import read, runs

    expect_rules(accepted)
    card_file = card_path_if_any(task)
    card = read_card(card_file) if card_file is not None else None
    if card is not None:
        require(card, INPUTS)
    known = known_of(card, settings)
    found = read_scripts(scripts, known)
    base = runs([read(baseline, known)], known) if baseline is not None else ()
    report = judge(found, runs(found, known), side=side, baseline=base, accepted=accepted)
    following: Any = None
    whole = side is None
    if card_file is not None and whole:
        following = _record(card_file, card, report, found, baseline, accepted, task)
        again = naming(to_type("check", scripts, settings), task)
        following = [one | {"command": again} if one["stage"] == INPUTS else one for one in following]
    if as_json:
        print_json(_as_json(report, card_file is not None and whole, following))
    else:
        _print(report)
        _print_ways(report, scripts, settings, task)
        if following is not None:
            say_next(following)
        elif card_file is not None:
            say(_("nothing was recorded: --side judges a part of the rules only"), "dim")
        else:
            say(_("no task card: nothing was recorded"), "dim")
    return 0 if report.passed else 1


def _record(
    path: Path,
    since: Card | None,
    report: Report,
    scripts: Sequence[Script],
    baseline: Path | None,
    accepted: Sequence[str],
    task: Path | None,
) -> list[dict[str, Any]]:
    """The evidence rests on every file that was read, and on the facts that were used."""
    from stages.card.evidence import record
    from stages.card.order import INPUTS, require
    from stages.card.store import changing
    from stages.inputs.world import worlds

    files = {source for script in scripts for source in script.sources}
    with changing(path, since) as card:
        require(card, INPUTS)
        record(
            card,
            INPUTS,
            report.passed,
            report.summary(),
            files=sorted({*files, *([baseline.absolute()] if baseline is not None else [])}),
            facts=FACTS,
            result={
                **report.counts(),
                "accepted": sorted({item.rule.id for item in report.all() if item.accepted}),
                "failed": sorted({item.rule.id for item in report.all() if item.verdict.state == "FAIL"}),
                "unknown": sorted({item.rule.id for item in report.all() if item.verdict.state == "UNKNOWN"}),
                "world": worlds([one.run for one in report.judged]),
                "imports": sorted(
                    {
                        "train" if one.run.trains else "infer"
                        for one in report.judged
                        for item in one.items
                        if item.rule.id == "package" and item.verdict.state == "PASS"
                    }
                ),
            },
        )
        return following_steps(card, task)


def _as_json(report: Report, recorded: bool, following: Any) -> dict[str, Any]:
    return {
        "passed": report.passed,
        "counts": report.counts(),
        "scripts": [
            {"path": str(script.path), "crlf_lines": script.crlf, "sources": [str(one) for one in script.sources]}
            for script in report.scripts
        ],
        "rules": [item.as_json() for item in report.items],
        "runs": [one.as_json() for one in report.judged],
        "notes": list(report.notes),
        "recorded": recorded,
        "next": following,
    }


def _print(report: Report) -> None:
    if report.items:
        _print_items(report.items)
    for judged in report.judged:
        _print_run(judged)
    for note in report.notes:
        warn(note)
    say(report.summary(), "good" if report.passed else "bad")


def _print_ways(report: Report, scripts: Sequence[Path], settings: Sequence[str], task: Path | None) -> None:
    """How to go on: what `inputs fix` can edit, and what an engine's script takes from the shell that starts it."""
    from stages.inputs.rules.rule import SetEnv

    edited, exported = False, dict[str, None]()
    for judged in report.judged:
        launch = judged.run.launch
        alone = launch is not None and launch.job is None and not judged.run.trains
        for wish in (wish for item in judged.items if not item.good for wish in item.verdict.wishes):
            if alone and isinstance(wish, SetEnv):
                exported[f"{wish.name}={wish.value}"] = None
            else:
                edited = True
    if edited:
        say(_("what can be edited: `{command}`").format(command=naming(to_type("fix", scripts, settings), task)))
    if exported:
        named = {one.split("=")[0] for one in exported}
        kept = [one for one in settings if one.split("=")[0] not in named]
        again = naming(to_type("check", scripts, [*kept, *exported]), task)
        said = _("what `capture run` exports for an engine's script is told to the check: `{command}`")
        say(said.format(command=again))


def _print_run(judged: Judged) -> None:
    run = judged.run
    unknown = _("unknown")
    parts = [
        f"{run.framework} {run.facts.version or _('(version unknown)')}",
        _("backend {name}").format(name=run.backend or unknown) if run.trains else "",
        _("engine {name}").format(name=run.engine or unknown) if run.trains else "",
        _("through ray job submit") if run.launch is not None and run.launch.job is not None else "",
    ]
    say(f"{run.where}: " + ", ".join(part for part in parts if part), "head")
    _print_items(judged.items)
    for one in judged.lost:
        words = {"lost": _("lost"), "changed": _("changed"), "added": _("added")}
        style = "bad" if one.kind == "lost" and not one.wanted else "dim"
        say(f"  {words[one.kind]:8} {one.before or '-'}  ->  {one.after or '-'}  {one.where or ''}", style)


def _print_items(items: Sequence[Item]) -> None:
    rows = [
        (
            item.verdict.state + (" " + _("(accepted)") if item.accepted else ""),
            item.rule.id,
            item.verdict.value or "-",
            item.verdict.where or "-",
            item.verdict.reason,
        )
        for item in items
    ]
    table((_("result"), _("rule"), _("found"), _("where"), _("why")), rows, whole=[1])
