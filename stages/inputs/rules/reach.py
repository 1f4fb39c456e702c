"""Whether a variable reaches the workers, which Ray starts in an environment of their own."""

from __future__ import annotations

import json
from dataclasses import dataclass

from locales import _
from stages.inputs.rules.rule import FAIL, PASS, UNKNOWN, SetEnv, Verdict
from stages.inputs.run import Run
from stages.inputs.shell.reading import Command
from stages.inputs.shell.values import Value, assumptions, leaves, shown, text_of, why_unknown


@dataclass(frozen=True)
class Reached:
    """``state``: PASS with its ``value``, FAIL (it does not get there), UNKNOWN."""

    state: str
    reason: str
    value: str | None = None
    where: str | None = None
    assumes: frozenset[str] = frozenset()
    doubtful: bool = False  # exported, which Ray may not hand on: to tell Ray makes it sure


def reaches(run: Run, name: str, wanted: str, reason: str) -> Verdict | None:
    """A rule's verdict on a variable that has to be ``wanted``."""
    found = reached(run, name)
    wish = (SetEnv(name, wanted),)
    if found.state == PASS:
        ok = found.value == wanted
        text = f"{reason} ({found.reason})" if found.reason else reason
        return Verdict(
            PASS if ok else FAIL, text, f"{name}={found.value}", found.where, () if ok else wish, found.assumes
        )
    return Verdict(found.state, found.reason, None, found.where, wish if found.state == FAIL or found.doubtful else ())


def reached(run: Run, name: str) -> Reached:
    if run.launch is None:
        return Reached(UNKNOWN, _("a config does not say what environment it is run in"))
    own = _own(run, name)
    if own is not None:
        return own
    if run.launch.job is not None:
        return _through_job(run, name)
    return _inherited(run, name)


def _own(run: Run, name: str) -> Reached | None:
    """verl's ``ray_kwargs.ray_init.runtime_env.env_vars.NAME``."""
    entry = run.facts.entry(f"ray_kwargs.ray_init.runtime_env.env_vars.{name}")
    if entry is None:
        return None
    text = entry.text
    if text is None or entry.maybe:
        return Reached(UNKNOWN, entry.why, where=entry.where)
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return Reached(PASS, "", text[1:-1], entry.where, entry.assumes)
    try:
        json.loads(text.lower())
    except ValueError:
        return Reached(PASS, "", text, entry.where, entry.assumes)
    why = _("{written}: hydra makes a number or a truth value of it, and Ray takes texts only: quote it for hydra, too")
    return Reached(FAIL, why.format(written=entry.written), where=entry.where)


def _through_job(run: Run, name: str) -> Reached:
    assert run.launch is not None and run.launch.job is not None
    job = run.launch.job
    env = run.runtime_env()
    if env is None:
        if job.has("--runtime-env"):
            return Reached(UNKNOWN, _("the runtime environment is in a file (--runtime-env) that is not read"))
        why = _(
            "`ray job submit` has no --runtime-env-json, and the environment of the shell does not travel with the job"
        )
        return Reached(FAIL, why, where=run.where)
    line = line_of(env.value)
    if env.problem:
        return Reached(UNKNOWN, _("the runtime environment cannot be read: {why}").format(why=env.problem), where=line)
    member = env.variable(name)
    if member is None:
        return Reached(
            FAIL, _("{name} is not in the env_vars of the runtime environment").format(name=name), where=line
        )
    if not member.known:
        return Reached(
            UNKNOWN,
            _("the value of {name} is not known: {why}").format(name=name, why=why_unknown(env.value)),
            where=line,
        )
    if member.kind != "string":
        return Reached(
            FAIL, _("{name} is {value}, and Ray takes texts only").format(name=name, value=member.text), where=line
        )
    return Reached(PASS, "", json.loads(member.text), line, assumptions(env.value))


def line_of(value: Value) -> str | None:
    first = next((leaf for leaf in leaves(value) if leaf.source is not None and leaf.source.path is not None), None)
    return first.source.where(first.start) if first is not None and first.source is not None else None


def _inherited(run: Run, name: str) -> Reached:
    """No job: the workers inherit from whatever started Ray."""
    assert run.launch is not None
    command = run.launch.command
    value = command.env.get(name)
    if not run.trains:
        return _given(name, value, run.where, "")
    first = ray_start(run)
    if first is not None:
        where = first.source.where(first.node.start)
        if name in first.env:
            return _given(name, first.env[name], where, _("exported before `ray start`"))
        if value is None:
            return Reached(FAIL, _("{name} is not set in the script").format(name=name), where=run.where)
        return Reached(
            FAIL,
            _("`ray start` ran before {name} was exported: the workers do not get it").format(name=name),
            where=where,
        )
    if value is None:
        return Reached(FAIL, _("{name} is not set in the script").format(name=name), where=run.where)
    if shown(value) and text_of(value) is not None:
        why = _("{name}={value} is exported, which reaches the workers only where this process starts Ray itself")
        at = line_of(value) or run.where
        return Reached(UNKNOWN, why.format(name=name, value=text_of(value)), where=at, doubtful=True)
    return Reached(UNKNOWN, why_unknown(value), where=run.where)


def ray_start(run: Run) -> Command | None:
    """The script's own `ray start`, the last before the launch."""
    assert run.launch is not None
    before = [one for one in run.script.commands if one.started < run.launch.command.started]
    return next((one for one in reversed(before) if _starts_ray(one.args[0].text, [a.text for a in one.args])), None)


def _given(name: str, value: Value | None, where: str, reason: str) -> Reached:
    if value is None:
        return Reached(FAIL, _("{name} is not set in the script").format(name=name), where=where)
    text = text_of(value)
    if text is None:
        return Reached(UNKNOWN, why_unknown(value), where=where)
    return Reached(PASS, reason, text, line_of(value) or where, assumptions(value))


def _starts_ray(first: str | None, texts: list[str | None]) -> bool:
    return "ray" in (first or "").split("/")[-1:] and "start" in texts[1:3]
