"""The patched copy is the one that is imported."""

from __future__ import annotations

from dataclasses import replace

from locales import _
from stages.inputs.copies import Copy, Imported
from stages.inputs.rules.rule import FAIL, PASS, UNKNOWN, OnPath, Rule, Verdict
from stages.inputs.rules.search import Looked, UntoldError, search_of
from stages.inputs.run import Run
from stages.sides import INFER, TRAIN


def _package(run: Run) -> Verdict | None:
    """Of a training the training side's copy; of an engine by itself the inference side's, where the card names one."""
    side = TRAIN if run.trains else INFER
    copy = run.known.copies.get(side)
    if copy is None:
        where = _("where the patched copy is, is not known: `probepatch task set train.checkout=…`")
        return Verdict(UNKNOWN, where) if run.trains else None
    if run.framework not in (copy.package, copy.package.partition("_")[0]):
        text = _("the task card's {side}.framework is {name}: what this launch imports is not known")
        return Verdict(UNKNOWN, text.format(side=side, name=copy.package)) if run.trains else None
    if run.launch is None:
        return Verdict(UNKNOWN, _("a config does not say what environment it is run in"))
    try:
        looked = search_of(run, copy)
    except UntoldError as error:
        todo = _("say it plainly in the script, or look yourself and `--accept package`")
        return Verdict(UNKNOWN, f"{error}; {todo}", None, run.where)
    found = copy.find(looked.search) if looked.search.places else Imported(why=looked.search.rest)
    return _judged(copy, looked, found, run.where)


def _judged(copy: Copy, looked: Looked, found: Imported, launch: str) -> Verdict:
    where = looked.where or launch
    value = found.root or looked.given
    names = {"package": copy.package, "path": copy.checkout, "by": found.by, "root": found.root}
    if found.why:
        todo = _("let the script put {path} first on PYTHONPATH").format(path=copy.checkout)
        return Verdict(
            UNKNOWN, f"{found.why}; {todo}" if found.why == looked.search.rest else found.why, looked.given, where
        )
    if found.ours:
        text = _("{package} is imported from the patched copy {path}, as {by} finds it from there")
        return Verdict(PASS, text.format(**names), value, where)
    if found.root is None:
        text = _("{package} is imported from nowhere, as {by} searches: not from the patched copy {path}")
    else:
        text = _("{package} is imported from {root}, as {by} finds it: not from the patched copy {path}")
    reason = text.format(**names)
    if looked.given is not None:
        return Verdict(FAIL, reason, value, where)
    search = looked.search
    helped = copy.find(replace(search, places=(*looked.own, copy.checkout, *search.places[len(looked.own) :])))
    if helped.ours:
        return Verdict(FAIL, reason, value, where, (OnPath(copy.checkout),))
    return Verdict(
        FAIL, _("{reason}; the folder that it is started in comes first").format(reason=reason), value, where
    )


RULES = (
    Rule(
        "package",
        "both",
        _("what is imported is the patched copy"),
        _("with an unpatched copy on the path the run looks right, and the dump is empty"),
        _package,
    ),
)
