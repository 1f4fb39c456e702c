"""Where a launch looks for packages, as far as its script says it: its own folder, PYTHONPATH, and which interpreter it is."""

from __future__ import annotations

import json
import posixpath
import re
from dataclasses import dataclass, replace

from locales import _
from stages.inputs.copies import Copy, Search
from stages.inputs.launch import Job, after
from stages.inputs.rules.reach import line_of, ray_start
from stages.inputs.run import Run
from stages.inputs.shell.expand import from_environment
from stages.inputs.shell.values import HOLE, Value, leaves, shown, text_of, why_unknown

NAME = "PYTHONPATH"
_OUTSIDE, _CLUSTER = (
    "\ue000",
    "\ue001",
)  # what is on PYTHONPATH before the script begins; what Ray's own workers have there
_EXPANDED = re.compile(r"\$(?:PYTHONPATH|\{PYTHONPATH\})")  # in a runtime environment, by Ray
_PYTHON = re.compile(r"python(?:\d(?:\.\d+)?)?|torchrun|vllm")
_WRAPPERS = ("nohup", "env", "exec", "time", "setsid", "stdbuf", "numactl", "nice", "ionice", "timeout", "taskset")
_HARMLESS = re.compile(r"-\S*|[\d.,-]+[smhd]?|\w+=.*", re.S)
_MANAGERS = ("conda", "mamba", "micromamba")
_ASCEND = "set_env.sh"  # of the Ascend toolkits: it brings their own packages only


class UntoldError(Exception):
    """What cannot be told from the script, and why."""


@dataclass(frozen=True)
class Looked:
    """``given``: PYTHONPATH as the script sets it, at ``where``; None: it does not. ``own``: what comes before PYTHONPATH."""

    search: Search
    own: tuple[str, ...]
    given: str | None
    where: str | None


def search_of(run: Run, copy: Copy) -> Looked:
    """Raises UntoldError where it is not known who searches, or what comes first."""
    search, own = _interpreter(run, copy), _first(run, copy)
    written = _written(run)
    path, rest = _places(run, copy, written)
    given = written.text.replace(_OUTSIDE, f"${NAME}").replace(HOLE, "…").strip(":") if written.set else None
    return Looked(replace(search, places=(*own, *path), rest=rest), own, given, written.where)


# --- the folder that comes before PYTHONPATH ---------------------------------------------------------------------------------


def _first(run: Run, copy: Copy) -> tuple[str, ...]:
    """Of `python -m` the current folder, of a program its own; of `vllm serve` none that matters."""
    assert run.launch is not None
    program = run.launch.program
    if program == "vllm serve":
        return ()
    if program.endswith(".py"):
        if HOLE in program or "…" in program:
            raise UntoldError(
                _("where {program} stands is not known, and its folder comes first").format(program=program)
            )
        if not program.startswith("/"):
            program = posixpath.join(_folder(run, copy), program)
        return (posixpath.dirname(posixpath.normpath(program)),)
    return (_folder(run, copy),)


def _folder(run: Run, copy: Copy) -> str:
    """The current one of the launch. Raises UntoldError."""
    assert run.launch is not None
    if run.launch.job is not None:
        sent = _sent(run, run.launch.job)
        if sent is not None:
            return sent if sent.startswith("/") else posixpath.normpath(posixpath.join(_shells(run, copy), sent))
        start = ray_start(run)
        if start is None:
            raise UntoldError(
                _(
                    "the job is started in the folder where Ray was started, which the script does not tell, and what stands there "
                    "comes first: name the program by its whole path, or give the job a working_dir"
                )
            )
        return _where(start.folder, copy)
    return _shells(run, copy)


def _shells(run: Run, copy: Copy) -> str:
    assert run.launch is not None
    return _where(run.launch.command.folder, copy)


def _where(folder: Value, copy: Copy) -> str:
    if not folder:
        if copy.folder is None:
            raise UntoldError(
                _(
                    "the folder that the script is started in is not known, and comes first: `probepatch task set {fact}=…`"
                ).format(fact="train.workdir")
            )
        return copy.folder
    text = text_of(folder)
    if text is None:
        raise UntoldError(_("{why}, and that folder comes first").format(why=why_unknown(folder)))
    return text


def _sent(run: Run, job: Job) -> str | None:
    """``working_dir``, which Ray sends to the job's machine. Raises UntoldError."""
    found: list[str | None] = []
    for number, arg in enumerate(job.options):
        name, equals, value = shown(arg.value, HOLE).partition("=")
        if name == "--working-dir":
            found.append(value if equals else next((one.text for one in job.options[number + 1 :]), None))
    env = run.runtime_env()
    if env is not None and not env.problem:
        member = next((one for one in env.members if one.name == "working_dir"), None)
        found += [json.loads(member.text) if member.known and member.kind == "string" else None] if member else []
    if not found:
        return None
    text = found[0]
    if text is None or HOLE in text or "://" in text:
        raise UntoldError(_("what the job's working_dir is, is not known, and it comes first"))
    return text


# --- PYTHONPATH ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Written:
    """PYTHONPATH as the workers get it, with marks for what is not the script's; ``why``: about its first hole."""

    text: str
    where: str | None = None
    why: str = ""
    set: bool = True


def _written(run: Run) -> _Written:
    """Raises UntoldError."""
    assert run.launch is not None
    launch = run.launch
    entry = run.facts.entry(f"ray_kwargs.ray_init.runtime_env.env_vars.{NAME}")
    if entry is not None:
        if entry.text is None or entry.maybe:
            raise UntoldError(entry.why or entry.maybe)
        return _Written(_EXPANDED.sub(_CLUSTER, entry.text.strip("'\"")), entry.where)
    for arg in launch.command.args[launch.job.begin if launch.job else 0 : launch.begin]:
        if shown(arg.value).startswith(f"{NAME}="):  # of `env`
            return _of_shell(after(arg.value, len(NAME) + 1), arg.where)
    if launch.job is not None:
        return _of_job(run, launch.job)
    start = ray_start(run) if run.trains else None
    value = (start or launch.command).env.get(NAME)
    return _of_shell(value, line_of(value)) if value is not None else _Written(_OUTSIDE, set=False)


def _of_shell(value: Value, where: str | None) -> _Written:
    parts, why = [], ""
    for leaf in leaves(value):
        if leaf.text is None and leaf.why == from_environment(NAME):
            parts.append(f":{_OUTSIDE}:")
        elif NAME in leaf.assumes:
            parts.append(f":{_OUTSIDE}:{leaf.text}" if not leaf.text else HOLE)
        else:
            parts.append(HOLE if leaf.text is None else leaf.text)
        why = why or (leaf.why if parts[-1] == HOLE else "")
    return _Written("".join(parts), where, why)


def _of_job(run: Run, job: Job) -> _Written:
    env = run.runtime_env()
    if env is None:
        if job.has("--runtime-env"):
            raise UntoldError(_("the runtime environment is in a file (--runtime-env) that is not read"))
        return _Written(_CLUSTER, set=False)
    if env.problem:
        raise UntoldError(_("the runtime environment cannot be read: {why}").format(why=env.problem))
    member, where = env.variable(NAME), line_of(env.value)
    if member is None:
        return _Written(_CLUSTER, where, set=False)
    if member.kind != "string":
        raise UntoldError(_("{name} is {value}, and Ray takes texts only").format(name=NAME, value=member.text))
    text = json.loads(member.text) if member.known else member.text.strip('"')
    return _Written(_EXPANDED.sub(_CLUSTER, text), where, why_unknown(env.value))


def _places(run: Run, copy: Copy, written: _Written) -> tuple[list[str | None], str]:
    """Those that are known from the front, and why what comes behind them is not."""
    found: list[str | None] = []
    for part in written.text.split(":"):
        if part == _CLUSTER:
            found.append(None)
        elif part == _OUTSIDE:
            unread = [name for name in run.script.missing if posixpath.basename(name) not in (_ASCEND, "activate")]
            if unread:
                text = _("{file} is not there to be read; what it sets is not known")
                return found, text.format(file=unread[0] or _("a script"))
            if copy.outside is None:
                return found, _("the {name} of the baseline command is not plain").format(name=NAME)
            found += copy.outside
        elif part and not part.startswith("/"):
            return found, written.why or _("`{part}` in {name} is no whole path").format(part=part, name=NAME)
        elif HOLE in part or _OUTSIDE in part or _CLUSTER in part:
            return found, written.why or _("a part of {name} is not known").format(name=NAME)
        elif part:
            found.append(part)
    return found, ""


# --- the interpreter -----------------------------------------------------------------------------------------------------------


def _interpreter(run: Run, copy: Copy) -> Search:
    """The card's, another that the script names, or one in a folder that the script puts before PATH. Raises UntoldError."""
    assert run.launch is not None
    launch = run.launch
    words = [arg.text for arg in launch.command.args[launch.job.begin if launch.job else 0 : launch.begin - 1]]
    at = next((n for n in reversed(range(len(words))) if _PYTHON.fullmatch(_base(words[n]))), None)
    strange = next((word for word in words[:at] if not _harmless(word)), None if at is not None else "…")
    if at is None or strange is not None or None in words[:at]:
        text = _("it is started through `{word}`: which interpreter that takes is not known")
        raise UntoldError(text.format(word=strange or "…"))
    word, options = str(words[at]), words[at + 1 :]
    if _base(word).startswith("python") and any(
        re.fullmatch(r"-[A-Za-z]*[EIP][A-Za-z]*", one or "") for one in options
    ):
        raise UntoldError(_("`{word}` has an option with which {name} does not count").format(word=word, name=NAME))
    if "/" in word:
        if posixpath.dirname(word) == posixpath.dirname(copy.python or ""):
            return Search(())
        if word.startswith("/") and _base(word).startswith("python"):
            return Search((), python=word)
        raise UntoldError(_("which interpreter `{word}` runs in is not known").format(word=word))
    _expect_no_other(run, copy)
    program = word if word.startswith("python") else "python3"
    return Search((), program=program, bins=_bins(run)) if launch.job is None else Search(())


def _base(word: str | None) -> str:
    return posixpath.basename(word or "")


def _harmless(word: str | None) -> bool:
    return word is None or _base(word) in _WRAPPERS or _HARMLESS.fullmatch(word) is not None


def _expect_no_other(run: Run, copy: Copy) -> None:
    """Raises UntoldError where the script activates another environment than the card's."""
    assert run.launch is not None
    python = copy.python or ""
    for name in run.script.missing:
        if posixpath.basename(name) == "activate" and posixpath.dirname(name) != posixpath.dirname(python):
            raise UntoldError(
                _("the script activates {name}, which is not the environment on the task card").format(name=name)
            )
    for one in run.script.commands:
        texts = [arg.text or "…" for arg in one.args]
        if one.started < run.launch.command.started and _base(texts[0]) in _MANAGERS and texts[1:2] == ["activate"]:
            name = texts[2] if len(texts) > 2 else "base"
            if f"/envs/{name}/" not in python and not python.startswith(f"{name}/"):
                text = _("the script activates {name}, which is not the environment on the task card")
                raise UntoldError(text.format(name=name))


def _bins(run: Run) -> tuple[str, ...]:
    """The folders that the script puts before PATH. Raises UntoldError."""
    assert run.launch is not None
    found: list[str] = []
    value = run.launch.command.env.get("PATH", ())
    text = "".join(
        f":{_OUTSIDE}:" if leaf.why == from_environment("PATH") else HOLE if leaf.text is None else leaf.text
        for leaf in leaves(value)
    )
    for part in text.split(":"):
        if part == _OUTSIDE:
            break
        if HOLE in part or (part and not part.startswith("/")):
            raise UntoldError(
                _("the script sets PATH, and a part of it is not known: {why}").format(why=why_unknown(value))
            )
        found += [part] if part else []
    return tuple(found)
