"""A report of stage 7 on one screen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from commands.output import say, table
from locales import _, ngettext

_ROWS, _PROBLEMS = 12, 10
_STYLES = {"error": "bad", "warning": "note"}


def print_report(report: Mapping[str, Any], page: Path) -> None:
    """The verdict comes last: it is what stays on the screen."""
    _requests(report)
    _shapes(report)
    _logprobs(report)
    _checks(report)
    _causes(report)
    _problems(report)
    say(_("page: {path}").format(path=page), "dim")
    say(report["statement"], "good" if report["comparable"] else "bad")


def _requests(report: Mapping[str, Any]) -> None:
    rows = [
        (
            "*" if one["chosen"] else "",
            one["train_request"] or "-",
            one["infer_request"] or "-",
            one["rule"] or one["state"],
            _number(one["prompt_tokens"]),
            _number(one["train_step"]),
            _number(one["infer_step"]),
            one["why"],
        )
        for one in report["association"]
    ]
    if rows:
        headings = _("train request"), _("infer request"), _("tied by"), _("tokens"), _("train step"), _("infer step")
        table(("", *headings, ""), rows[:_ROWS])
        _more(len(rows), _ROWS)
        say("")


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _more(count: int, shown: int) -> None:
    if count > shown:
        say(_("and {count} more; the page and --json have them").format(count=count - shown), "dim")


def _shapes(report: Mapping[str, Any]) -> None:
    """Rank by rank; ranks that look alike in one table."""
    by_ranks: dict[str, list[tuple[str, ...]]] = {}
    for row in report["boundaries"]:
        train, infer = row["train_rank"], row["infer_rank"]
        cells = row["name"], _shape(row["train"]), _shape(row["infer"]), _equal(row["equal"])
        by_ranks.setdefault(train if train == infer else f"{train} | {infer}", []).append(cells)
    alike: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for ranks, rows in by_ranks.items():
        alike.setdefault(tuple(rows), []).append(ranks)
    for cells_, names in alike.items():
        shown = [*cells_[:_ROWS], *cells_[-3:]] if len(cells_) > _ROWS + 3 else list(cells_)
        title = ", ".join(names[:4]) + (f" (+{len(names) - 4})" if len(names) > 4 else "")
        table((title, _("training"), _("inference"), ""), shown)
        _more(len(cells_), len(shown))
        say("")


def _shape(tensor: Mapping[str, Any] | None) -> str:
    return "-" if tensor is None else f"{tensor['dtype'].removeprefix('torch.')}{tensor['shape']}"


def _equal(equal: bool | None) -> str:
    return "" if equal is None else _("equal") if equal else _("NOT EQUAL")


def _logprobs(report: Mapping[str, Any]) -> None:
    found = report["logprobs"]
    if found["state"] == "computed":
        tokens = ngettext("{count} token", "{count} tokens", found["tokens"]).format(count=found["tokens"])
        text = _("prefill_logprob_diff_mean={mean:.3g} _max={max:.3g} _std={std:.3g} over {tokens}")
        say(text.format(mean=found["mean"], max=found["max"], std=found["std"], tokens=tokens))
    else:
        say(_("prefill_logprob_diff: not computed ({why})").format(why=found["why"]), "note")
    for note in found["notes"]:
        say(f"  {note}", "dim")
    for one in report["metrics"]:
        say(f"{one['name']}: {one['text'] or one['state']} ({one['why']})", "" if one["text"] else "dim")
    say("")


def _checks(report: Mapping[str, Any]) -> None:
    words = {"pass": _("yes"), "fail": _("NO"), "not checked": "?"}
    table(("", _("comparable?"), ""), [(words[one["state"]], one["what"], one["why"]) for one in report["checks"]])
    say("")


def _causes(report: Mapping[str, Any]) -> None:
    for side, causes in report["causes"].items():
        if causes:
            title = _("why the {side} side left no dump").format(side=side)
            table(("", title, ""), [(one["state"], one["what"], one["why"]) for one in causes])
            for one in causes:
                if one["state"] == "confirmed" and one["todo"]:
                    say(f"  {one['todo']}", "note")
            say("")


def _problems(report: Mapping[str, Any]) -> None:
    from stages.dumps.report import grouped

    shown = grouped([one for one in report["problems"] if one["level"] in _STYLES])
    for one, more in shown[:_PROBLEMS]:
        place = f"  [{one['where']}]" if one["where"] else ""
        place += " " + _("and {count} more").format(count=more) if more else ""
        say(f"{one['level']} {one['name']}: {one['what']}{place}", _STYLES[one["level"]])
        if one["todo"]:
            say(f"  {one['todo']}")
    _more(len(shown), _PROBLEMS)
