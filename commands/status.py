"""``probepatch status CHECKOUT``: the truth about every edit, and what to do. Reads only."""

from __future__ import annotations

from pathlib import Path

import click

from commands.output import json_option, print_json, say, table, warn
from commands.recorded import find_recorded
from commands.target import checkout_options
from locales import _, ngettext
from patch_ledger.status import COMMITTED, EditStatus, TreeStatus
from patch_ledger.status import status as read_status
from patch_ledger.threeway import APPLIED, NEARBY

FINE = (APPLIED, NEARBY, COMMITTED)


@click.command
@checkout_options
@json_option
def command(checkout: Path | None, package: str | None, python: str | None, as_json: bool) -> int:
    """Exit code 1 when an edit is not as it was made, or a run was interrupted."""
    tree = find_recorded(checkout, package, python)
    found = read_status(tree)
    if as_json:
        print_json(found.as_json() | {"notes": list(tree.notes)})
    else:
        print_status(found)
        for note in tree.notes:
            warn(note)
    return 1 if found.interrupted or any(edit.state not in FINE for edit in found.edits) else 0


def print_status(status: TreeStatus) -> None:
    """A line for each edit, or for each file when all is well there, and what to do."""
    if status.interrupted is not None:
        cut = status.interrupted
        text = _("interrupted: {command} wrote {n} of {m} files; apply, revert and `ledger recover` repair it")
        if cut.worker is not None:
            text = _("at work: {command} of process {pid} wrote {n} of {m} files so far")
        say(text.format(command=cut.command, pid=cut.worker, n=cut.written, m=cut.total), "bad")
    if not status.edits and status.interrupted is None:
        say(_("no edit of ours is recorded here"), "good")
    elif status.edits:
        headings = (_("state"), _("edit"), _("file"), _("line"))
        table(headings, [(words(e), f"{e.recipe}/{e.edit}", e.path, str(e.line)) for e in status.edits])
        fine = sum(edit.state in FINE for edit in status.edits)
        total = len(status.edits)
        text = ngettext("{fine} of {total} edit stands", "{fine} of {total} edits stand", total)
        say(text.format(fine=fine, total=total), "good" if fine == total else "bad")
    for todo in dict.fromkeys(edit.todo for edit in status.edits if edit.todo):
        states = ", ".join(dict.fromkeys(words(edit) for edit in status.edits if edit.todo == todo))
        say(f"{states}: {todo}", "note")
    for path in status.saved:
        warn(_("a copy is kept at {path}").format(path=path))


def words(edit: EditStatus) -> str:
    """A state in the user's language."""
    return {
        "applied": _("applied"),
        "nearby": _("changed nearby"),
        "inside": _("changed inside"),
        "gone": _("gone"),
        "half": _("half"),
        "file-missing": _("file missing"),
        "unreadable": _("unreadable"),
        "committed": _("committed"),
    }[edit.state]
