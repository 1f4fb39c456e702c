"""``probepatch restore``: stage 9. Every edit of the task out again, proved; nothing of the capture's left; the card closed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codemods.errors import FindingError, ProbePatchError, UsageError
from commands.arguments import file_path, text
from commands.names import unknown
from commands.output import json_option, print_json, say, table
from commands.task_card import card_path, following_steps, say_next, task_option
from locales import _, ngettext

if TYPE_CHECKING:
    from patch_ledger.receipt import Receipt
    from stages.card.card import Card
    from stages.restore.closing import Closing
    from stages.restore.marks import Mark


class NoRecordError(FindingError):
    """The card tells of edits in a checkout that has no ledger."""


@dataclass(frozen=True)
class Restored:
    """One checkout. ``error``: why it could not be reverted; ``marks``: what still looks like ours in its tree."""

    checkout: str
    receipt: Receipt | None
    error: ProbePatchError | None
    marks: tuple[Mark, ...] = ()

    @property
    def exact(self) -> bool:
        """Nothing of ours is left; other people's changes stay and are no fault."""
        if self.receipt is None or self.receipt.refused or self.marks:
            return False
        return self.receipt.proof is None or not self.receipt.proof.residue

    def as_json(self) -> dict[str, Any]:
        return {
            "checkout": self.checkout,
            "exact": self.exact,
            "receipt": None if self.receipt is None else self.receipt.as_json(),
            "error": None if self.error is None else {"what": self.error.what, "why": self.error.why},
            "marks": [one.as_json() for one in self.marks],
        }


@click.command
@click.option(
    "--reason",
    metavar="TEXT",
    type=text,
    help=_("what ends the loop with the analysis side: its conclusion, or the user's stop; it goes on the record"),
)
@click.option(
    "--clean", is_flag=True, help=_("delete the stub sources, load configs and payloads in the artefact root, too")
)
@click.option(
    "--delete",
    "folders",
    metavar="DIR",
    type=file_path,
    multiple=True,
    help=_("delete this folder in the artefact root, too; may be repeated"),
)
@click.option(
    "--gone",
    metavar="CHECKOUT",
    type=file_path,
    multiple=True,
    help=_("this checkout was deleted for good: it goes off the card, and that on the record"),
)
@click.option("--force", is_flag=True, help=_("where others changed our lines: keep a copy, put the original back"))
@task_option
@json_option
def command(
    reason: str | None,
    clean: bool,
    folders: tuple[Path, ...],
    gone: tuple[Path, ...],
    force: bool,
    task: Path | None,
    as_json: bool,
) -> int:
    """Exit code 1 when the task cannot be called finished."""
    from stages.card.order import RESTORE, require
    from stages.card.permissions import demand
    from stages.card.store import changing, read_card
    from stages.restore.closing import close, closing, expect_reason
    from stages.restore.deletion import delete, expect_ours
    from stages.restore.own import left_behind

    path = card_path(task)
    card = read_card(path)
    require(card, RESTORE)
    expect_reason(card, reason)
    demand(card, "AUTH_RESTORE_CODE", *(("AUTH_CLEAN_APPROVED_DIRS",) if clean or folders else ()))
    ours = [one.path for one in left_behind(card)] if clean else []
    expect_ours(card, ours, by_name=True)  # before anything is reverted
    expect_ours(card, folders)
    if gone:
        with changing(path) as card:
            _forget(card, gone)
    restored = list(_restore(card, path, force))
    deleted, failed = delete([*ours, *folders])
    with changing(path) as card:
        found = closing(card, [(one.checkout, one.exact) for one in restored], failed)
        close(card, found, reason)
    following = following_steps(card, task)
    if as_json:
        print_json(
            {
                "finished": found.finished,
                "checkouts": [one.as_json() for one in restored],
                "deleted": [str(one) for one in deleted],
                **found.as_json(),
                "card": str(path),
                "next": following,
            }
        )
    else:
        _say(restored, deleted, found)
        say_next(following)
    return 0 if found.finished else 1


def _forget(card: Card, gone: tuple[Path, ...]) -> None:
    """Take checkouts that are no more off the card. Raises UsageError for one that is there, or that never was on it."""
    from stages.card.edits import note

    known = [str(one["checkout"]) for one in card.data["edits"]]
    for path in gone:
        name = str(path.absolute())
        if name not in known:
            raise unknown(_("no edit of this task is in {path}").format(path=name), name, known)
        if os.path.lexists(name):
            raise UsageError(
                _("{path} is there; it is restored, not forgotten").format(path=name), todo=_("leave out --gone")
            )
        note(card, name, ())
        card.note(_("{path} was deleted for good, by the user's word").format(path=name))


def _restore(card: Card, path: Path, force: bool) -> Iterator[Restored]:
    """The checkouts in the reverse order of their patching; one that fails does not stop the others."""
    from commands.recorded import find_recorded
    from commands.revert import revert
    from patch_ledger.store import open_ledger
    from stages.card.edits import agree
    from stages.restore.committed import committed, stashed
    from stages.restore.marks import marks

    apart = [path.parent, *([Path(card.fact("artifacts"))] if card.fact("artifacts") else [])]
    for name in reversed([str(one["checkout"]) for one in card.data["edits"]]):
        try:
            tree = find_recorded(Path(name), None, None)
            ledger = open_ledger(tree)
            if not ledger.history and ledger.pending is None and not force:
                raise NoRecordError(
                    _("the record of this task's edits is not there: the checkout was moved, replaced or copied"),
                    where=name,
                    todo=_("bring it back as it was; where nothing was ever written into it: --force"),
                )
            receipt = revert(tree, force=force)
            paths = {file.path for intent, _outcome in open_ledger(tree).history for file in intent.files}
            receipt = replace(receipt, notes=(*receipt.notes, *stashed(tree, paths)))
            found = (*marks(Path(name), apart), *committed(tree, paths))
            one = Restored(name, receipt, None, found)
            if one.exact or receipt.refused:
                agree(path, tree)  # with a mark left the checkout stays on the card, and is looked at again
        except ProbePatchError as error:
            yield Restored(name, None, error, tuple(marks(Path(name), apart)))
        else:
            yield one


def _say(restored: list[Restored], deleted: list[Path], found: Closing) -> None:
    if restored:
        table((_("checkout"), _("files"), _("now")), [_row(one) for one in restored])
    for one in restored:
        _say_faults(one)
    for path in deleted:
        say(_("deleted: {path}").format(path=path), "dim")
    for fault in found.faults:
        say(f"{fault.what}: {fault.todo}" if fault.todo else fault.what, "bad")
    if found.contradicted:
        say(_("for whoever keeps the recipes: what the tree contradicted"), "head")
        for line in found.contradicted:
            say(f"  {line}", "note")
    if found.finished:
        say(_("everything is as it was before; the task is finished"), "good")
    else:
        say(_("the task is not finished"), "bad")


def _row(one: Restored) -> tuple[str, str, str]:
    if one.receipt is None:
        return one.checkout, "-", _("could not be reverted")
    files = str(len(one.receipt.files))
    if not one.exact:
        return one.checkout, files, _("something of ours is left")
    proof = one.receipt.proof
    if proof is None:
        return one.checkout, files, _("nothing of ours stood in it")
    kept = [file for file in proof.files if not file.equal]
    if kept:
        told = ngettext("as before, but for {n} file that others changed", "as before, but for {n} files", len(kept))
        return one.checkout, files, told.format(n=len(kept))
    if proof.git_diff_equal:
        return one.checkout, files, _("byte for byte as before; git diff as before")
    return one.checkout, files, _("byte for byte as before")


def _say_faults(one: Restored) -> None:
    if one.error is not None:
        say(f"{one.checkout}: {one.error.what}", "bad")
        for more in (one.error.why, one.error.todo):
            if more:
                say(f"  {more}", "note")
    if one.receipt is not None:
        for refusal in one.receipt.refused:
            say(f"{refusal.path}: {refusal.edit}: {refusal.why}", "bad")
        for note in one.receipt.notes:
            say(f"  {note}", "note")
        for trace in one.receipt.proof.residue if one.receipt.proof is not None else ():
            say(f"{trace.path}: {trace.what} ({trace.count})", "bad")
    for mark in one.marks:
        where = f"{mark.path}:{mark.line}" if mark.line else str(mark.path)
        text = _("{where} still bears a mark of ours")
        if mark.what == "committed":
            text = _(
                "{where} was committed to git with edits of ours: commit it as it is now, or take that commit back"
            )
        say(text.format(where=where), "bad")
