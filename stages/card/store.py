"""The card's file: found upwards from a folder, read strictly, written whole or not at all, by one process at a time."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from codemods.errors import RefusedError, UsageError
from locales import _
from stages.card.card import Card, CardError
from stages.card.schema import card_schema
from stages.card.shape import problems

NAME = "task_card.json"
_LARGEST = 16 << 20  # bytes


class NoCardError(UsageError):
    """There is no task card where one is needed."""


def find_card(start: Path) -> Path:
    """The card's path: ``start`` itself, or the card in it or in a folder above it. Raises NoCardError."""
    place = start.absolute()
    if place.is_file():
        return place
    for folder in (place, *place.parents):
        if (folder / NAME).is_file():
            return folder / NAME
    raise NoCardError(
        _("there is no task card in {path} or above").format(path=start),
        todo=_("`probepatch task init FOLDER` makes one; --task names another folder"),
    )


def read_card(path: Path) -> Card:
    """Raises CardError, RefusedError."""
    try:
        if path.stat().st_size > _LARGEST:
            raise CardError(_("the task card is larger than {size} bytes").format(size=_LARGEST), where=str(path))
        data = json.loads(path.read_text("utf-8"), parse_constant=_no_constant, object_pairs_hook=_once)
    except OSError as error:
        raise RefusedError(_("{path} cannot be read").format(path=path), why=error.strerror) from error
    except (ValueError, RecursionError) as error:
        raise CardError(_("the task card is no JSON"), where=str(path), why=str(error)[:200]) from error
    card = Card.read(data)
    wrong = next(problems(card_schema(), data), None)
    if wrong is not None:
        raise CardError(_("the task card is not of its form"), where=str(path), why=wrong)
    return card


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


@contextmanager
def changing(path: Path) -> Iterator[Card]:
    """The card, locked; written when the block ends without an exception, and untouched otherwise."""
    with _locked(path):
        card = read_card(path)
        before = json.dumps(card.data, sort_keys=True)
        yield card
        if json.dumps(card.checked(), sort_keys=True) != before:
            write_card(path, card)


def make_card(folder: Path) -> Path:
    """A new card in ``folder``, which is made when it is missing. Raises RefusedError when there is one."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RefusedError(_("{path} cannot be made").format(path=folder), why=error.strerror) from error
    path = folder / NAME
    with _locked(path):
        if os.path.lexists(path):
            raise RefusedError(
                _("there is a task card already"), where=str(path), todo=_("`probepatch task show` shows it")
            )
        write_card(path, Card.new())
    return path


def write_card(path: Path, card: Card) -> None:
    """Write beside it, flush, rename: a reader sees the old card or the new one."""
    text = json.dumps(card.checked(), indent=2, ensure_ascii=False) + "\n"
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{NAME}-", dir=path.parent)
    except OSError as error:
        raise RefusedError(_("{path} cannot be written").format(path=path), why=error.strerror) from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with suppress(OSError):
            os.chmod(name, path.stat().st_mode & 0o777)
        os.replace(name, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(name)
        raise RefusedError(_("{path} cannot be written").format(path=path), why=error.strerror) from error


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One writer at a time; the lock dies with its process."""
    try:
        fd = os.open(path.with_name(f".{NAME}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        raise RefusedError(_("{path} cannot be written").format(path=path), why=error.strerror) from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RefusedError(
                _("another process is changing the task card"),
                where=str(path),
                todo=_("wait for it, then run this again"),
            ) from error
        yield
    finally:
        os.close(fd)
