"""``ledger.jsonl``: append-only JSON lines, each sealed with its own hash, which the next line repeats.

A last line without its line feed is the trace of a crash and is passed over; everything else that does not fit is an error.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from codemods.errors import InvalidError, RefusedError
from locales import _
from patch_ledger.records import Json
from patch_ledger.tree import adopt, check_own, read_file, sync_directory, write_all

NAME = "ledger.jsonl"
_GENESIS = "0" * 64
_LONGEST_LINE = 64 << 20  # bytes; a line holds the inserted text of one transaction
_LARGEST = 1 << 30  # bytes
_SEAL = len(',"hash":""}') + 64


@dataclass(frozen=True, slots=True)
class Chain:
    """The records in order, the hash of the last line, and the length in bytes of the good lines."""

    records: tuple[Json, ...] = ()
    head: str = _GENESIS
    size: int = 0


def invalid(line: int, reason: str, place: Path | None = None) -> InvalidError:
    """The error for a ledger that cannot be trusted, by line number."""
    return InvalidError(
        _("the ledger is damaged in line {line}: {reason}").format(line=line, reason=reason),
        where=f"{place or NAME}:{line}",
        todo=_(
            "look at it with `probepatch ledger verify`; `probepatch ledger forget` drops it and touches no other file"
        ),
    )


def _seal(seq: int, prev: str, record: Json) -> bytes:
    body = json.dumps({"seq": seq, "prev": prev, **record}, separators=(",", ":"))
    sha = hashlib.sha256(body.encode()).hexdigest()
    return f'{body[:-1]},"hash":"{sha}"}}\n'.encode()


def _open_seal(line: bytes, seq: int, prev: str) -> tuple[Json, str]:
    """The record of one line and its hash; ValueError with the reason when it does not hold."""
    if len(line) > _LONGEST_LINE:
        raise ValueError(_("the line is too long"))
    body, seal = line[:-_SEAL] + b"}", line[-_SEAL:]
    sha = hashlib.sha256(body).hexdigest()
    if seal != f',"hash":"{sha}"}}'.encode():
        raise ValueError(_("its bytes do not fit its hash"))
    record = json.loads(body)
    if not isinstance(record, dict) or record.get("seq") != seq or record.get("prev") != prev:
        raise ValueError(_("it does not follow the line before"))
    return record, sha


def parse(data: bytes, place: Path) -> Chain:
    """All records of a ledger's bytes. Raises InvalidError, naming the line."""
    lines = data.split(b"\n")
    records: list[Json] = []
    head = _GENESIS
    for number, line in enumerate(lines[:-1], start=1):
        try:
            record, head = _open_seal(line, number, head)
        except (ValueError, RecursionError) as error:
            raise invalid(number, str(error), place / NAME) from error
        records.append(record)
    return Chain(tuple(records), head, len(data) - len(lines[-1]))


def load(place: Path) -> Chain:
    """The chain in a ledger's folder; an empty one when there is no ledger."""
    return parse(read_file(place / NAME, largest=_LARGEST) or b"", place)


def append(place: Path, chain: Chain, record: Json) -> None:
    """Write one record behind ``chain`` and make it durable; a torn tail goes.

    On OSError (a full disk) the file is as it was. Raises RefusedError for a record that could not be read again.
    """
    line = _seal(len(chain.records) + 1, chain.head, record)
    if len(line) > _LONGEST_LINE or chain.size + len(line) > _LARGEST:
        raise RefusedError(
            _("the edits are too large for the ledger: {n} bytes").format(n=len(line)),
            where=str(place / NAME),
            why=_("a record has at most {n} bytes; nothing was written").format(n=_LONGEST_LINE),
        )
    path = place / NAME
    check_own(path)
    new = not path.exists()
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        os.ftruncate(fd, chain.size)
        try:
            write_all(fd, line)
            os.fsync(fd)
        except OSError:
            os.ftruncate(fd, chain.size)
            raise
    finally:
        os.close(fd)
    if new:
        adopt(path)
        sync_directory(place)
