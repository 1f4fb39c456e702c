"""The plan: every edit of every chosen recipe on one checkout, checked and not yet written."""

from __future__ import annotations

from dataclasses import dataclass, field

from codemods.splice import PlannedEdit, render


@dataclass(frozen=True, slots=True)
class FilePlan:
    """What becomes of one file. ``path`` is relative to the tree's root, with ``/``.

    ``base`` are the file's bytes without our edits, None for a file that does not exist; ``before`` what is on disk now.
    ``edits`` is everything that will be active on the file afterwards, edits of other recipes included, in base offsets. ``via`` is
    the path that was asked for, where that is a symbolic link to ``path``.
    """

    path: str
    base: bytes | None
    before: bytes | None
    edits: tuple[PlannedEdit, ...]
    compiled: str = ""  # the verdict of the compile check, recorded in the ledger: "ok, CPython 3.11.7", say
    via: str = ""

    @property
    def after(self) -> bytes | None:
        """The bytes that will be on disk; None when no file will be there."""
        if self.base is None:
            return render(b"", self.edits) if self.edits else None
        return render(self.base, self.edits)

    @property
    def changes(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class Plan:
    """All file plans on one tree. ``recipes`` maps the recipes that were asked for to their digests; ``made_on`` is the hash of the
    ledger's last line when the bases were read, None for a plan that was made without a ledger's word."""

    files: tuple[FilePlan, ...]
    recipes: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    made_on: str | None = None

    @property
    def changed(self) -> tuple[FilePlan, ...]:
        return tuple(file for file in self.files if file.changes)
