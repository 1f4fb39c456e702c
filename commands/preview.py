"""A plan for people: file by file, each hunk under the edits that it belongs to, with their reasons and counts."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codemods.patchtext import Hunk, file_patch, hunks
from codemods.plan import FilePlan, Plan
from codemods.splice import PlannedEdit, pieces
from commands.output import say
from locales import _, ngettext


@dataclass(frozen=True)
class Counts:
    """Lines that an edit inserts and removes, places that it changes within a line, and lines that it indents."""

    inserted: int = 0
    removed: int = 0
    inline: int = 0
    indented: int = 0

    @classmethod
    def of(cls, edit: PlannedEdit) -> Counts:
        inline = sum(b"\n" not in s.inserted + s.removed and bool(s.inserted or s.removed) for s in edit.splices)
        return cls(
            sum(splice.inserted.count(b"\n") for splice in edit.splices),
            sum(splice.removed.count(b"\n") for splice in edit.splices),
            inline,
            sum(len(indent.lines) for indent in edit.indents),
        )

    def __str__(self) -> str:
        parts = []
        if self.inserted:
            parts.append(ngettext("{n} line in", "{n} lines in", self.inserted).format(n=self.inserted))
        if self.removed:
            parts.append(ngettext("{n} line out", "{n} lines out", self.removed).format(n=self.removed))
        if self.inline:
            parts.append(
                ngettext("{n} place within a line", "{n} places within a line", self.inline).format(n=self.inline)
            )
        if self.indented:
            parts.append(ngettext("{n} line indented", "{n} lines indented", self.indented).format(n=self.indented))
        return ", ".join(parts) or _("nothing to do: it is there already")


def line_counts(file: FilePlan) -> tuple[int, int]:
    """Lines added and removed, as a diff counts them."""
    lines = [line[:1] for hunk in hunks(file.before or b"", file.after or b"", context=0) for line in hunk.lines]
    return lines.count(b"+"), lines.count(b"-")


def plan_patch(plan: Plan, root: Path) -> bytes:
    """The patch of the whole plan, for `git apply` in the tree's root."""
    return b"".join(file_patch(file.path, file.before, file.after, _mode(root / file.path)) for file in plan.changed)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644


def print_plan(plan: Plan, known: Mapping[str, frozenset[str]]) -> None:
    """The coloured diff. ``known``: by path, the digests-with-names of edits that the ledger holds already."""
    for file in sorted(plan.changed, key=lambda file: file.before is None):  # changed lines first, then whole new files
        _print_file(file, known.get(file.path, frozenset()))


def edit_key(edit: PlannedEdit) -> str:
    """An edit with the version of its recipe: the same key, the same edit."""
    return f"{edit.name} {edit.digest}"


def _print_file(file: FilePlan, known: frozenset[str]) -> None:
    added, removed = line_counts(file)
    kind = _("new file") if file.before is None else _("file goes") if file.after is None else ""
    say(f"{file.path}  +{added} -{removed}{'  ' if kind else ''}{kind}", "head")
    explained: set[str] = set()
    spans = list(_spans(file))
    for hunk in hunks(file.before or b"", file.after or b""):
        for edit in _edits_of(hunk, spans, file.edits):
            state = "  " + _("(applied already)") if edit_key(edit) in known else ""
            if edit.name not in explained:
                say(f"  {edit.name}  [{Counts.of(edit)}]{state}", "note")
                if edit.why:
                    say(f"    {edit.why}")
            explained.add(edit.name)
        _print_hunk(hunk)
    for edit in file.edits:
        if edit.name not in explained and edit_key(edit) not in known:
            there = (
                _("another edit makes the same change; it is made once")
                if edit.splices
                else _("nothing to add: it is there already")
            )
            say(f"  {edit.name}  [{there}]", "note")
    say("")


def _spans(file: FilePlan) -> Iterator[tuple[int, int, int]]:
    """(first line, line behind the last, edit) in the patched file, 0-based, of everything that edits put there."""
    if file.after is None or (file.base is None and not file.edits):
        return
    line = 0
    for piece in pieces(file.base or b"", file.edits):
        end = line + piece.data.count(b"\n")
        if piece.edit is not None:
            yield line, max(end, line + 1), piece.edit
        line = end


def _edits_of(hunk: Hunk, spans: Sequence[tuple[int, int, int]], edits: Sequence[PlannedEdit]) -> list[PlannedEdit]:
    """The edits that put something into a hunk's changed lines, in the order of the lines."""
    changed = [n for n, kind in _new_lines(hunk) if kind == b"+"]
    if not changed:
        return []
    found = [edit for start, end, edit in spans if start <= changed[-1] and end > changed[0]]
    return [edits[number] for number in dict.fromkeys(found)]


def _new_lines(hunk: Hunk) -> Iterator[tuple[int, bytes]]:
    number = hunk.new_start
    for line in hunk.lines:
        if line[:1] != b"-":
            yield number, line[:1]
            number += 1


def _print_hunk(hunk: Hunk) -> None:
    say(hunk.header.decode(), "hunk")
    for line in hunk.lines:
        style = {b"+": "add", b"-": "del"}.get(line[:1], "dim")
        say(line.decode("utf-8", "backslashreplace").removesuffix("\n").removesuffix("\r"), style)
        if not line.endswith(b"\n"):
            say("\\ " + _("No newline at end of file"), "dim")


def file_as_json(file: FilePlan, known: frozenset[str]) -> dict[str, Any]:
    """One file of a plan, for programs."""
    from hashlib import sha256

    def digest(data: bytes | None) -> str | None:
        return None if data is None else sha256(data).hexdigest()

    added, removed = line_counts(file)
    return {
        "path": file.path,
        "changes": file.changes,
        "sha256_base": digest(file.base),
        "sha256_before": digest(file.before),
        "sha256_after": digest(file.after),
        "lines_added": added,
        "lines_removed": removed,
        "compiled": file.compiled or None,
        "edits": [
            {
                "recipe": edit.recipe,
                "id": edit.id,
                "digest": edit.digest,
                "symbol": edit.symbol or None,
                "line": edit.line,
                "why": edit.why or None,
                "applied": edit_key(edit) in known,
                "inserted": counts.inserted,
                "removed": counts.removed,
                "inline": counts.inline,
                "indented": counts.indented,
            }
            for edit in file.edits
            for counts in (Counts.of(edit),)
        ],
    }


def edits_as_json(edits: Sequence[PlannedEdit]) -> list[dict[str, Any]]:
    """Edits of scripts and configs, which are short enough to be told whole: every splice with its text."""
    return [
        {
            "id": edit.id,
            "line": edit.line,
            "why": edit.why,
            "removed": splice.removed.decode("utf-8", "backslashreplace"),
            "inserted": splice.inserted.decode("utf-8", "backslashreplace"),
        }
        for edit in edits
        for splice in edit.splices
    ]
