"""The patched copy is the one that is imported."""

from __future__ import annotations

import json
import posixpath
from pathlib import PurePosixPath

from locales import _
from stages.inputs.rules.reach import line_of
from stages.inputs.rules.rule import FAIL, PASS, UNKNOWN, Rule, Verdict
from stages.inputs.run import Run, folder_text
from stages.inputs.shell.values import shown, text_of


def _package(run: Run) -> Verdict | None:
    """By PYTHONPATH, the working folder, or the program's own path."""
    wanted = run.known.checkout
    if not run.trains:
        return None
    if wanted is None:
        return Verdict(UNKNOWN, _("where the patched copy is, is not known: `probepatch task set train.checkout=…`"))
    path, where, problem = _python_path(run)
    if problem:
        return Verdict(UNKNOWN, problem, None, where)
    for place in path:
        if _same(place, wanted):
            return Verdict(PASS, _("PYTHONPATH has the patched copy {path}").format(path=wanted), place, where)
    program = run.launch.program if run.launch is not None else ""
    folder = folder_text(run)
    if run.launch is not None and program.endswith(".py"):  # its folder comes first
        full = program if program.startswith("/") else posixpath.join(folder, program) if folder else None
        if full is not None and PurePosixPath(full).parent == PurePosixPath(wanted):
            return Verdict(PASS, _("the program stands in the patched copy"), program, run.where)
    elif folder is not None and _same(folder, wanted) and run.launch is not None and run.launch.job is None:
        return Verdict(PASS, _("it is started in the patched copy with `python -m`"), folder, run.where)
    if path and folder is not None:
        text = _("neither PYTHONPATH nor the folder it is started in is the patched copy {path}")
        return Verdict(FAIL, text.format(path=wanted), ":".join(path), where)
    text = _(
        "PYTHONPATH does not name the patched copy {path}: let the script set it (for ray job submit in env_vars), or cd there; "
        "where `probepatch preflight` found that copy imported, `--accept package` takes it"
    )
    return Verdict(UNKNOWN, text.format(path=wanted), ":".join(path) or None, where)


def _same(one: str, wanted: str) -> bool:
    a, b = posixpath.normpath(one), posixpath.normpath(wanted)
    return a == b or a in (posixpath.join(b, "src"), posixpath.join(b, "python"))


def _python_path(run: Run) -> tuple[list[str], str | None, str]:
    """Its parts, where they stand, and why they are not known."""
    env = run.runtime_env()
    if env is not None:
        member = env.variable("PYTHONPATH") if not env.problem else None
        where = line_of(env.value)
        if member is None:
            return [], where, ""
        if not member.known or member.kind != "string":
            return [], where, _("PYTHONPATH in the runtime environment is not known")
        return [part for part in json.loads(member.text).split(":") if part], where, ""
    value = run.launch.command.env.get("PYTHONPATH") if run.launch is not None else None
    if value is None:
        return [], None, ""
    text = text_of(value)
    if text is None:
        return [part for part in shown(value, ":").split(":") if part], line_of(value), ""
    return [part for part in text.split(":") if part], line_of(value), ""


RULES = (
    Rule(
        "package",
        "train",
        _("what is imported is the patched copy"),
        _("with an unpatched copy on the path the run looks right, and the dump is empty"),
        _package,
    ),
)
