"""The page of a verification, for people: one HTML file that loads nothing, made from the report alone.

It holds no token, no prompt and no tensor; paths are relative to the capture's folder, and of others only the end is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from locales import _
from stages.dumps.charts import difference_plot, timeline
from stages.dumps.report import grouped
from stages.dumps.steps import LABELS

MARK = 'content="probepatch dumps verify"'
"""By which a page of ours is known at its beginning."""
_MOST = 200  # rows of a table
_ELSEWHERE = re.compile(r"(?<![\w./~-])/(?:[^/\s:'\"`]+/)+(?=[^/\s:'\"`])")
"""The folders of an absolute path."""


def make_page(document: Mapping[str, Any]) -> str:
    """HTML of a report (docs/schemas/dumps-verify.json)."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=_plain,
    )
    environment.filters |= {"shown": _Shown(document), "shape": _shape}
    logprobs = document["logprobs"]
    differences = logprobs["differences"]
    return environment.get_template("page.html.j2").render(
        _=_,
        doc=document,
        verdict=verdict_word(document["verdict"]),
        facts=list(_facts(document)),
        words=_words(),
        problems=grouped(document["problems"]),
        labels=LABELS,
        used_labels=[label for label in LABELS if any(step["label"] == label for step in document["steps"])],
        timeline=Markup(timeline(document["steps"])),
        groups=_groups(document["boundaries"]),
        numbers=list(_numbers(logprobs)),
        plot=Markup(difference_plot(differences, logprobs["first_position"])) if differences else "",
        most=_MOST,
    )


def verdict_word(verdict: str) -> str:
    words = {
        "COMPARABLE": _("comparable"),
        "NOT_COMPARABLE": _("not comparable"),
        "UNKNOWN": _("not known"),
        "NOTHING_COMPARED": _("nothing compared"),
    }
    return words[verdict]


def _words() -> dict[str, str]:
    return {
        "pass": _("yes"),
        "fail": _("no"),
        "not checked": _("not checked"),
        "confirmed": _("confirmed"),
        "ruled out": _("ruled out"),
    }


def _plain(value: Any) -> Any:
    """Every text of the report, without characters that turn a line around or that no page may hold; markup stays."""
    if type(value) is not str:
        return value
    return "".join(c if c.isprintable() or c in "\n\t" else "�" for c in value)


class _Shown:
    """A text with the capture's folder taken off its paths, and other folders left out."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        root = (document["root"] or "").rstrip("/")
        outside = [
            (str(side["dump_path"]), f"{name}:")
            for name, side in document["sides"].items()
            if not root or not str(side["dump_path"]).startswith(f"{root}/")
        ]
        places = [*outside, *([(f"{root}/", "")] if root else [])]
        self.places = sorted((one for one in places if len(one[0]) > 1), key=lambda one: -len(one[0]))

    def __call__(self, value: Any) -> str:
        text = "" if value is None else str(value)
        for path, short in self.places:
            text = text.replace(path, short)
        return _ELSEWHERE.sub("…/", text)


def _shape(tensor: Mapping[str, Any] | None) -> str:
    return "–" if tensor is None else f"{tensor['dtype'].removeprefix('torch.')}{tensor['shape']}"


def _facts(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, title in (("train", _("training")), ("infer", _("inference"))):
        side = document["sides"][name]
        runs = " ".join(filter(None, (side["framework"], side["version"])))
        yield title, runs or _("unknown")
        yield _("{side}: dump").format(side=title), str(side["dump_path"])
    chosen = document["chosen"]
    if chosen is not None:
        yield _("chosen request"), str(chosen["train_request"] or chosen["infer_request"] or "–")
        yield _("prompt"), _("{count} tokens").format(count=chosen["prompt_tokens"])
        yield (
            _("steps"),
            _("train {train}, infer {infer}").format(train=chosen["train"]["step"], infer=chosen["infer"]["step"]),
        )


def _groups(boundaries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """By pair of ranks; pairs with the same rows in one group, those that differ first."""
    by_ranks: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for one in boundaries:
        by_ranks.setdefault((one["train_rank"], one["infer_rank"]), []).append(one)
    alike: dict[str, list[tuple[str, str]]] = {}
    for ranks, rows in by_ranks.items():
        key = repr([(row["name"], _shape(row["train"]), _shape(row["infer"]), row["equal"]) for row in rows])
        alike.setdefault(key, []).append(ranks)
    groups = []
    for couples in alike.values():
        rows = by_ranks[couples[0]]
        names = [f"{train} | {infer}" for train, infer in couples]
        title = ", ".join(names[:4])
        if len(names) > 4:
            title += " " + _("and {count} more").format(count=len(names) - 4)
        groups.append({"title": title, "rows": rows, "apart": any(row["equal"] is False for row in rows)})
    return sorted(groups, key=lambda group: not group["apart"])


def _numbers(logprobs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if logprobs["state"] == "computed":
        for name in ("mean", "max", "std"):
            yield f"prefill_logprob_diff_{name}", f"{logprobs[name]:.6g}"
        yield _("tokens"), f"{logprobs['tokens']}"
        yield _("requests"), f"{logprobs['requests']}"
