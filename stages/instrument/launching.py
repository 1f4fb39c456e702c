"""The command that starts the capture: the baseline with switches and flags, in a form that survives all who parse it again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from codemods.errors import ProbePatchError
from locales import _
from stages.inputs.launch import VERL, Launch
from stages.inputs.quoting import for_ray, for_shell, override
from stages.inputs.rules.reach import reached
from stages.inputs.rules.rule import FAIL, UNKNOWN
from stages.inputs.run import Known, Run, parse, runs
from stages.inputs.shell.values import text_of
from stages.instrument.native import Native, put

_RAY_ENV = "ray_kwargs.ray_init.runtime_env.env_vars"


@dataclass(frozen=True)
class Doubt:
    """A variable that does not (``sure``) or may not reach the workers, and why."""

    name: str
    why: str
    sure: bool


@dataclass(frozen=True)
class Started:
    """``command`` is what is to be run; ``completed``: our flags and the job's runtime environment were put into it, else they are
    for whoever keeps the script: ``flags`` and ``doubts`` say what. ``read``: a launch was found in it, or nothing is told."""

    command: str
    completed: bool
    flags: tuple[str, ...]
    doubts: tuple[Doubt, ...]
    read: bool


def starting(
    command: str, workdir: str | None, known: Known, environment: Mapping[str, str], native: Native | None
) -> Started:
    """The command with what it needs. Nothing is run to read it."""
    found = _runs(command, workdir, known, environment)
    flags = native.words(_starter(found, native, known)) if native is not None else []
    direct = _direct(command, found)
    whole = _completed(direct, environment, flags) if direct is not None else None
    if whole is None:
        return Started(command, False, tuple(flags), _doubts(found, environment), bool(found))
    again = _runs(whole, workdir, known, environment)
    return Started(whole, whole != command, (), _doubts(again, environment), bool(again))


def _starter(found: Sequence[Run], native: Native, known: Known) -> str | None:
    """The trainer that starts the engine; None where the engine has a command of its own."""
    if not found:
        return known.framework
    if any(native.engine.startswith(run.framework) for run in found if not run.trains):
        return None
    return next((run.framework for run in found if run.trains), None)


def without_prefix(command: str, prefix: Sequence[str]) -> str:
    """A baseline command that repeats the side's prefix is meant to run behind it."""
    for typed in (" ".join(prefix), shlex.join(prefix)):
        if prefix and command.startswith(typed + " "):
            return command[len(typed) + 1 :]
    return command


def _runs(command: str, workdir: str | None, known: Known, environment: Mapping[str, str]) -> list[Run]:
    told = replace(known, env={**known.env, **environment})
    try:
        script = parse(Path(workdir or "/") / "baseline-command", command + "\n", told)
        return list(runs([script], told))
    except (ProbePatchError, OSError):
        return []  # it is not to be read: nothing is said of it


def _doubts(found: Sequence[Run], environment: Mapping[str, str]) -> tuple[Doubt, ...]:
    out = []
    for run in found:
        for name, value in environment.items():
            one = reached(run, name)
            if one.state in (FAIL, UNKNOWN):
                out.append(Doubt(name, one.reason, one.state == FAIL))
            elif one.value != value:
                out.append(Doubt(name, _("the script sets it to {value}").format(value=one.value), True))
    return tuple(dict.fromkeys(out))


def _direct(command: str, found: Sequence[Run]) -> Launch | None:
    """The one launch, when it is the whole command, with words that are all known."""
    if len(found) != 1 or found[0].launch is None:
        return None
    launch = found[0].launch
    texts = [text_of(arg.value) for arg in launch.command.args]
    try:
        typed = shlex.split(command)
    except ValueError:
        return None
    return launch if typed == texts else None


def _completed(launch: Launch, environment: Mapping[str, str], flags: Sequence[str]) -> str | None:
    """None where a flag of the command's own cannot be joined with ours."""
    words = [str(text_of(arg.value)) for arg in launch.command.args]
    begin = launch.job.begin if launch.job is not None else 0
    own, entry = words[:begin], words[begin:]
    whole = put(entry, flags)
    if whole is None:
        return None
    if launch.job is not None:
        own = _with_runtime_env(own, environment)
        whole = [word if word in entry else _through_ray(word) for word in whole]
    return " ".join(for_shell(word) for word in [*own, *whole])


def _through_ray(word: str) -> str:
    """A word in the entry point of a job, where a second shell parses it. Raises QuotingError."""
    name, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
    return name + equals + for_ray(json.loads(value)) if value.startswith("{") else word


def _with_runtime_env(words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """``ray job submit`` with the variables in its runtime environment; what is there already stays."""
    out = list(words)
    name = "--runtime-env-json"
    at = next((n for n, word in enumerate(out) if word == name or word.startswith(name + "=")), None)
    if at is None:
        place = out.index("submit") + 1
        return [*out[:place], f"{name}={runtime_env(environment)}", *out[place:]]
    joined = "=" in out[at]
    place = at if joined else at + 1
    try:
        found = json.loads(out[place].partition("=")[2] if joined else out[place])
        held = {**found, "env_vars": {**found.get("env_vars", {}), **environment}}
    except (ValueError, TypeError, AttributeError, IndexError):
        return out  # stage 4's rule runtime-env says what is wrong with it
    text = json.dumps(held, separators=(",", ":"))
    out[place] = f"{name}={text}" if joined else text
    return out


def runtime_env(environment: Mapping[str, str]) -> str:
    """The JSON of ``ray job submit --runtime-env-json``: compact, all values texts."""
    return json.dumps({"env_vars": dict(environment)}, separators=(",", ":"))


def hydra_words(environment: Mapping[str, str]) -> list[str]:
    """For verl: the variables in Ray's runtime environment, as overrides; texts stay texts."""
    return [override(f"{_RAY_ENV}.{name}", value, "++") for name, value in environment.items()]


def env_file(environment: Mapping[str, str]) -> str:
    """Lines for ``set -a; . FILE`` and for ``docker run --env-file``."""
    return "".join(f"{name}={for_shell(value)}\n" for name, value in environment.items())


def page(
    side: str, prefix: Sequence[str], workdir: str | None, trainer: str | None, made: Started, env: Mapping[str, str]
) -> str:
    """How to start one side, in every form; for people. ``prefix`` as a shell of this machine is to be given it."""
    assigned = [f"{name}={value}" for name, value in env.items()]
    inner = " ".join(map(for_shell, ["env", *assigned, "bash", "-c", made.command]))
    line = f"cd {for_shell(workdir)} && {inner}" if workdir else inner
    remote = bool(prefix) and prefix[0].rpartition("/")[2] == "ssh"
    behind = [for_shell(word) if remote else word for word in ("bash", "-c", line)]
    shell = " ".join(map(for_shell, [*prefix, *behind])) if prefix else line
    lines = [f"# {side}", "", _("The whole command, for a shell:"), "", f"    {shell}", ""]
    lines += [_("Variables in {file}: `set -a; . {file}; set +a`").format(file=f"{side}.env"), ""]
    lines += [_("In a script that runs `ray job submit`, for its runtime environment:"), ""]
    lines += [f"    --runtime-env-json={for_shell(runtime_env(env))}"]
    if trainer == VERL:
        lines += ["", _("In a script that runs verl without a job, as overrides:"), ""]
        lines += [f"    {for_shell(word)} \\" for word in hydra_words(env)]
    if made.flags:
        lines += ["", _("The engine's own dump, to be added where the script starts it:"), ""]
        lines += [f"    {' '.join(map(for_shell, made.flags))}", "", _("the same behind `ray job submit … --`:"), ""]
        lines += [f"    {' '.join(for_shell(_through_ray(word)) for word in made.flags)}"]
    for doubt in made.doubts:
        text = (
            _("{name} does not reach the workers: {why}")
            if doubt.sure
            else _("{name} may not reach the workers: {why}")
        )
        lines += ["", text.format(name=doubt.name, why=doubt.why)]
    return "\n".join(lines) + "\n"
