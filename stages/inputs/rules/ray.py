"""What passes through Ray arrives: the runtime environment, the second parse of an entry point, the switches of a capture."""

from __future__ import annotations

from collections.abc import Sequence

from locales import _
from stages.inputs.quoting import second_parse
from stages.inputs.rules.reach import line_of, reaches
from stages.inputs.rules.rule import FAIL, PASS, UNKNOWN, Rule, Verdict
from stages.inputs.run import Run
from stages.inputs.shell.values import Arg, shown


def _runtime_env(run: Run) -> Verdict | None:
    env = run.runtime_env()
    if env is None:
        return None
    where = line_of(env.value)
    if env.problem:
        if "\ufffc" in env.text:
            return Verdict(
                UNKNOWN, _("it cannot be read before it is known: {why}").format(why=env.problem), None, where
            )
        if env.text.strip() == "null":
            return Verdict(FAIL, _("the runtime environment is null"), "null", where)
        return Verdict(FAIL, _("it is no JSON object: {why}").format(why=env.problem), None, where)
    problems = [
        _("`{name}` is no key that Ray knows, and is passed over").format(name=one.name) for one in env.unknown_keys
    ]
    problems += [
        _("{name} is {value}: Ray takes texts only").format(name=one.name, value=one.text) for one in env.not_texts
    ]
    if problems:
        return Verdict(
            FAIL, "; ".join(problems), ", ".join(one.name for one in (*env.unknown_keys, *env.not_texts)), where
        )
    names = [one.name for one in env.env_vars.members] if env.env_vars is not None else []
    return Verdict(PASS, _("its keys are known, and its variables are texts"), ", ".join(names) or None, where)


def _second_parse(run: Run) -> Verdict | None:
    if run.launch is None or run.launch.job is None:
        return None
    args = run.launch.command.args[run.launch.job.begin :]
    broken = _broken(args)
    if not broken:
        blank = [arg for arg in args if shown(arg.value).lstrip().startswith(("{", "[")) and " " in shown(arg.value)]
        text = _("every argument arrives as it was written")
        if blank:
            text += _("; JSON with blanks does so only while every expansion on its way is quoted: write it compactly")
        return Verdict(PASS, text, None, ", ".join(dict.fromkeys(str(arg.where) for arg in blank)) or None)
    places = [arg.where for arg, _why in broken if arg.where]
    reason = "; ".join(dict.fromkeys(why for _arg, why in broken))
    return Verdict(
        FAIL,
        reason,
        ", ".join(shown(arg.value)[:80] for arg, _why in broken[:3]),
        ", ".join(dict.fromkeys(places)) or None,
    )


def _broken(args: Sequence[Arg]) -> list[tuple[Arg, str]]:
    """The arguments that do not arrive, each with the reason; what is unknown is taken as one harmless word."""
    found: list[tuple[Arg, str]] = []
    for arg in args:
        text = shown(arg.value, "X")
        if not arg.whole and text.count("{") != text.count("}"):
            why = _("JSON was split at its blanks by an expansion without quotes: write it compactly, without a blank")
            found.append((arg, why))
            continue
        arrived = second_parse(["x", text])
        if arrived == ["x", text]:
            continue
        if arrived is None:
            why = _("the second shell cuts the command there")
        elif len(arrived) == 2 and arrived[1] is not None:
            why = _("it arrives as {text}").format(text=arrived[1][:80])
        else:
            why = _("the second shell makes something else of it")
        found.append((arg, why))
    return found


def _switch(name: str, reason: str) -> Rule:
    return Rule(
        name.lower().replace("_", "-"),
        "both",
        _("{name}=1 reaches the workers").format(name=name),
        reason,
        lambda run: reaches(run, name, "1", reason),
    )


RULES = (
    _switch("DUMP_ON", _("without it nothing is captured")),
    _switch("PROMPTS_ONLY", _("the training side has to run on the prompt alone, as the engine's prefill does")),
    Rule(
        "runtime-env",
        "both",
        _("the runtime environment is one that Ray takes whole"),
        _("a misspelt key is passed over without a word, a number is refused late: the switches never arrive"),
        _runtime_env,
    ),
    Rule(
        "second-parse",
        "both",
        _("arguments survive the second shell of `ray job submit`"),
        _("Ray joins the entry point into one line, which a shell parses again: quotes, `;`, `$` and braces are lost"),
        _second_parse,
    ),
)
