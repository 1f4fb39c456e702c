"""The card's file: found upwards from a folder, read strictly, written whole or not at all, by one process at a time."""

from __future__ import annotations

import errno
import fcntl
import json
import math
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
_DEEPEST = 40  # levels of a value in the card


class NoCardError(UsageError):
    """There is no task card where one is needed."""


class ChangedCardError(RefusedError):
    """Facts were changed by somebody else while a command worked with them; nothing was recorded."""


def find_card(start: Path) -> Path:
    """The card's path: ``start`` itself, or the card in it or in a folder above it; of a link the file that it leads to, so that
    there is one card and one lock by whatever name. Raises NoCardError."""
    place = start.absolute()
    if place.is_file():
        return place.resolve() if place.is_symlink() else place
    for folder in (place, *place.parents):
        if (card := folder / NAME).is_file():
            return card.resolve() if card.is_symlink() else card
    raise NoCardError(
        _("there is no task card in {path} or above").format(path=start),
        todo=_("`probepatch task init FOLDER` makes one; --task names another folder"),
    )


def read_card(path: Path) -> Card:
    """Raises CardError, RefusedError."""
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST + 1)
        if len(raw) > _LARGEST:
            raise _too_large(path)
        data = json.loads(
            raw.decode("utf-8"), parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_once
        )
        if _deeper(data, _DEEPEST):
            raise ValueError(f"it is nested more than {_DEEPEST} levels deep")
    except OSError as error:
        raise RefusedError(_("{path} cannot be read").format(path=path), why=error.strerror) from error
    except (ValueError, RecursionError) as error:
        raise CardError(_("the task card is no JSON"), where=str(path), why=str(error)[:200]) from error
    card = Card.read(data)
    wrong = next(problems(card_schema(), data), None)
    if wrong is not None:
        raise CardError(_("the task card is not of its form"), where=str(path), why=wrong)
    card.path = path
    return card


def _too_large(path: Path) -> CardError:
    return CardError(_("the task card is larger than {size} bytes").format(size=_LARGEST), where=str(path))


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is no number")
    return value


def _deeper(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(_deeper(item, levels - 1) for item in inner)


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


@contextmanager
def changing(path: Path, since: Card | None = None) -> Iterator[Card]:
    """The card, locked; written when the block ends without an exception, and untouched otherwise. ``since``: the card as it was
    read when a long look began; what was found is not to be recorded for other facts than it was found with.

    Raises ChangedCardError."""
    with _locked(path):
        card = read_card(path)
        if since is not None and since.data["facts"] != card.data["facts"]:
            raise ChangedCardError(
                _("the task card's facts were changed while this command worked; nothing was recorded"),
                where=str(path),
                todo=_("run this again"),
            )
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
    path = folder.absolute() / NAME
    with _locked(path):
        if os.path.lexists(path):
            raise RefusedError(
                _("there is a task card already"), where=str(path), todo=_("`probepatch task show` shows it")
            )
        write_card(path, Card.new())
    return path


def write_card(path: Path, card: Card) -> None:
    """Write beside it, flush, rename: a reader sees the old card or the new one. What a killed writer left beside it goes away;
    the lock is held, so nobody is writing there. Bytes of a name that are no UTF-8 become JSON's own escapes."""
    text = json.dumps(card.checked(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    data = text.encode("utf-8", "backslashreplace")
    if len(data) > _LARGEST:
        raise _too_large(path)
    try:
        for left in path.parent.glob(f".{NAME}-*"):
            left.unlink(missing_ok=True)
        if path.exists() and not path.stat().st_mode & 0o222:
            raise PermissionError(errno.EACCES, _("it is read-only"))
        descriptor, name = tempfile.mkstemp(prefix=f".{NAME}-", dir=path.parent)
    except OSError as error:
        raise RefusedError(_("{path} cannot be written").format(path=path), why=error.strerror) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
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
