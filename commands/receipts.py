"""What the ledger did, told to people."""

from __future__ import annotations

from collections.abc import Sequence

from commands.output import say, warn
from locales import _, ngettext
from patch_ledger.receipt import Proof, Receipt
from patch_ledger.repair import Repair


def print_repair(repair: Repair | None) -> None:
    """What an earlier, interrupted run had left, and what became of it."""
    if repair is None:
        return
    if repair.outcome == "commit":
        warn(
            _("an interrupted {command} had written every file; it is recorded as done").format(command=repair.command)
        )
    else:
        count = len(repair.put_back)
        text = ngettext(
            "an interrupted {command} was rolled back, {n} file put back",
            "an interrupted {command} was rolled back, {n} files put back",
            count,
        )
        warn(text.format(command=repair.command, n=count))
    for path in repair.foreign:
        warn(_("{path} was changed by somebody else meanwhile and was left as it is").format(path=path))
    print_saved(repair.saved)


def print_saved(saved: Sequence[str]) -> None:
    """Copies that were kept of what people had written."""
    for path in saved:
        warn(_("a copy is kept at {path}").format(path=path))


def print_files(receipt: Receipt) -> None:
    """A line for each file that was written."""
    words = {"changed": _("changed"), "added": _("added"), "removed": _("removed"), "recorded": _("unchanged")}
    for file in receipt.files:
        already = "  " + _("(it was there already; the ledger notes the edit)") if file.did == "recorded" else ""
        say(f"  {words[file.did]:9} {file.path}{already}")
        for note in file.notes:
            warn(note)


def print_receipt(receipt: Receipt) -> None:
    """Files, notes, refusals, copies."""
    print_repair(receipt.repaired)
    print_files(receipt)
    for note in receipt.notes:
        say(note)
    for refusal in receipt.refused:
        say(_("{edit} in {path} stays: {why}").format(edit=refusal.edit, path=refusal.path, why=refusal.why), "bad")
        for line in refusal.details:
            say("    " + line, {"+": "add", "-": "del"}.get(line[:1], "dim"))
    print_saved(receipt.saved)


def print_proof(proof: Proof | None) -> None:
    """Hashes, git's own view, and traces that should be gone."""
    if proof is None:
        return
    equal = [file for file in proof.files if file.equal]
    if equal:
        text = ngettext(
            "{n} file is byte for byte the original (SHA-256 compared)",
            "{n} files are byte for byte the originals (SHA-256 compared)",
            len(equal),
        )
        say(text.format(n=len(equal)), "good")
    for file in proof.files:
        if not file.equal:
            text = _("{path} keeps what was changed in it by others: +{added} -{removed} lines")
            say(text.format(path=file.path, added=file.added, removed=file.removed), "note")
    if proof.git_diff_equal:
        say(_("`git diff` is what it was before the apply"), "good")
    elif proof.git_diff_equal is False:
        say(_("`git diff` is not what it was before the apply: the files were changed since"), "note")
    for trace in proof.residue:
        say(_("left in {path}: {what} ({count})").format(path=trace.path, what=trace.what, count=trace.count), "bad")
