"""A JSON object from a file, one member at a time: what was read before the file ends or breaks is kept.

The file is looked at through a window of a few megabytes; values are parsed by the standard library's C scanner.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

CHUNK = 4 << 20  # bytes
LARGEST = 16 << 20  # characters of a single value; what they are parsed into may be 20 times as large
_KEY = re.compile(r'[ \t\n\r]*"([^"\\\x00-\x1f]*)"[ \t\n\r]*:[ \t\n\r]*')
_SPACE = re.compile(r"[ \t\n\r]*")
_CUT = re.compile(r"[\s\w.+\-\\]{0,16}\Z")  # the beginning of a literal, a number or an escape, or nothing


class JsonError(Exception):
    """``why`` in a few words; the text before it was read."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class CutError(JsonError):
    """The text ends before the value does."""


class TooLargeError(JsonError):
    """One value is larger than LARGEST, or there are too many."""


def open_regular(path: Path) -> BinaryIO:
    """Open for reading without waiting for anybody: a pipe, a device and a folder are refused. Raises OSError."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError("it is no regular file")
    return os.fdopen(number, "rb", buffering=0)


class Stream:
    """Reads forward only. ``constants``: the NaN and Infinity tokens of the last value."""

    def __init__(self, file: BinaryIO) -> None:
        self.constants: list[str] = []
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8")()
        self._parse = json.JSONDecoder(parse_constant=self._constant).raw_decode
        self._text, self._at, self._ended = "", 0, False

    def enter(self) -> bool:
        """Pass the brace of an object. False where something else begins."""
        if self._next() != "{":
            return False
        self._at += 1
        return True

    def members(self) -> Iterator[str]:
        """The names in the object that was entered; before the next one, the caller takes the value. Raises JsonError."""
        if self._next() == "}":
            self._at += 1
            return
        while True:
            yield self._key()
            follows = self._next()
            self._at += 1
            if follows == "}":
                return
            if follows != ",":
                raise JsonError("a comma is missing")

    def value(self) -> Any:
        """The value that begins here. Raises JsonError."""
        while True:
            self.constants.clear()
            try:
                found, end = self._parse(self._text, self._at)
            except RecursionError:
                raise JsonError("it nests too deep") from None
            except ValueError as error:
                cut = self._is_cut(error)
                if not cut or self._ended:
                    raise (CutError if cut else JsonError)(getattr(error, "msg", "a number is too long")) from None
            else:
                if end < len(self._text) or self._ended:
                    self._at = end
                    return found
            self._more()

    def done(self) -> bool:
        """Whether nothing but space follows."""
        try:
            self._next()
        except CutError:
            return True
        return False

    def _constant(self, token: str) -> float:
        self.constants.append(token)
        return float(token)

    def _is_cut(self, error: ValueError) -> bool:
        position = getattr(error, "pos", None)
        if position is None:
            return False
        unfinished = str(getattr(error, "msg", "")).startswith("Unterminated string")
        return unfinished or _CUT.match(self._text, position) is not None

    def _next(self) -> str:
        """The next character that is no space, which is not passed. Raises CutError at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if self._ended:
                raise CutError("the end is missing")
            self._more()

    def _key(self) -> str:
        while True:
            key = _KEY.match(self._text, self._at)
            if key and (key.end() < len(self._text) or self._ended):  # the space behind it is passed as well
                self._at = key.end()
                return key[1]
            if self._ended or len(self._text) - self._at > 1 << 16:
                break
            self._more()
        if self._next() != '"':
            raise JsonError("a name is missing")
        name = self.value()
        if self._next() != ":":
            raise JsonError("a colon is missing")
        self._at += 1
        self._next()
        return str(name)

    def _more(self) -> None:
        rest = self._text[self._at :]
        if len(rest) > LARGEST:
            raise TooLargeError("one value is larger than 16 MB")
        data = self._file.read(max(CHUNK, len(rest)))
        self._ended = not data
        try:
            self._text = rest + self._decode.decode(data, final=self._ended)
        except UnicodeDecodeError as error:
            self._text = rest
            raise (CutError if self._ended else JsonError)(f"it is no UTF-8: {error.reason}") from None
        self._at = 0
