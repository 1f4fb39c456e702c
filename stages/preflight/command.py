"""The baseline command: its first word is found on the training side, and the script it is given is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from locales import _
from stages.preflight.baseline import Baseline
from stages.preflight.finding import OK, PROBLEM, UNKNOWN, Finding
from stages.sides import TRAIN


def check(baseline: Baseline | None, told: Mapping[str, Any] | None) -> list[Finding]:
    """``told``: what the training side answered to paths.py."""
    if baseline is None:
        return [
            Finding(
                "command",
                TRAIN,
                UNKNOWN,
                _("no baseline command is on the card"),
                _("`probepatch task set baseline_command=…`"),
            )
        ]
    if told is None:
        return [Finding("command", TRAIN, UNKNOWN, _("the training side does not answer, so its command is not known"))]
    if baseline.program is None:
        what = _("what the baseline command starts cannot be read from it")
        return [
            Finding(
                "command", TRAIN, UNKNOWN, what, _("try it by hand; variables and unclosed quotes hide the program")
            )
        ]
    out = [_program(baseline.program, told)]
    if baseline.script is not None:
        out.append(_script(baseline.script, told["paths"].get("script")))
    return out


def _program(name: str, told: Mapping[str, Any]) -> Finding:
    found = told["commands"].get(name)
    if found:
        return Finding(
            "command", TRAIN, OK, _("{name} is {path}").format(name=name, path=found), facts={"program": found}
        )
    file = told["paths"].get("program")
    if file and file["kind"] == "file":
        what, todo = _("{path} is not executable").format(path=file["path"]), _("chmod +x, or start it with bash")
    else:
        what, todo = (
            _("{name} is not found on the training side").format(name=name),
            _("check train.prefix, train.workdir and its PATH"),
        )
    return Finding("command", TRAIN, PROBLEM, what, todo, {"program": None})


def _script(name: str, file: Mapping[str, Any] | None) -> Finding:
    if file is None:
        what = _("whether {name} is there is not known: the folder it starts in is not").format(name=name)
        return Finding("command", TRAIN, UNKNOWN, what, _("`probepatch task set train.workdir=/…`"))
    facts = {"script": file["path"]}
    if file["kind"] != "file":
        what = _("the script {path} is not there").format(path=file["path"])
        return Finding("command", TRAIN, PROBLEM, what, _("check train.workdir and the command"), facts)
    if not file["readable"]:
        return Finding(
            "command", TRAIN, PROBLEM, _("{path} cannot be read").format(path=file["path"]), "chmod +r", facts
        )
    return Finding("command", TRAIN, OK, _("its script is {path}").format(path=file["path"]), facts=facts)
