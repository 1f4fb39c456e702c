"""A folder put first on PYTHONPATH by the script itself: one line before what it is for."""

from __future__ import annotations

from locales import _
from stages.inputs.edits import Change, NotEditableError
from stages.inputs.quoting import in_quotes
from stages.inputs.rules.reach import ray_start
from stages.inputs.rules.rule import OnPath
from stages.inputs.run import Run


def export_line(run: Run, wish: OnPath) -> Change:
    """Before the launch, and before Ray is started. Raises NotEditableError."""
    if run.launch is None:
        raise NotEditableError(_("a config does not say what environment it is run in"))
    command = (ray_start(run) if run.trains else None) or run.launch.command
    if command.source.path != run.script.path.absolute():
        raise NotEditableError(_("the launch stands in another file, {where}").format(where=run.launch.where))
    text, at = run.script.text, command.node.start
    line = text.rfind("\n", 0, at) + 1
    indent, before = text[line:at], text[:line].rstrip()
    if indent.strip() or before.endswith(("\\", "&&", "|")):
        words = _("{where}: the command begins within a longer one: put {folder} first on {name} before it")
        where = command.source.where(at)
        raise NotEditableError(words.format(where=where, folder=wish.folder, name=wish.name))
    folder = in_quotes(wish.folder, '"')
    export = (
        f'export {wish.name}="{folder}${{{wish.name}:+:${wish.name}}}"'  # also where nothing is set, and with `set -u`
    )
    return Change(wish.name, line, line, f"{indent}{export}\n")
