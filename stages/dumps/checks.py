"""What has to hold for two dumps to be comparable, one by one, and the sentence that sums it up. Nothing beyond that is judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from locales import _, ngettext
from stages.dumps.causes import first_confirmed
from stages.dumps.problem import ERROR, NOTE
from stages.dumps.shapes import DIFFER, EQUAL
from stages.dumps.stamps import STILL_WRITTEN
from stages.dumps.verify import Found
from stages.sides import INFER, TRAIN

PASS, FAIL, NOT_CHECKED = "pass", "fail", "not checked"
COMPARABLE, NOT_COMPARABLE, UNKNOWN, NOTHING = "COMPARABLE", "NOT_COMPARABLE", "UNKNOWN", "NOTHING_COMPARED"
_BROKEN = (
    "truncated-json",
    "broken-json",
    "nan-in-json",
    "too-large",
    "duplicate-entry",
    "unreadable",
    "not-a-dump",
    "empty-file",
)


@dataclass(frozen=True)
class Check:
    """``state``: pass, fail or not checked (it could not be told); ``why``: what that rests on."""

    name: str
    state: str
    what: str
    why: str = ""

    def as_json(self) -> dict[str, str]:
        return {"name": self.name, "state": self.state, "what": self.what, "why": self.why}


@dataclass(frozen=True)
class Judged:
    """``comparable``: None where it is not known."""

    checks: tuple[Check, ...]
    verdict: str
    comparable: bool | None
    statement: str


def judge(found: Found) -> Judged:
    checks = tuple(_checks(found))
    failed = next((one for one in checks if one.state == FAIL), None)
    open_ = next((one for one in checks if one.state == NOT_CHECKED), None)
    if failed is not None and found.chosen is None:
        text = _("nothing could be compared: {why}").format(why=failed.why)
        return Judged(checks, NOTHING, False, text)
    if failed is not None:
        return Judged(checks, NOT_COMPARABLE, False, _("not comparable: {why}").format(why=failed.why or failed.what))
    if open_ is not None:
        text = _("not known whether it is comparable: {why}").format(why=open_.why or open_.what)
        return Judged(checks, UNKNOWN, None, text)
    return Judged(checks, COMPARABLE, True, _("comparable: {what}").format(what=_what(found)))


def _what(found: Found) -> str:
    chosen = found.chosen
    assert chosen is not None
    ranks = ngettext("on {count} rank", "on {count} ranks", len(found.pairs)).format(count=len(found.pairs))
    return _("request {request}, {tokens} tokens, train step {train} and infer step {infer}, {ranks}").format(
        request=chosen.train.request_id or chosen.infer.request_id or "-",
        tokens=chosen.train.tokens,
        train=chosen.train.line.step,
        infer=chosen.infer.line.step,
        ranks=ranks,
    )


def _checks(found: Found) -> Iterator[Check]:
    """Where nothing can be laid side by side, the first reason, and what is missing in the dumps all the same."""
    for check in (_dumped, _tied, _fit):
        one = check(found)
        yield one
        if one.state == FAIL:
            if wrong := _incomplete(found):
                yield Check("modules", FAIL, _("no layer is missing"), wrong)
            return
    for check in (_ranks, _tokens, _lengths, _modules, _shapes, _readable):
        yield check(found)


def _dumped(found: Found) -> Check:
    what = _("both sides left a dump")
    lacking = [side for side, steps in found.steps.items() if all(step.outline.empty for step in steps)]
    if not lacking:
        return Check("dumps", PASS, what, "; ".join(_amount(found, side) for side in found.steps))
    whys = []
    for side in lacking:
        cause = first_confirmed(found.causes[side])
        why = _("{side}: there is no dump in {path}").format(side=side, path=found.sources[side].dump_path)
        whys.append(f"{why}: {cause.what}" if cause is not None else why)
    return Check("dumps", FAIL, what, "; ".join(whys))


def _amount(found: Found, side: str) -> str:
    steps = [step for step in found.steps[side] if not step.outline.empty]
    dumps = ngettext("{count} dump", "{count} dumps", len(steps)).format(count=len(steps))
    count = len({step.folder.process for step in steps})
    return f"{side}: {dumps} " + ngettext("of {count} process", "of {count} processes", count).format(count=count)


def _tied(found: Found) -> Check:
    what = _("a request is known on both sides")
    one = found.chosen
    if one is not None:
        names = one.train.request_id or "-", one.infer.request_id or "-"
        text = _("{train} on both, by {rule}") if names[0] == names[1] else _("{train} is {infer}, by {rule}")
        return Check("association", PASS, what, text.format(train=names[0], infer=names[1], rule=one.pairs[0].rule))
    if found.candidates:
        count = len(found.candidates)
        return Check(
            "association", PASS, what, ngettext("{count} request", "{count} requests", count).format(count=count)
        )
    return Check("association", FAIL, what, _untied(found))


def _untied(found: Found) -> str:
    """The first reason that the logs give; which logs are missing, where there are none."""
    silent = [side for side, records in found.records.items() if not records.lines]
    if silent:
        sides = ", ".join(silent)
        return _("no step was logged on this side, so its requests are unknown: {sides}").format(sides=sides)
    named = ("tokens-differ", "request-ambiguous", "request-unmatched")
    return next((one.what for one in found.association.problems if one.name in named), _("no request is on both sides"))


def _fit(found: Found) -> Check:
    what = _("its step is the prefill of this request alone, on both sides")
    one = found.chosen
    if one is None:
        first = next((other.unfit for other in found.candidates if other.unfit), "")
        return Check("step", FAIL, what, first or _("the request that was asked for is not tied to the other side"))
    steps = _("train step {train}, infer step {infer}").format(train=one.train.line.step, infer=one.infer.line.step)
    return Check("step", PASS, what, steps)


def _ranks(found: Found) -> Check:
    what = _("every rank has its counterpart")
    apart = next((one for one in found.problems if one.name == "ranks-differ" and not one.where), None)
    if apart is not None or not found.pairs:
        return Check("ranks", FAIL, what, apart.what if apart is not None else _("no rank holds it on both sides"))
    names = [f"{one.train.folder.process} | {one.infer.folder.process}" for one in found.pairs]
    return Check("ranks", PASS, what, ", ".join(names[:4]) + (", …" if len(names) > 4 else ""))


def _tokens(found: Found) -> Check:
    what = _("the token ids are equal")
    ids = {row.ids for row in found.verdict.rows}
    mixed = _why(found, "log-and-dump-differ")
    if ids == {EQUAL} and not mixed:
        return Check("token-ids", PASS, what, _("by their hashes"))
    if DIFFER in ids or mixed:
        return Check("token-ids", FAIL, what, _why(found, "token-ids-differ") or mixed)
    return Check("token-ids", NOT_CHECKED, what, _why(found, "token-ids-unknown"))


def _lengths(found: Found) -> Check:
    what = _("both inputs are as long as the prompt really is")
    rows = found.verdict.rows
    lengths = {(row.train.tokens, row.infer.tokens, row.prompt) for row in rows}
    if all(train is not None and train == infer == prompt for train, infer, prompt in lengths):
        count = rows[0].prompt if rows else 0
        return Check("length", PASS, what, _("{count} tokens").format(count=count))
    others = ("token-ids-differ", "token-ids-unknown", "log-and-dump-differ")
    wrong = [one for one in found.verdict.problems if one.name not in others]
    failed = [one for one in wrong if one.level == ERROR]
    why = next((one.what for one in (*failed, *wrong)), _("it is not known how long they are"))
    return Check("length", FAIL if failed else NOT_CHECKED, what, why)


def _why(found: Found, name: str) -> str:
    return next((one.what for one in found.verdict.problems if one.name == name), "")


def _modules(found: Found) -> Check:
    what = _("no layer is missing")
    if wrong := _incomplete(found):
        return Check("modules", FAIL, what, wrong)
    train, infer = found.coverage[TRAIN].layers, found.coverage[INFER].layers
    if train != infer:
        text = _("the training side has {train} layers, the inference side {infer}")
        return Check("modules", FAIL, what, text.format(train=len(train), infer=len(infer)))
    if not train:
        return Check("modules", NOT_CHECKED, what, _("no layer was recognised on either side"))
    count = ngettext("{count} layer on both sides", "{count} layers on both sides", len(train))
    return Check("modules", PASS, what, count.format(count=len(train)))


def _incomplete(found: Found) -> str:
    for side, one in found.coverage.items():
        if one.complete is False:
            first = next((problem.what for problem in one.problems if problem.level == ERROR), "")
            return _("{side}: {what}").format(side=side, what=first)
    return ""


def _shapes(found: Found) -> Check:
    what = _("the shapes agree at every boundary of the model")
    both = [row for row in found.rows if row.train is not None and row.infer is not None]
    for row in both:
        if not row.equal and row.train is not None and row.infer is not None:
            text = _("{name} on {ranks}: {train} and {infer}").format(
                name=row.name,
                ranks=f"{row.train_rank} | {row.infer_rank}",
                train=list(row.train.shape),
                infer=list(row.infer.shape),
            )
            return Check("shapes", FAIL, what, text)
    if not both:
        return Check("shapes", NOT_CHECKED, what, _("no boundary was found on both sides"))
    count = ngettext("{count} boundary", "{count} boundaries", len(both)).format(count=len(both))
    return Check("shapes", PASS, what, count)


def _readable(found: Found) -> Check:
    what = _("the dumps are whole, and strict JSON")
    steps = [step for one in found.pairs for step in (one.train, one.infer)]
    wrong = [one for step in steps for one in step.outline.problems if one.name in _BROKEN and one.level != NOTE]
    wrong += [one for one in found.problems if one.name == STILL_WRITTEN]
    return Check("readable", FAIL, what, wrong[0].what) if wrong else Check("readable", PASS, what)
