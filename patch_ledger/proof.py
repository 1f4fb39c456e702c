"""Evidence after a revert: digests against the recorded originals, and a search for traces of ours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from codemods.errors import InvalidError, RefusedError
from patch_ledger.align import align
from patch_ledger.receipt import FileProof, Residue
from patch_ledger.records import FileEntry
from patch_ledger.repair import bytecode
from patch_ledger.store import Ledger
from patch_ledger.tree import digest, read_target

TRACES = ("PrecisionDebugger", "probepatch:", "DUMP_ON", "PROMPTS_ONLY", "DUMP_PHASE")


_LINE = re.compile(rb"[^\n]*\n")


def file_proof(ledger: Ledger, entry: FileEntry) -> FileProof:
    """One file against its original; what differs is counted in lines."""
    disk = read_target(ledger.tree.root, entry.path)
    found = digest(disk)
    if found == entry.origin:
        return FileProof(entry.path, entry.origin, found)
    added, removed = _changed_lines(ledger.object(entry.origin) or b"", disk or b"")
    return FileProof(entry.path, entry.origin, found, added, removed)


def _changed_lines(before: bytes, after: bytes) -> tuple[int, int]:
    """Lines added and removed; that the last line got an end, or lost it, counts for nothing."""
    before, after = _ended(before), _ended(after)
    alignment = align(before, after)
    kept = at = 0
    for line in _LINE.findall(before):
        new = alignment.find(at, at + len(line))
        kept += new is not None and after[new - 1 : new] in (b"", b"\n")
        at += len(line)
    return after.count(b"\n") - kept, before.count(b"\n") - kept


def _ended(data: bytes) -> bytes:
    return data if data.endswith(b"\n") or not data else data + b"\n"


def residue(ledger: Ledger, entry: FileEntry, words: Sequence[str]) -> Iterator[Residue]:
    """Traces of ours in one file, beyond those of the original and of the edits that are still active."""
    root = ledger.tree.root
    try:
        disk = read_target(root, entry.path)
        original = ledger.object(entry.origin)
    except (RefusedError, InvalidError):
        return
    current = ledger.entries.get(entry.path)
    active = b"\n".join(splice.inserted for edit in (current.edits if current else ()) for splice in edit.splices)
    for word in words:
        pattern = re.compile(re.escape(word.encode()))
        count = len(pattern.findall(disk or b"")) - len(pattern.findall(original or b"")) - len(pattern.findall(active))
        if count > 0:
            yield Residue(entry.path, word, count)
    if original is None and not active:
        yield from _left_of_payload(root, entry, disk)


def _left_of_payload(root: Path, entry: FileEntry, disk: bytes | None) -> Iterator[Residue]:
    if disk is not None:
        yield Residue(entry.path, "added file", 1)
    for path in bytecode(root, entry.path):
        yield Residue(path.relative_to(root).as_posix(), "bytecode", 1)
