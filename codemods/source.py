"""A file's bytes, and the UTF-8 text on which an edit is planned.

``ast`` columns and LibCST spans count UTF-8 bytes, whatever the file's own encoding. So an edit is planned on
``text`` (UTF-8, no byte-order mark) and its splices are carried back to the file's own bytes at the end.
"""

from __future__ import annotations

import io
import re
import tokenize
from dataclasses import dataclass, replace
from functools import cached_property

from codemods.errors import FindingError
from codemods.splice import Indent, Splice
from locales import _

_NEWLINE = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class UnreadableSourceError(FindingError):
    """The file cannot be edited without a risk for bytes that are not ours."""


@dataclass(frozen=True)
class Source:
    """``raw`` is the file; ``text`` the same characters in UTF-8 without a byte-order mark."""

    path: str
    raw: bytes
    text: bytes
    encoding: str

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """Offsets in ``text`` at which a physical line begins; lines end at LF, CR LF or CR only."""
        return (0, *(match.end() for match in _NEWLINE.finditer(self.text)))

    def line_of(self, offset: int) -> int:
        """The 1-based line that holds ``offset``."""
        return self.text.count(b"\n", 0, offset) + 1

    def line_start(self, offset: int) -> int:
        return self.text.rfind(b"\n", 0, offset) + 1

    def line_end(self, offset: int) -> int:
        """The offset after the newline that ends the line of ``offset``; the end of the file when there is none."""
        found = self.text.find(b"\n", offset)
        return len(self.text) if found < 0 else found + 1

    def newline_near(self, offset: int) -> bytes:
        """The line ending of the line at ``offset``, else of the line above, else of the first line, else LF."""
        for position in (self.line_end(offset), self.line_start(offset), self.text.find(b"\n") + 1):
            if self.text[:position].endswith(b"\r\n"):
                return b"\r\n"
            if self.text[:position].endswith(b"\n"):
                return b"\n"
        return b"\n"

    def indent_at(self, offset: int) -> bytes:
        """The white space at the head of the line that holds ``offset``."""
        start = self.line_start(offset)
        line = self.text[start : self.line_end(start)]
        return line[: len(line) - len(line.lstrip(b" \t"))]

    def where(self, offset: int) -> str:
        return f"{self.path}:{self.line_of(offset)}"

    @cached_property
    def _plain(self) -> bool:
        return self.encoding == "utf-8" and len(self.raw) == len(self.text)

    def _raw_offset(self, offset: int) -> int:
        bom = len(_BOM) if self.raw.startswith(_BOM) else 0
        if self.encoding == "utf-8":
            return offset + bom
        return bom + len(self.text[:offset].decode("utf-8").encode(self.encoding))

    def _encode(self, data: bytes) -> bytes:
        if self.encoding == "utf-8":
            return data
        try:
            return data.decode("utf-8").encode(self.encoding)
        except UnicodeEncodeError as error:
            raise UnreadableSourceError(
                _("the code to insert has characters that {encoding} cannot write").format(encoding=self.encoding),
                where=self.path,
                why=str(error),
            ) from error

    def raw_splice(self, splice: Splice) -> Splice:
        """The same splice in the file's own bytes."""
        if self._plain:
            return splice
        lines = tuple(len(self._encode(splice.inserted[:offset])) for offset in splice.lines)
        return replace(
            splice,
            start=self._raw_offset(splice.start),
            removed=self._encode(splice.removed),
            inserted=self._encode(splice.inserted),
            lines=lines,
        )

    def raw_indent(self, indent: Indent) -> Indent:
        if self._plain:
            return indent
        return replace(indent, lines=tuple(self._raw_offset(line) for line in indent.lines))


def read_source(path: str, raw: bytes) -> Source:
    """Raises UnreadableSourceError for NUL bytes, lone CRs, an unknown or wrong encoding: named, before anything is written."""
    if b"\0" in raw:
        raise UnreadableSourceError(_("the file holds NUL bytes; it is no Python source"), where=path)
    try:
        encoding, _lines = tokenize.detect_encoding(io.BytesIO(raw).readline)
        encoding = "utf-8" if encoding == "utf-8-sig" else encoding
        text = raw.removeprefix(_BOM).decode(encoding)
        if text.encode(encoding) != raw.removeprefix(_BOM):
            raise ValueError(_("decoding and encoding again gives other bytes"))
    except (SyntaxError, UnicodeError, LookupError, ValueError) as error:
        raise UnreadableSourceError(
            _("the file cannot be decoded"),
            where=path,
            why=str(error),
            todo=_("mend its coding line, or leave this file out"),
        ) from error
    work = text.encode("utf-8")
    lone = re.search(rb"\r(?!\n)", work)
    if lone:
        line = len(_NEWLINE.findall(work[: lone.start()])) + 1
        raise UnreadableSourceError(
            _("the file has a bare CR as line ending, which cannot be kept byte for byte"), where=f"{path}:{line}"
        )
    return Source(path, raw, work, encoding)
