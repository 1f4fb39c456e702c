"""What a command did to a tree, for people and as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from patch_ledger.repair import Repair


@dataclass(frozen=True, slots=True)
class FileDone:
    """One file: ``did`` is changed, added, removed or recorded (the ledger alone changed); ``notes`` what should be known."""

    path: str
    did: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """An edit that was left as it is, with the reason and a small diff."""

    path: str
    edit: str
    state: str
    why: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileProof:
    """A file after a revert: its digest and the original's, None for no file.

    ``added`` and ``removed`` count other people's lines.
    """

    path: str
    original: str | None
    now: str | None
    added: int = 0
    removed: int = 0

    @property
    def equal(self) -> bool:
        return self.original == self.now


@dataclass(frozen=True, slots=True)
class Residue:
    """A trace of ours that should be gone: ``what`` was found ``count`` times more often than in the original."""

    path: str
    what: str
    count: int


@dataclass(frozen=True, slots=True)
class Proof:
    """Evidence that a revert is exact. ``git_diff_equal`` is None when there was nothing to compare."""

    files: tuple[FileProof, ...] = ()
    residue: tuple[Residue, ...] = ()
    git_diff_equal: bool | None = None

    @property
    def exact(self) -> bool:
        return all(file.equal for file in self.files) and not self.residue


@dataclass(frozen=True, slots=True)
class Receipt:
    """``txn`` is empty when there was nothing to do. ``saved`` are copies kept for people; ``place`` the ledger's folder."""

    command: str
    place: str
    txn: str = ""
    files: tuple[FileDone, ...] = ()
    notes: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    saved: tuple[str, ...] = ()
    repaired: Repair | None = None
    proof: Proof | None = None

    def as_json(self) -> dict[str, object]:
        found = asdict(self)
        if self.proof is not None:
            found["proof"]["exact"] = self.proof.exact
        return found
