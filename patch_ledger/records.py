"""What one line of the ledger says, as typed records, and the strict way back from JSON.

A ledger may come from anywhere (a mounted volume, an archive): every field is checked before anything acts on it.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from codemods.splice import Indent, PlannedEdit, Rank, Splice
from patch_ledger.tree import is_relative

Json = dict[str, Any]
T = TypeVar("T")

_SHA = re.compile(r"[0-9a-f]{64}")
_TXN = re.compile(r"[0-9a-f]{12}")
_LARGEST = 1 << 40


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of a transaction.

    ``before``, ``after``, ``base`` and ``origin`` are SHA-256 digests, None for an absent file; ``origin`` is the base of the
    first edit since the file was last free of edits. ``after`` is what the transaction left on disk; it differs from
    ``render(base, edits)`` only when somebody's own change stays inside an edit. ``via`` is the path that was asked for when a
    symbolic link led here, ``made`` the folders that were not there before the first edit, ``links`` the hard links.
    """

    path: str
    before: str | None
    after: str | None
    base: str | None
    origin: str | None
    edits: tuple[PlannedEdit, ...]
    mode: int | None = None
    links: int = 1
    owner: str = ""
    via: str = ""
    made: tuple[str, ...] = ()
    compiled: str = ""


@dataclass(frozen=True, slots=True)
class Intent:
    """A transaction as planned; ``commit`` or ``abort`` with the same ``txn`` ends it.

    ``time`` is UTC, ISO 8601; ``root`` is where the tree was; it may have been moved since.
    """

    txn: str
    command: str
    tool: str
    time: str
    files: tuple[FileEntry, ...]
    git_diff: str | None = None
    root: str = ""


def as_text(data: bytes) -> str | Json:
    """Bytes for JSON: text when they are UTF-8, else base64."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def edit_as_json(edit: PlannedEdit) -> Json:
    """One edit, without loss."""
    return {
        "recipe": edit.recipe,
        "id": edit.id,
        "digest": edit.digest,
        "order": edit.order,
        "symbol": edit.symbol,
        "line": edit.line,
        "why": edit.why,
        "splices": [
            {
                "start": splice.start,
                "removed": as_text(splice.removed),
                "inserted": as_text(splice.inserted),
                "shared": splice.shared,
                "rank": splice.rank,
                "lines": splice.lines,
            }
            for splice in edit.splices
        ],
        "indents": [
            {"unit": as_text(indent.unit), "lines": indent.lines, "opening": indent.opening, "closing": indent.closing}
            for indent in edit.indents
        ],
    }


def intent_as_json(intent: Intent) -> Json:
    """The ``intent`` record of the ledger."""
    return {
        "kind": "intent",
        "txn": intent.txn,
        "command": intent.command,
        "tool": intent.tool,
        "time": intent.time,
        "git_diff": intent.git_diff,
        "root": as_text(os.fsencode(intent.root)),
        "files": [
            {
                "path": file.path,
                "before": file.before,
                "after": file.after,
                "base": file.base,
                "origin": file.origin,
                "mode": file.mode,
                "links": file.links,
                "owner": file.owner,
                "via": file.via,
                "made": file.made,
                "compiled": file.compiled,
                "edits": [edit_as_json(edit) for edit in file.edits],
            }
            for file in intent.files
        ],
    }


class _Reader:
    """Typed access to one JSON object; every method raises ValueError with the field's name."""

    def __init__(self, value: object) -> None:
        if not isinstance(value, dict):
            raise ValueError("an object was expected")
        self.value: Json = value

    def text(self, key: str) -> str:
        found = self.value.get(key)
        if not isinstance(found, str):
            raise ValueError(f"{key}: text was expected")
        if any("\ud800" <= letter <= "\udfff" for letter in found):
            raise ValueError(f"{key}: not text")
        return found

    def optional(self, key: str, pattern: re.Pattern[str] | None = None) -> str | None:
        if self.value.get(key) is None:
            return None
        return self.text(key) if pattern is None else self.matching(key, pattern)

    def matching(self, key: str, pattern: re.Pattern[str]) -> str:
        found = self.text(key)
        if not pattern.fullmatch(found):
            raise ValueError(f"{key}: not well-formed")
        return found

    def number(self, key: str, largest: int = _LARGEST) -> int:
        return _number(self.value.get(key), key, 0, largest)

    def numbers(self, key: str, smallest: int = 0) -> tuple[int, ...]:
        return tuple(_number(item, key, smallest, _LARGEST) for item in self._list(key))

    def boolean(self, key: str) -> bool:
        found = self.value.get(key)
        if not isinstance(found, bool):
            raise ValueError(f"{key}: true or false was expected")
        return found

    def data(self, key: str) -> bytes:
        found = self.value.get(key)
        if isinstance(found, str):
            return found.encode()
        try:
            return base64.b64decode(_Reader(found).text("base64"), validate=True)
        except binascii.Error as error:
            raise ValueError(f"{key}: not base64") from error

    def path(self, key: str) -> str:
        return _path(self.value.get(key), key)

    def paths(self, key: str) -> tuple[str, ...]:
        return tuple(_path(item, key) for item in self._list(key))

    def each(self, key: str, read: Callable[[_Reader], T]) -> tuple[T, ...]:
        return tuple(read(_Reader(item)) for item in self._list(key))

    def _list(self, key: str) -> list[object]:
        found = self.value.get(key)
        if not isinstance(found, list):
            raise ValueError(f"{key}: a list was expected")
        return found


def _number(found: object, key: str, smallest: int, largest: int) -> int:
    if not isinstance(found, int) or isinstance(found, bool) or not smallest <= found <= largest:
        raise ValueError(f"{key}: a number from {smallest} to {largest} was expected")
    return found


def _path(found: object, key: str) -> str:
    if not isinstance(found, str) or not is_relative(found):
        raise ValueError(f"{key}: {found!a} is not a path inside the tree")
    return found


def _rank(reader: _Reader) -> Rank:
    rank = reader.numbers("rank", smallest=-_LARGEST)
    if len(rank) != 3:
        raise ValueError("rank: three numbers were expected")
    return (rank[0], rank[1], rank[2])


def _splice(reader: _Reader) -> Splice:
    inserted, lines = reader.data("inserted"), reader.numbers("lines")
    if list(lines) != sorted(set(lines)) or any(line > len(inserted) for line in lines):
        raise ValueError("lines: not offsets in the inserted bytes")
    return Splice(
        reader.number("start"), reader.data("removed"), inserted, reader.boolean("shared"), _rank(reader), lines
    )


def _indent(reader: _Reader) -> Indent:
    return Indent(reader.data("unit"), reader.numbers("lines"), reader.number("opening"), reader.number("closing"))


def _edit(reader: _Reader) -> PlannedEdit:
    splices, indents = reader.each("splices", _splice), reader.each("indents", _indent)
    if any(max(indent.opening, indent.closing) >= len(splices) for indent in indents):
        raise ValueError("indents: there is no such splice")
    order = reader.numbers("order", smallest=-_LARGEST)
    if len(order) != 2:
        raise ValueError("order: two numbers were expected")
    return PlannedEdit(
        recipe=reader.text("recipe"),
        id=reader.text("id"),
        digest=reader.text("digest"),
        order=(order[0], order[1]),
        symbol=reader.text("symbol"),
        line=reader.number("line"),
        why=reader.text("why"),
        splices=splices,
        indents=indents,
    )


def _file(reader: _Reader) -> FileEntry:
    return FileEntry(
        path=reader.path("path"),
        before=reader.optional("before", _SHA),
        after=reader.optional("after", _SHA),
        base=reader.optional("base", _SHA),
        origin=reader.optional("origin", _SHA),
        edits=reader.each("edits", _edit),
        mode=None if reader.value.get("mode") is None else reader.number("mode", 0o7777),
        links=reader.number("links"),
        owner=reader.text("owner"),
        via=reader.text("via"),
        made=reader.paths("made"),
        compiled=reader.text("compiled"),
    )


def intent_from_json(record: Json) -> Intent:
    """The intent that a record holds; raises ValueError for anything that this program would not have written."""
    reader = _Reader(record)
    intent = Intent(
        txn=txn_of(record),
        command=reader.text("command"),
        tool=reader.text("tool"),
        time=reader.text("time"),
        files=reader.each("files", _file),
        git_diff=reader.optional("git_diff"),
        root=os.fsdecode(reader.data("root")) if "root" in record else "",
    )
    if len({file.path for file in intent.files}) != len(intent.files):
        raise ValueError("files: a path stands there twice")
    return intent


def txn_of(record: Json) -> str:
    """The transaction that a record belongs to."""
    return _Reader(record).matching("txn", _TXN)
